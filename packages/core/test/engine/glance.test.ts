import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { NoteList } from '../../src/engine/context.ts';
import { CODECS } from '../../src/engine/index.ts';
import { decodeResponse } from '../../src/engine/response.ts';
import { type CanonicalResponse, createExchange, type Provider } from '../../src/index.ts';

const IDS = ['openai-chat', 'anthropic-messages'] as const;

/** Whole answers as servers sent them. */
const answersIn = (id: string) =>
  readManifest()
    .filter(({ protocol, stream, status }) => protocol === id && !stream && status < 400)
    .map(({ file }) => ({ file, text: readRecording(file).toString() }))
    .filter(({ text }) => text.trimStart().startsWith('{'))
    .map(({ file, text }) => ({ file, body: JSON.parse(text) as unknown }));

const isOrdinary = ({ choices = [], content }: CanonicalResponse): boolean =>
  choices.length < 2 && content.every(({ type }) => type !== 'tool_use');

describe.each(IDS)('a glance at answers of %s', (id) => {
  const answers = answersIn(id);
  const glanced = answers.filter(({ body }) => CODECS[id].peekUsage?.(body));

  test('is enough for many of them', () => {
    expect(glanced.length).toBeGreaterThan(answers.length / 4);
  });

  test('says of each what reading it says', () => {
    for (const { file, body } of glanced) {
      const read = decodeResponse(body, { from: CODECS[id], to: CODECS[id] }, new NoteList());
      expect(CODECS[id].peekUsage?.(body)?.usage, file).toEqual(read.usage);
      expect(isOrdinary(read), file).toBe(true);
    }
  });
});

const MESSAGE = { role: 'assistant', content: 'hi' };
const USAGE = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const answer = (over: object) => ({
  id: '1',
  choices: [{ index: 0, message: MESSAGE, finish_reason: 'stop' }],
  usage: USAGE,
  ...over,
});

describe('what has to be read', () => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  test.each([
    ['an error in the place of an answer', { error: { message: 'no' } }],
    ['a verdict that is none', { base_resp: { status_code: 1004, status_msg: 'login fail' } }],
    ['no usage', { usage: null }],
    ['two choices', { choices: [{ message: MESSAGE }, { message: MESSAGE }] }],
    ['a call', { choices: [{ message: { ...MESSAGE, tool_calls: [call] } }] }],
    ['parts', { choices: [{ message: { role: 'assistant', content: [{ type: 'text', text: 'hi' }] } }] }],
    ['no message', { choices: [{}] }],
  ])('%s', (_, over) => {
    expect(CODECS['openai-chat'].peekUsage?.(answer(over))).toBeUndefined();
  });
});

const provider: Provider = { id: 'openai', protocol: 'openai-chat', base_url: 'https://api.example.com/v1' };

describe('an exchange that passes an answer on', () => {
  const passed = (body: unknown, tap: boolean) => {
    const exchange = createExchange('openai-chat', 'openai-chat', { provider, model: 'm', passthrough: true, tap });
    exchange.request({ method: 'POST', path: '/v1/chat/completions', headers: {}, body: { model: 'm', messages: [] } });
    exchange.response({ status: 200, headers: {}, body });
    return exchange;
  };

  test('knows what it used, and reads it when it is asked for', () => {
    const exchange = passed(answer({}), true);
    expect(exchange.hasUsageOnly).toBe(true);
    expect(exchange.usage).toMatchObject({ input_tokens: 1, output_tokens: 2 });
    expect(exchange.canonicalResponse?.content).toEqual([{ type: 'text', text: 'hi' }]);
  });

  test('keeps nothing when nobody taps it', () => {
    const { usage, canonicalResponse, hasUsageOnly } = passed(answer({}), false);
    expect({ usage, canonicalResponse, hasUsageOnly }).toEqual({ hasUsageOnly: false });
  });
});
