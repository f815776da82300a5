import type { ProtocolId } from '@sluice/core';
import { findRoute } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { IS_NEXT } from '../../../../test/sdk/openai.ts';
import { KNOWN_ENDPOINTS } from '../../src/exchange/endpoint-table.ts';
import { findEndpoint } from '../../src/exchange/known-endpoints.ts';
import { findConvertedFields } from '../../src/exchange/object-fields.ts';
import { SdkTypes } from './sdk-types.ts';

// The types of the official SDKs say which fields name objects: each is in the table of its endpoint, or left out on purpose.

/** Fields that may have an id. */
const NAMES_OBJECT =
  /(^|_)(ids?|file|files|container|agent|agents|environment|conversation|session|consent|reference|voice|store|stores|thread|template|uri|assistant)$|(Id|Ids|Uri|Name|Names|Content)$/;

const HEADERS = {
  'openai-chat': {},
  'openai-responses': {},
  'anthropic-messages': { 'anthropic-version': '2023-06-01' },
  gemini: { 'x-goog-api-key': 'k' },
} as const satisfies Record<ProtocolId, Record<string, string>>;

/** Fields that name no object of a provider, and why; `parent.name` for one of the values of a field. */
const NO_OBJECT: Readonly<Record<string, string>> = {
  call_id: 'a call of the same conversation',
  tool_call_id: 'a call of the same conversation',
  tool_use_id: 'a call of the same conversation',
  approval_request_id: 'a call of the same conversation',
  caller_id: 'a call of the same conversation',
  tool_id: 'a call of the same conversation',
  'tool_calls.id': 'a call of the same conversation',
  'content.id': 'a call of the same conversation',
  'acknowledged_safety_checks.id': 'a check of the same conversation',
  'pending_safety_checks.id': 'a check of the same conversation',
  tab_id: 'a tab of the browser of the client',
  download_id: 'a download of the browser of the client',
  custom_id: 'chosen by the client',
  reference: 'a text to compare with',
  item_reference: 'the name of a variable',
  'input.id': 'a reference if the item has nothing else, which the state of the request looks up',
  'items.id': 'a reference if the item has nothing else, which the state of a later request looks up',
  'audio.id': 'audio of the same conversation, which is kept for minutes',
  'audio.voice': 'a name of the vendor; voices of clients are objects',
  '.voice': 'a name of the vendor; voices of clients are objects',
  'model.id': 'a model',
  'prompt.id': 'a template of the operator',
  part_ids: 'parts of the upload in the path',
  'events.request_id': 'of the session in the path',
  'events.turn_id': 'of the session in the path',
  field_id: 'of the session in the path',
  previous_message_id: 'only compared: nothing of the message is read',
  workspace_id: 'administration',
  user_profile_id: 'administration',
};

/** The state of a request looks up what a response continues. */
const BY_STATE = ['.previous_response_id', '.conversation', 'conversation.id'];

function namesOf(protocol: ProtocolId, method: string, path: string): readonly string[] | undefined {
  const plain = path.replaceAll('{}', 'id1');
  const known = findEndpoint(protocol, method, plain);
  if (known) return known.fields.names ?? [];
  const { type, client } = findRoute(`/v1/${plain}`, HEADERS[protocol]);
  const names = findConvertedFields(client.id, type).names ?? [];
  return type === 'PASSTHROUGH' ? undefined : path === 'responses' ? [...names, ...BY_STATE] : names;
}

const isListed = (names: readonly string[], { name, parent }: { name: string; parent: string }): boolean => {
  const listed = names.map((one) => one.split(':', 1)[0]);
  return listed.includes(name) || listed.includes(`${parent}.${name}`);
};

const SDKS = [
  ['openai', 'openai-chat', 90],
  ...(IS_NEXT ? ([['openai-7', 'openai-chat', 90]] as const) : []),
  ['anthropic-0', 'anthropic-messages', 30],
  ['@anthropic-ai/sdk', 'anthropic-messages', 30],
] as const;

describe.each(SDKS)('%s', (module, protocol, least) => {
  test('every field of a request that names an object is in the table, or listed as none', () => {
    const calls = SdkTypes.read(module, KNOWN_ENDPOINTS[protocol]);
    expect(calls.length).toBeGreaterThan(least);
    const missing = calls.flatMap(({ method, path, fields }) => {
      const names = namesOf(protocol, method, path);
      if (!names) return [];
      return fields
        .filter(({ name }) => NAMES_OBJECT.test(name))
        .filter(
          (field) => !isListed(names, field) && !(field.name in NO_OBJECT) && !(`${field.parent}.${field.name}` in NO_OBJECT),
        )
        .map(({ name, parent }) => `${method} ${path}: ${parent}.${name}`);
    });
    expect([...new Set(missing)]).toEqual([]);
  });
});
