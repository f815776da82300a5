import { expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { bytesOf, protocolOf } from '../../../../test/run.ts';
import { decodeBody, encodeResponses, responseOf, responsesContext } from '../../../../test/sdk/responses.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalResponse } from '../../src/canonical/message.ts';
import { echoRequest } from '../../src/protocols/openai-responses/content-encode.ts';
import { encodeResponse } from '../../src/protocols/openai-responses/response.ts';

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
  // The id comes with the last event.
  'case own-responses-created-missing-id',
]);

/** Gemini: only the functionResponse after a call shows that the provider ran it; by then the client has the call. */
const isServed = ({ content }: CanonicalResponse): boolean =>
  content.some((block) => block.type === 'tool_use' && block.kind === 'server');

/** A stream that ended well, with its message. */
const rows = [...cases, ...recordings].flatMap(({ name, protocol: id, bytes }) => {
  const protocol = protocolOf(id);
  const context = responsesContext({ source: protocol.id });
  const events = decodeBody(protocol, bytes, context);
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  const { message, complete, error } = accumulator.finish();
  const isWhole = complete && !error && message.stop_reason !== 'error' && !(protocol.id === 'gemini' && isServed(message));
  return isWhole && !LIVE.has(name) ? [{ name, protocol, context, events, message }] : [];
});

test.each(rows)('$protocol.id $name: accumulate, then convert, is convert, then accumulate', ({ context, events, message }) => {
  const live = responseOf(encodeResponses(events, context));
  // JSON has no undefined, and no -0.
  expect(live).toEqual(JSON.parse(JSON.stringify(encodeResponse(message, context, echoRequest))));
});
