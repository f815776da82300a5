import { expect, test } from 'vitest';
import { type CanonicalStreamEvent, StreamRuleError, StreamValidator } from '../../src/canonical/index.ts';

type Event = CanonicalStreamEvent;
const start: Event = { type: 'message_start', message: { id: 'm', model: 'x' } };
const text = (index: number): Event => ({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
const call = (index: number, more: object = {}): Event => ({
  type: 'content_block_start',
  index,
  content_block: { type: 'tool_use', id: 'c', name: 'f', input: {}, ...more },
});
const delta = (index: number, value = 'x'): Event => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'text_delta', text: value },
});
const json = (index: number): Event => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'input_json_delta', partial_json: '{}' },
});
const sign = (index: number): Event => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'signature_delta', signature: { origin: 'gemini', form: 'thought_signature', value: 's' } },
});
const stop = (index: number): Event => ({ type: 'content_block_stop', index });
const finish: Event = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
const end: Event = { type: 'message_stop' };
const error: Event = { type: 'error', error: { code: 'UPSTREAM_ERROR', message: 'x' } };

/** The rule that a sequence breaks, or undefined. */
function broken(events: Event[]): string | undefined {
  const validator = new StreamValidator();
  try {
    for (const event of events) validator.push(event);
    validator.end();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof StreamRuleError) return thrown.rule;
    throw thrown;
  }
}

test.each<[string, Event[], string | undefined]>([
  ['a whole message', [start, text(0), delta(0), stop(0), finish, end], undefined],
  ['a ping first', [{ type: 'ping' }, start, finish, end], undefined],
  ['a single error', [error], undefined],
  ['an error after a part', [start, text(0), delta(0), stop(0), { ...finish, delta: { stop_reason: null } }, error], undefined],
  ['parallel calls overlap', [start, call(0), call(1), json(1), json(0), stop(0), stop(1), finish, end], undefined],
  ['a late signature', [start, text(0), stop(0), text(1), sign(0), stop(1), finish, end], undefined],
  ['no start', [text(0)], 'S1'],
  ['two starts', [start, start], 'S1'],
  ['no id', [{ type: 'message_start', message: { id: '', model: '' } }], 'S1'],
  ['a gap in the indexes', [start, text(1)], 'S2'],
  ['a reused index', [start, text(0), stop(0), text(0)], 'S2'],
  ['a delta without a block', [start, delta(0)], 'S3'],
  ['a delta after the stop', [start, text(0), stop(0), delta(0)], 'S3'],
  ['a delta of another kind', [start, text(0), json(0)], 'S3'],
  ['two stops', [start, text(0), stop(0), stop(0)], 'S3'],
  ['an end with an open block', [start, text(0), error], 'S3'],
  ['overlapping text', [start, text(0), text(1)], 'S4'],
  ['text inside a call', [start, call(0), text(1)], 'S4'],
  ['a call without a name', [start, call(0, { name: '' })], 'S5'],
  ['a call that starts with arguments', [start, call(0, { input: { a: 1 } })], 'S5'],
  ['two finishes', [start, finish, finish], 'S7'],
  ['a block after the finish', [start, finish, text(0)], 'S7'],
  ['no finish', [start, end], 'S7'],
  ['no stop reason', [start, { ...finish, delta: { stop_reason: null } }, end], 'S7'],
  ['no end', [start, finish], 'S8'],
  ['something after the end', [start, finish, end, finish], 'S8'],
  ['half a character', [start, text(0), delta(0, 'a\ud83d')], 'S11'],
])('%s', (_, events, rule) => {
  expect(broken(events)).toBe(rule);
});
