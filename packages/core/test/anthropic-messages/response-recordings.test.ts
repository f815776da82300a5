import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { type Json, messagesContext, readWhole } from '../../../../test/sdk/anthropic.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { decodeResponse, encodeResponse } from '../../src/protocols/anthropic-messages/response.ts';

const bodies = readManifest()
  .filter(({ protocol, stream }) => protocol === 'anthropic-messages' && !stream)
  .map(({ file, status }) => ({ file, status, body: JSON.parse(readRecording(file).toString()) as Json }));

const isFailure = ({ body }: { body: Json }): boolean => body['type'] === 'error' || body['error'] !== undefined;
const blocksOf = (body: Json): Json[] => body['content'] as Json[];

/** What decode + encode changes of a recorded body, and why. Each works on a copy of what the server sent. */
const NORMALISATIONS: { name: string; why: string; apply: (body: Json) => void }[] = [
  {
    name: 'required fields',
    why: 'the official types of today require them; older recordings do not have them yet',
    apply: (body) => {
      for (const name of ['container', 'diagnostics', 'stop_details', 'stop_sequence']) body[name] ??= null;
      for (const block of blocksOf(body)) {
        if (block['type'] === 'text') block['citations'] ??= null;
        if (block['type'] === 'tool_use' || block['type'] === 'server_tool_use') block['caller'] ??= { type: 'direct' };
      }
    },
  },
  {
    name: 'counters',
    why: 'the official type requires every counter; those that no recording has are null, those of the cache 0',
    apply: (body) => {
      const usage = body['usage'] as Json;
      for (const name of ['cache_creation', 'service_tier', 'inference_geo', 'speed', 'output_tokens_details', 'server_tool_use'])
        usage[name] ??= null;
      for (const name of ['cache_creation_input_tokens', 'cache_read_input_tokens']) usage[name] ??= 0;
    },
  },
];

const used = new Set<string>();

function normalised(source: Json): Json {
  const body = structuredClone(source);
  for (const { name, apply } of NORMALISATIONS) {
    const before = JSON.stringify(body);
    apply(body);
    if (JSON.stringify(body) !== before) used.add(name);
  }
  return body;
}

const context = () => messagesContext({ source: 'anthropic-messages' });

describe.each(bodies.filter((recording) => !isFailure(recording)))('identity of $file', ({ body }) => {
  const message = decodeResponse(body, context());
  const encoded = encodeResponse(message, context());

  test('decode + encode gives back everything', () => {
    expect(encoded).toEqual(normalised(body));
  });

  test('decoded again it is the same message', () => {
    const again = encodeResponse(decodeResponse(encoded, context()), context());
    expect(again).toEqual(encoded);
  });

  test('the official SDK reads it', async () => {
    expect(await readWhole(encoded)).toMatchObject(normalised(body));
  });
});

test.each(bodies.filter(isFailure))('$file is an error', ({ body }) => {
  expect(() => decodeResponse(body, context())).toThrow(CodecError);
  expect(() => decodeResponse(body, context())).toThrow(String((body['error'] as Json)['message']));
});

test('every normalisation is needed', () => {
  for (const { body } of bodies.filter((recording) => !isFailure(recording))) normalised(body);
  expect(NORMALISATIONS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
});
