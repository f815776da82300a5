import { RULES, type RuleId } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { HABIT_FACTS } from '../../packages/core/src/rules/habits.ts';
import { listMutations, MUTATIONS } from '../../packages/lab/src/mutate/index.ts';

/** Violations that no mutation makes, and why. */
const NOT_MADE: Partial<Record<RuleId, string>> = {
  'sse/invalid-utf8': 'bytes that were damaged on the way: what they were cannot be known, so nothing could be compared',
  'sse/json-body-instead-of-stream':
    'a whole body is another form of the answer; that both are read the same is a property of its own',
  'chat/tool-args-invalid': 'arguments that are no JSON are what the model wrote: there is no clean stream that says the same',
  'chat/tool-args-not-object':
    'arguments that are no object are what the model wrote: there is no clean stream that says the same',
  'anthropic/input-not-json': 'an input that is no JSON is what the model wrote: there is no clean stream that says the same',
  'chat/finish-calls-missing': 'it needs an answer without calls, which nearly no clean stream is; cases have it',
  'chat/error-empty': 'a field of the envelope that says nothing; cases have it in chunks and in a whole body',
  'chat/content-cumulative':
    'it needs three texts without log probabilities, of which none begins another, which few clean streams have; a case has it',
  'chat/reasoning-object': 'another form of a field that few clean streams have; cases have it in chunks and in a whole body',
  'anthropic/tool-use-without-calls': 'it needs an answer without calls, which nearly no clean stream is; cases have it',
  'responses/reasoning-twice': 'it needs a second part with events of its own, which clean streams do not have; cases have it',
  'gemini/bad-json-path': 'a piece without a place is damage: the arguments cannot be what they were',
  'gemini/late-function-response':
    'it needs a call that Google runs itself, which a clean stream of another kind cannot be made into',
};

const made = new Set(MUTATIONS.flatMap(({ rule }) => rule ?? []));

/** What no decoder names is no dialect that it has to be tried with. */
const ofDecoders = (Object.keys(RULES) as RuleId[]).filter((rule) => !Object.hasOwn(HABIT_FACTS, rule));

test.each(ofDecoders)('%s can be made out of a clean stream, or there is a reason why not', (rule) => {
  if (made.has(rule)) expect(NOT_MADE[rule], 'a mutation makes it').toBeUndefined();
  else expect(NOT_MADE[rule]?.length ?? 0).toBeGreaterThan(20);
});

describe.each(MUTATIONS.map((mutation) => ({ mutation, id: mutation.id })))(
  '$id',
  ({ mutation: { id, title, rule, protocols } }) => {
    test('has a unique name', () => {
      expect(MUTATIONS.filter((other) => other.id === id)).toHaveLength(1);
      expect(id).toMatch(/^(sse|reads|failure|chat|anthropic|responses|gemini)\/[a-z-]+$/);
    });

    test('has a one-line title', () => {
      expect(title).toMatch(/^[A-Z[a-z_].{5,110}$/);
      expect(title).not.toMatch(/\.$/);
    });

    test('is listed for its protocols', () => {
      expect(protocols.length).toBeGreaterThan(0);
      for (const protocol of protocols) expect(listMutations(protocol).map((one) => one.id)).toContain(id);
    });

    test('refers to an existing rule', () => {
      if (rule) expect(RULES[rule]).toBeDefined();
    });
  },
);
