import { describe, expect, test } from 'vitest';
import { readCapturedRequests, readRequests } from '../../../../test/corpus.ts';
import type { ProviderProfile } from '../../src/codec/profile.ts';
import { isObject, type JsonObject } from '../../src/json/json.ts';
import { DEFAULT_CHAT_PROFILE } from '../../src/protocols/openai-chat/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/openai-chat/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-chat/request-encode.ts';
import { bareContext, paramOf } from './bare-context.ts';
import { NORMALISATIONS } from './request-normal-form.ts';

interface Source {
  name: string;
  body: JsonObject;
}

const recordings: Source[] = readRequests('openai-chat').flatMap(({ name, body }) => (isObject(body) ? [{ name, body }] : []));

const clients: Source[] = readCapturedRequests().flatMap(({ name, path, body }) =>
  path.endsWith('/chat/completions') && isObject(body) ? [{ name, body }] : [],
);

/** Requests that are no chat requests, and where they are wrong. The bodies were sent to other endpoints, or to be refused. */
const REFUSED: Record<string, string> = {
  'openai-chat/huggingface-71a7f7cc': 'messages',
  'openai-chat/huggingface-ebf19a24': 'messages',
  'openai-chat/hyperbolic-21623554': 'messages',
  'openai-chat/portkey-595c1325': 'messages',
  'openai-chat/portkey-bfe91304': 'messages',
  'openai-chat/openai-593f8e2b': 'messages',
  'openai-chat/openai-2b5802dc': 'messages[0].content',
};

/** A server that takes what the source has, under the names the source has. */
function profileOf(body: JsonObject): ProviderProfile {
  const messages = (body['messages'] as JsonObject[]).filter(isObject);
  const has = (field: string): boolean => messages.some((message) => message[field] !== undefined && message[field] !== null);
  const isParts = messages.some(({ content }) => Array.isArray(content) && content.some((part) => part.type === 'thinking'));
  const hasPoints = messages.some(
    ({ content }) => Array.isArray(content) && content.some((part) => part.prompt_cache_breakpoint),
  );
  return {
    ...DEFAULT_CHAT_PROFILE,
    max_tokens_field: body['max_completion_tokens'] === undefined ? 'max_tokens' : 'max_completion_tokens',
    reasoning_field: isParts ? 'parts' : has('reasoning_content') ? 'reasoning_content' : has('reasoning') ? 'reasoning' : 'none',
    reasoning_replay: 'always',
    system_role: 'developer',
    cache_breakpoints: hasPoints,
    tool_id: { pattern: /^[\x21-\x7e]+$/, max: 64 },
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

// The last test reads what the others have used.
describe('chat to canonical to chat is the identity', { shuffle: false }, () => {
  const rows = [...recordings, ...clients].filter(({ name }) => !Object.hasOwn(REFUSED, name));

  test.each(rows)('$name', ({ body }) => {
    const context = bareContext({ profile: profileOf(body) });
    const original = structuredClone(body);
    const request = decodeRequestBody(body, context, body['model'] === undefined ? 'model-of-the-path' : undefined);
    expect(encodeRequestBody(request, context)).toEqual(normalForm(body));
    expect(body, '#17: the source is not changed').toEqual(original);
  });

  test('every normalisation is needed', () => {
    expect(NORMALISATIONS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  });

  test.each(Object.entries(REFUSED))('%s is refused at %s', (name, param) => {
    const source = recordings.find((recording) => recording.name === name);
    expect(paramOf(() => decodeRequestBody(source?.body, bareContext(), 'm'))).toBe(param);
  });
});
