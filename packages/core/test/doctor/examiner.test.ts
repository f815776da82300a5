import { afterEach, expect, test, vi } from 'vitest';
import { bytesOf, splitEvery } from '../../../../test/run.ts';
import { Examiner, PROTOCOLS } from '../../src/index.ts';

afterEach(() => vi.restoreAllMocks());

const chunk = (content: string): string =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
const END =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

test('every frame is parsed once', () => {
  const frames = ['a', 'b', 'c', 'd', 'e', 'f'].map(chunk);
  const body = bytesOf([...frames, END, 'data: [DONE]\n\n'].join(''));
  const parse = vi.spyOn(JSON, 'parse');
  const { message } = Examiner.examine(splitEvery(body, 100), { protocol: PROTOCOLS['openai-chat'] });
  expect(parse).toHaveBeenCalledTimes(frames.length + 1);
  expect(message).toMatchObject({ text: 'abcdef', complete: true });
});

test('frames that came before the protocol was known are checked, in any pieces', () => {
  const body = bytesOf(`data: {"nothing":"\\ud800"}\n\n${chunk('a')}${END}`);
  const whole = Examiner.examine([body], { protocol: Object.values(PROTOCOLS) });
  expect(whole.findings.map(({ rule }) => rule)).toContain('sse/lone-surrogate');
  expect(Examiner.examine(splitEvery(body, 7), { protocol: Object.values(PROTOCOLS) })).toEqual(whole);
});
