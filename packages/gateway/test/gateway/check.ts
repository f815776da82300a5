import type { ProtocolId } from '@sluice/core';
import { expect } from 'vitest';
import { readError, readStream, readWhole, TEXT } from './dialects.ts';
import type { Reply } from './http.ts';

/** When the client has the whole of a stream that breaks off at `ms`: clients of Gemini get the error once more, 100 ms later. */
export const brokenOffAt = (client: ProtocolId, ms: number): number => (client === 'gemini' ? ms + 100 : ms);

/** No frame is cut: every `data:` line is JSON, or the mark at the end. */
export function expectWholeFrames(body: Buffer): void {
  for (const line of body.toString('utf8').split(/\r\n|\n|\r/)) {
    const data = /^data: ?(.*)$/.exec(line)?.[1];
    if (data !== undefined && data !== '[DONE]') expect(() => JSON.parse(data), data).not.toThrow();
  }
}

/** How good streams end. */
const ENDINGS = /^data: \[DONE\]|"type":"message_stop"|^event: response\.completed|"finishReason":|"finish_reason":"/m;

/** A stream that has begun and ends in an error of the client's own protocol: nothing invented, nothing half, the connection in order. */
export function expectBrokenOff(client: ProtocolId, reply: Reply, text: string, message: RegExp | string = ''): void {
  expect(reply).toMatchObject({ status: 200, isWhole: true });
  expectWholeFrames(reply.body);
  const read = readStream(client, reply.body);
  expect(read.text).toBe(text);
  expect(read.finish_reason ?? 'error').toBe('error');
  expect(read.error?.message).toMatch(message);
  expect(reply.body.toString()).not.toMatch(ENDINGS);
}

/** An answer with an error status, in the client's own protocol. */
export function expectRefused(client: ProtocolId, reply: Reply, status: number, message: RegExp | string = ''): void {
  expect({ status: reply.status, isWhole: reply.isWhole, body: reply.body.toString().slice(0, 300) }).toMatchObject({
    status,
    isWhole: true,
  });
  expect(reply.headers).toMatchObject({
    'content-type': 'application/json',
    'x-sluice-request-id': expect.stringMatching(/^[\w-]{36}$/),
  });
  expect(readError(client, status, reply.headers, reply.body).message).toMatch(message);
}

/** The whole answer of a good upstream. */
export function expectAnswered({ client }: { client: ProtocolId }, stream: boolean, reply: Reply): void {
  expect(reply.status).toBe(200);
  if (stream) expect(readStream(client, reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });
  else expect(readWhole(client, reply.body).content).toMatchObject([{ text: TEXT }]);
}
