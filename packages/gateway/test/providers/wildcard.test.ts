import { expect, test } from 'vitest';
import { matchesAny } from '../../src/providers/wildcard.ts';

test.each([
  [['gpt-*'], 'gpt-5', true],
  [['gpt-*'], 'gp', false],
  [['*'], '', true],
  [['a*a'], 'a', false],
  [['a*a'], 'aba', true],
  [['a'], 'a', true],
  [['a'], 'ab', false],
  [['b', 'a*'], 'ab', true],
  [[], 'a', false],
])('%j matches %j: %j', (patterns, name, expected) => expect(matchesAny(patterns, name)).toBe(expected));
