/** The reviewed words of the protocols: the only strings that a shape may hold. */
import { readFileSync } from 'node:fs';

/** @typedef {ReturnType<typeof readVocabulary>} Vocabulary */

export function readVocabulary(file = new URL('../../fixtures/corpus/vocabulary.json', import.meta.url)) {
  return openVocabulary(JSON.parse(readFileSync(file, 'utf8')));
}

export function openVocabulary({ keys, freeKeys, values, facts, lines, words, tags }) {
  const known = { keys: new Set(keys), freeKeys: new Set(freeKeys), lines: new Set(lines) };
  const valuesOf = new Map(Object.entries(values).map(([field, list]) => [field, new Set(list)]));
  return {
    hasKey: (key) => known.keys.has(key),
    /** Keys below tool arguments and metadata that hosted tools and providers read. */
    hasFreeKey: (key) => known.freeKeys.has(key),
    hasValue: (field, text) => valuesOf.get(field)?.has(text) === true,
    /** Providers, and paths and headers of clients. */
    hasFact: (field, text) => facts[field]?.includes(text) === true,
    hasLine: (line) => known.lines.has(line),
    words: new Set(words),
    tags,
  };
}
