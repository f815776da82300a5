import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { render } from '../fixtures/corpus/render.js';
import { findUnexplained } from '../scripts/corpus/check.js';
import { readVocabulary } from '../scripts/corpus/vocabulary.js';
import { readClientShapes, readShapes } from './corpus.ts';

const vocabulary = readVocabulary();
const shapes = [...readShapes(), ...readClientShapes()];

test.each(shapes)('$name: vocabulary and generator explain every string', (shape) => {
  expect(findUnexplained(shape, vocabulary)).toEqual([]);
});

test('a text that is in neither is found, wherever it is', () => {
  const [shape] = readShapes();
  if (!shape) throw new Error('the corpus is empty');
  const found = (change: object): number => findUnexplained({ ...shape, ...change }, vocabulary).length;
  expect(found({})).toBe(0);
  expect(found({ strings: shape.strings.map((spec) => `${spec} 'sorry`) })).toBeGreaterThan(0);
  expect(found({ templates: shape.templates.map((template) => template.replace('{', '{"remark":1,')) })).toBeGreaterThan(0);
  expect(found({ templates: shape.templates.map((template) => template.replace('{', '{"role":"sorry",')) })).toBeGreaterThan(0);
  expect(found({ templates: [...shape.templates, ': sorry\n\n'] })).toBeGreaterThan(0);
  expect(found({ request: '{"model":"gpt-4o","user":"sorry"}' })).toBeGreaterThan(0);
  expect(found({ provider: 'sorry' })).toBeGreaterThan(0);
});

test('the same seed gives the same bytes, another seed other texts of the same length', () => {
  const long = shapes.filter(({ strings = [] }) => strings.some((spec) => /(^| )_?t\d/.test(spec)));
  expect(long.length).toBeGreaterThan(300);
  for (const shape of long) {
    const first = render(shape);
    expect(render(shape)).toEqual(first);
    const second = render(shape, 2);
    expect(second).not.toEqual(first);
    expect(second.strings.map(({ length }) => length)).toEqual(first.strings.map(({ length }) => length));
  }
});

test('there are 300 to 500 shapes in at most 3 MB', () => {
  const folder = fileURLToPath(new URL('../fixtures/corpus/', import.meta.url));
  const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(folder + file).size, 0);
  expect(bytes).toBeLessThan(3_000_000);
  expect(readShapes().length).toBeGreaterThanOrEqual(300);
  expect(readShapes().length).toBeLessThanOrEqual(500);
});
