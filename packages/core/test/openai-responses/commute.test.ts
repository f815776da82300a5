import { expect, test } from 'vitest';
import { bytesOf, protocolOf } from '../../../../test/run.ts';
import { decodeBody, encodeResponses, responseOf, responsesContext } from '../../../../test/sdk/responses.ts';
import { readCases, readManifest, readRecording } from '../../../../test/shared.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import { encodeResponse } from '../../src/protocols/openai-responses/response-encode.ts';

const cases = readCases().map(({ id, protocol, raw }) => ({ name: `case ${id}`, protocol, bytes: bytesOf(raw) as Uint8Array }));
const recordings = readManifest()
  .filter(({ stream }) => stream)
  .map(({ file, protocol }) => ({ name: file, protocol, bytes: readRecording(file) as Uint8Array }));

/** Where a stream cannot say what the whole message says, and why. */
const LIVE = new Set([
  // Ids and arguments that came after the call had been passed on.
  'case own-id-after-arguments',
  'case own-ids-after-all-calls',
  'case own-second-document-after-another-call',
]);

const rows = [...cases, ...recordings]
  .filter(({ name }) => !LIVE.has(name))
  .map((row) => ({ ...row, protocol: protocolOf(row.protocol) }));

test.each(rows)('$protocol.id $name: accumulate, then convert, is convert, then accumulate', ({ protocol, bytes }) => {
  const context = responsesContext({ source: protocol.id });
  const events = decodeBody(protocol, bytes, context);
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  const { message, complete, error } = accumulator.finish();
  if (error || !complete || message.stop_reason === 'error') return;
  // Gemini: that the provider ran a call itself shows only behind it (WIRE_FACTS 1), when the client has seen it.
  if (message.content.some((block) => block.type === 'tool_use' && block.kind === 'server' && protocol.id === 'gemini')) return;
  const live = responseOf(encodeResponses(events, context));
  // JSON has no undefined, and no -0.
  expect(live).toEqual(JSON.parse(JSON.stringify(encodeResponse(message, context))));
});
