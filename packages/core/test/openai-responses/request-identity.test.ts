import { describe, expect, test } from 'vitest';
import { readCapturedRequests, readRequests } from '../../../../test/corpus.ts';
import { responsesContext } from '../../../../test/sdk/responses.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import { profileFor } from '../../src/protocols/openai-responses/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/openai-responses/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-responses/request-encode.ts';
import { paramOf } from './bare.ts';
import { NORMALISATIONS } from './request-normal-form.ts';

interface Source {
  name: string;
  body: JsonObject;
}

const recordings: Source[] = readRequests('openai-responses').flatMap(({ name, body }) =>
  isObject(body) ? [{ name, body }] : [],
);

const clients: Source[] = readCapturedRequests().flatMap(({ name, path, body }) =>
  path.endsWith('/responses') && isObject(body) ? [{ name, body }] : [],
);

/** Requests that are wrong, and where. They were sent to be refused, or to another endpoint. */
const REFUSED: Record<string, string> = {
  'openai-responses/openai-a3b1988e': 'input[2].role',
};

/** OpenAI, and a model that takes all that the source has. */
const PROFILE = { ...profileFor('openai', 'gpt-5.6'), supports_sampling: true };
delete (PROFILE as { effort_values?: unknown }).effort_values;

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

// The last test reads what the others have used.
describe('Responses to canonical to Responses is the identity', { shuffle: false }, () => {
  const rows = [...recordings, ...clients].filter(({ name }) => !Object.hasOwn(REFUSED, name));

  test.each(rows)('$name', ({ body }) => {
    const context = responsesContext({ profile: PROFILE });
    const original = structuredClone(body);
    const request = decodeRequestBody(body, context);
    expect(encodeRequestBody(request, context)).toEqual(normalForm(body));
    expect(body, 'the source is not changed').toEqual(original);
  });

  test('every normalisation is needed', () => {
    expect(NORMALISATIONS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  });

  test.each(Object.entries(REFUSED))('%s is refused at %s', (name, param) => {
    const source = recordings.find((recording) => recording.name === name);
    expect(paramOf(() => decodeRequestBody(source?.body, responsesContext()))).toBe(param);
  });
});
