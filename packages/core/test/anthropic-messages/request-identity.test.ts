import { describe, expect, test } from 'vitest';
import { readCapturedRequests, readRequests } from '../../../../test/corpus.ts';
import { messagesContext } from '../../../../test/sdk/anthropic.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import type { HeaderBag } from '../../src/codec/protocol.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import { DEFAULT_ANTHROPIC_PROFILE } from '../../src/protocols/anthropic-messages/profiles.ts';
import { decodeRequest } from '../../src/protocols/anthropic-messages/request-decode.ts';
import { encodeRequest } from '../../src/protocols/anthropic-messages/request-encode.ts';
import { NORMALISATIONS } from './request-normal-form.ts';

interface Source {
  name: string;
  body: JsonObject;
  headers: HeaderBag;
}

const recordings: Source[] = readRequests('anthropic-messages').flatMap(({ name, body }) =>
  isObject(body) ? [{ name, body, headers: {} }] : [],
);

const clients: Source[] = readCapturedRequests().flatMap(({ name, path, headers, body }) =>
  /\/messages(\?|$)/.test(path) && isObject(body) ? [{ name, body, headers }] : [],
);

/** A model that takes what the source asks of it. */
function profileOf(body: JsonObject): ProviderProfile {
  const { thinking } = body;
  return {
    ...DEFAULT_ANTHROPIC_PROFILE,
    thinking_mode: isObject(thinking) && thinking['type'] === 'enabled' ? 'budget' : 'adaptive',
    rejects_sampling: false,
    temperature_xor_top_p: false,
    prefill: true,
    mid_system: true,
    structured_outputs: true,
  };
}

const used = new Set<string>();

function normalForm(source: JsonObject): JsonObject {
  const body = structuredClone(source);
  for (const { name, apply } of NORMALISATIONS) {
    const before = JSON.stringify(body);
    apply(body);
    if (JSON.stringify(body) !== before) used.add(name);
  }
  return body;
}

const PATH = '/model/model-of-the-path/invoke';

// The last test reads what the others have used.
describe('Anthropic to canonical to Anthropic is the identity', { shuffle: false }, () => {
  test('there are requests', () => expect(Math.min(recordings.length, clients.length)).toBeGreaterThan(20));

  test.each([...recordings, ...clients])('$name', ({ body, headers }) => {
    const context = messagesContext({ profile: profileOf(body) });
    const original = structuredClone(body);
    const path = body['model'] === undefined ? PATH : '/v1/messages';
    const request = decodeRequest({ method: 'POST', path, headers, body }, context);
    const wire = encodeRequest(request, context);
    expect(wire.body).toEqual(normalForm(body));
    for (const name of ['anthropic-beta', 'anthropic-version']) expect(wire.headers[name]).toBe(headers[name]);
    expect(body, 'the source is not changed').toEqual(original);
    expect(JSON.stringify(encodeRequest(request, context).body), 'P130: the same bytes again').toBe(JSON.stringify(wire.body));
  });

  test('every normalisation is needed', () => {
    expect(NORMALISATIONS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  });
});
