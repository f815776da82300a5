import { describe, expect, test } from 'vitest';
import { readCapturedRequests, readRequests } from '../../../../test/corpus.ts';
import { geminiContext, type Json } from '../../../../test/sdk/gemini.ts';
import { isObject } from '../../src/json/json.ts';
import { profileFor } from '../../src/protocols/gemini/profiles.ts';
import { decodeRequest } from '../../src/protocols/gemini/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/gemini/request-encode.ts';
import { NORMALISATIONS } from './request-normal-form.ts';

interface Source {
  name: string;
  path: string;
  body: Json;
}

const recordings: Source[] = readRequests('gemini').flatMap(({ name, model, body }) =>
  // An embedding and the making of a cache are other requests.
  isObject(body) && body['contents'] !== undefined && body['ttl'] === undefined
    ? [{ name, path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`, body }]
    : [],
);

const clients: Source[] = readCapturedRequests().flatMap(({ name, path, body }) =>
  path.includes(':streamGenerateContent') && isObject(body) ? [{ name, path, body }] : [],
);

const used = new Set<string>();

function normalForm(source: Json): Json {
  const body = structuredClone(source);
  for (const { name, apply } of NORMALISATIONS) {
    const before = JSON.stringify(body);
    apply(body);
    if (JSON.stringify(body) !== before) used.add(name);
  }
  return body;
}

/** A model that takes what the source has: signatures and results with media are those of Gemini 3. */
const contextOf = ({ name, body }: Source) => {
  const hasResultMedia = /"(functionResponse|function_response)":\{.*"parts":/.test(JSON.stringify(body));
  const profile = profileFor('google', name.split('__')[1]);
  return geminiContext({ profile: { ...profile, gemini3: hasResultMedia, builtin_with_functions: true } });
};

// The last test reads what the others have used.
describe('gemini to canonical to gemini is the identity', { shuffle: false }, () => {
  test.each([...recordings, ...clients])('$name', (source) => {
    const { path, body } = source;
    const context = contextOf(source);
    const original = structuredClone(body);
    const request = decodeRequest({ method: 'POST', path, headers: {}, body }, context);
    const encoded = encodeRequestBody(request, context);
    expect(encoded).toEqual(normalForm(body));
    expect(body, 'the source is not changed').toEqual(original);
    const again = decodeRequest({ method: 'POST', path, headers: {}, body: encoded }, contextOf(source));
    expect(JSON.stringify(encodeRequestBody(again, contextOf(source))), 'P130: the same bytes again').toBe(
      JSON.stringify(encoded),
    );
  });

  test('every normalisation is needed', () => {
    expect(NORMALISATIONS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  });
});
