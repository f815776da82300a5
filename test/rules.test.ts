import { expect, test } from 'vitest';
import { Examiner, RULES, type RuleId } from '../packages/core/src/index.ts';
import { readCases, readManifest, readRecording } from './corpus.ts';
import { bytesOf, protocolOf } from './run.ts';

function rulesMet(protocol: string, body: Uint8Array): RuleId[] {
  const examiner = new Examiner({ protocol: protocolOf(protocol) });
  examiner.push(body);
  return examiner.end().findings.map(({ rule }) => rule);
}

const met = new Set<RuleId>();
for (const { protocol, raw } of readCases()) for (const rule of rulesMet(protocol, bytesOf(raw))) met.add(rule);
for (const { protocol, file } of readManifest()) for (const rule of rulesMet(protocol, readRecording(file))) met.add(rule);

/** Not in any text file: the bytes of the others are tested in packages/core/test. */
const isFramingOrChat = (id: string): boolean => /^(sse|chat)\//.test(id) && id !== 'sse/invalid-utf8';

test.each(Object.keys(RULES).filter(isFramingOrChat))('%s occurs in a case or a recording', (id) => {
  expect([...met]).toContain(id);
});

test.each(Object.entries(RULES))(
  '%s has title, explanation and remedy',
  (id, { title, explanation, remedy, severity, providers }) => {
    expect(id).toMatch(/^(sse|chat|anthropic|responses|gemini)\/[a-z0-9-]+$/);
    expect(title).toMatch(/^\S.*[^.]$/);
    expect(explanation).toMatch(/^\S.*\.$/);
    expect(remedy).toMatch(/^\S.*\.$/);
    expect(['error', 'warning', 'info']).toContain(severity);
    for (const provider of providers) expect(provider).not.toBe('');
  },
);
