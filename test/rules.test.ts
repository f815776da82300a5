import { expect, test } from 'vitest';
import { Examiner, PROTOCOLS, RULES, type RuleId } from '../packages/core/src/index.ts';
import { REPAIRS } from '../packages/core/src/protocols/index.ts';
import { describeRule } from '../packages/core/src/rules/diagnostics.ts';
import { readCases, readManifest, readRecording } from './corpus.ts';
import { assemble, bytesOf, protocolOf } from './run.ts';

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

const CASES = readCases().map(({ id, protocol, raw }) => ({ id, protocol: protocolOf(protocol), body: bytesOf(raw) }));

test.each(CASES)('diagnostics of $id have the title and the remedy of their rule', ({ protocol, body }) => {
  for (const known of [protocol, Object.values(PROTOCOLS)]) {
    for (const { rule, message, detail } of assemble(known, [body]).diagnostics) {
      const { title, remedy } = RULES[rule];
      expect(message.startsWith(detail === undefined ? title : `${title}: ${detail}`), message).toBe(true);
      expect(message.endsWith(` ${remedy}`), message).toBe(true);
    }
  }
});

test('a diagnostic reads as a sentence about the stream, and one about Sluice', () => {
  const delta = { tool_calls: [{ index: 0, id: '', type: 'function', function: { name: 'f', arguments: '{}' } }] };
  const chunk = {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: 'done' }],
  };
  const { diagnostics } = assemble(protocolOf('openai-chat'), [bytesOf(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`)]);
  expect(diagnostics.map(({ message }) => message)).toEqual([
    'A tool-call delta carries a blank id. Sluice treats a blank id as absent.',
    'finish_reason is not one of the standard values: finish_reason is "done". Sluice maps those of other protocols, treats the rest as a normal end, and keeps the original value.',
    'A tool call has no id. Sluice derives a stable id from the response and the position.',
  ]);
});

const REPAIRED = [
  ['chat', REPAIRS['openai-chat']],
  ['anthropic', REPAIRS['anthropic-messages']],
  ['responses', REPAIRS['openai-responses']],
  ['gemini', REPAIRS.gemini],
] as const;

test.each(REPAIRED)('the repair of %s has a text for every rule that it can report', (prefix, { rules }) => {
  const ids = (Object.keys(RULES) as RuleId[]).filter((id) => id.startsWith('sse/') || id.startsWith(`${prefix}/`));
  for (const id of ids) expect(describeRule(id, rules)).toBe(describeRule(id, RULES));
});
