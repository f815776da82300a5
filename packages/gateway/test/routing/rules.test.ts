import type { ProtocolId } from '@sluice/core';
import { CODECS, decodeRequest } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { RuleTable } from '../../src/routing/rules.ts';
import { stateOf } from '../config/world.ts';

const YAML = `
providers: { local: { protocol: openai-chat, base_url: http://local.test/v1 } }
models: { "*": local/default }
rules:
  - { name: canary, when: { header: { x-canary: "on*" } }, use: local/canary }
  - { name: team, when: { tag: [team=a, team=b], model: "claude-*" }, use: local/team }
  - { name: pinned, when: { model: local/pinned }, use: local/other }
  - { name: background, when: { background: true }, use: local/small }
  - { name: long, when: { input_tokens_above: 1000 }, use: local/long }
  - { name: search, when: { web_search: true }, use: local/search }
  - { name: think, when: { thinking: true, tools: false }, use: local/think }
  - { name: image, when: { images: true }, use: local/image }
  - { when: { tools: true, thinking: false }, use: local/tools }
`;

const state = stateOf({ yaml: YAML });
const table = new RuleTable(state.rules, (id) => state.providers.has(id));

interface Row {
  client?: ProtocolId;
  model?: string;
  headers?: Record<string, string>;
  tags?: string[];
  body?: object;
  rule: string | undefined;
}

const PATHS = {
  'anthropic-messages': '/v1/messages',
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  gemini: '/v1beta/models/m:generateContent',
} as const satisfies Record<ProtocolId, string>;

const MESSAGES = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 100 };
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
const TOOL = { name: 'f', input_schema: { type: 'object' } };

const find = ({ client = 'anthropic-messages', model = 'claude-x', headers = {}, tags = [], body = {} }: Row) => {
  let decoded = 0;
  const request = { model, ...(client === 'openai-responses' ? { input: 'hello' } : MESSAGES), ...body };
  const rule = table.find({
    model,
    headers,
    tags,
    decode: () => {
      decoded++;
      try {
        return decodeRequest(request, { from: CODECS[client], path: PATHS[client], headers });
      } catch {
        return undefined;
      }
    },
  });
  return { rule: rule?.name, use: rule?.use, decoded };
};

describe('rules', () => {
  test.each<Row>([
    { rule: undefined },
    { headers: { 'x-canary': 'on-2' }, rule: 'canary' },
    { headers: { 'x-canary': 'off' }, rule: undefined },
    { tags: ['x=y', 'team=b'], rule: 'team' },
    { tags: ['team=b'], model: 'gpt-5', rule: undefined },
    { tags: ['team=c'], rule: undefined },
    { model: 'claude-haiku-4-5', rule: 'background' },
    { model: 'claude-3-5-haiku-20241022', rule: 'background' },
    { body: { system: 'word '.repeat(1000) }, rule: 'long' },
    { body: { system: 'word '.repeat(700) }, rule: undefined },
    { body: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, rule: 'search' },
    { client: 'openai-responses', body: { tools: [{ type: 'web_search' }] }, rule: 'search' },
    { body: { thinking: { type: 'enabled', budget_tokens: 2000 }, max_tokens: 4000 }, rule: 'think' },
    { body: { thinking: { type: 'disabled' } }, rule: undefined },
    { client: 'openai-chat', body: { reasoning_effort: 'high' }, rule: 'think' },
    { body: { messages: [{ role: 'user', content: [IMAGE] }] }, rule: 'long' },
    { body: { tools: [TOOL] }, rule: 'rules[8]' },
    { client: 'openai-chat', body: { tools: [{ type: 'function', function: { name: 'f' } }] }, rule: 'rules[8]' },
    // A name with its provider is meant as it is, unless a rule is about the name.
    { model: 'local/x', body: { tools: [TOOL] }, rule: undefined },
    { model: 'local/pinned', rule: 'pinned' },
    { model: 'elsewhere/x', body: { tools: [TOOL] }, rule: 'rules[8]' },
    // Invalid bodies meet no condition on them.
    { body: { messages: 5 }, rule: undefined },
  ])('%j', (row) => expect(find(row).rule).toBe(row.rule));

  test('images in messages and in tool results count', () => {
    const images = new RuleTable([{ name: 'image', when: { images: true }, use: 'local/image' }], () => false);
    const ask = (messages: object[]): string | undefined =>
      images.find({
        model: 'claude-x',
        headers: {},
        tags: [],
        decode: () => decodeRequest({ model: 'm', max_tokens: 9, messages }, { from: CODECS['anthropic-messages'] }),
      })?.name;
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] };
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [IMAGE] }] };
    expect(ask([{ role: 'user', content: [IMAGE] }])).toBe('image');
    expect(ask([{ role: 'user', content: 'x' }, call, result])).toBe('image');
    expect(ask([{ role: 'user', content: 'x' }])).toBeUndefined();
  });

  test('a body is decoded once at most, and not at all for rules about names, headers and keys', () => {
    expect(find({ rule: undefined }).decoded).toBe(1);
    expect(find({ model: 'claude-haiku-4-5', rule: 'background' }).decoded).toBe(0);
    expect(find({ headers: { 'x-canary': 'on' }, rule: 'canary' }).decoded).toBe(0);
  });
});
