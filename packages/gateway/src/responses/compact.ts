/** `/v1/responses/compact` for upstreams that cannot compact: the model writes a summary, which travels sealed. */

import type { ClientRequest } from '@sluice/core';
import { Conversation } from '../exchange/conversation.ts';
import type { Result } from '../exchange/model-request.ts';
import type { StateRequest } from '../exchange/state.ts';
import type { Reply, Services } from '../exchange/types.ts';
import type { Capsules } from './capsule.ts';
import { createDetachedConnection } from './detached.ts';
import { createId, isJson, type Json, readInput } from './items.ts';
import { measureReferences, RequestState, type StateParts } from './request-state.ts';

/** Summarizes a conversation. Returns the compacted response, or the result of a request that failed. */
export async function compact(
  request: StateRequest,
  { text, body }: { text: string; body: Json },
  parts: StateParts,
  capsules: Capsules,
  services: Services,
): Promise<{ body: Json } | Result> {
  const { route, headers, directory, record, id, connection, caller } = request;
  const input = [...readInput(body['input']), { role: 'user', content: PROMPT }];
  const asked: Json = { ...pick(body, ['model', 'instructions', 'previous_response_id']), input, store: false };
  const path = route.path.replace(/\/compact(?=$|\?)/, '');
  const wire: ClientRequest = { method: 'POST', path, headers, body: asked };
  const opened = openCompactions(wire, asked, capsules, parts.caller);
  const state = new WholeState(opened, isJson(opened.body) ? opened.body : asked, parts);
  const target = { model: String(body['model'] ?? ''), isStream: false };
  const bytes = text.length + measureReferences(asked, parts);
  const admission = await request.admitModel(target.model, asked, bytes);
  const detached = createDetachedConnection(services.clock);
  connection.listen(() => (connection.stopError ? detached.stop(connection.stopError) : detached.response.destroy()));
  const exchange = new Conversation(
    {
      kind: 'chat',
      id,
      client: route.client,
      wire: opened,
      target,
      connection: detached,
      record,
      admission,
      observer: undefined,
      directory,
      caller,
      session: undefined,
      rule: undefined,
      receivedAt: services.now(),
      state,
    },
    services,
  );
  const result = await state.during(() => exchange.run());
  const { reply } = state;
  if (!reply || result.status >= 400) return forwardFailure(result, reply, request, services);
  const summary = readText(reply);
  return {
    body: {
      id: createId('resp'),
      object: 'response.compaction',
      created_at: Math.floor(Date.now() / 1000),
      output: [{ id: createId('cmp'), type: 'compaction', encrypted_content: sealSummary(summary, capsules, parts.caller) }],
      usage: reply['usage'] ?? null,
    },
  };
}

/** A request with the summaries that its compactions contain; others are left for the upstream. */
export function openCompactions(wire: ClientRequest, body: Json, capsules: Capsules, caller: string): ClientRequest {
  const { input } = body;
  if (!Array.isArray(input) || !input.some(isOwnCompaction)) return wire;
  const opened = input.map((item) => {
    const text = isOwnCompaction(item)
      ? capsules.open(item.encrypted_content.slice(PREFIX.length), buildLabel(caller))
      : undefined;
    return text === undefined ? item : { role: 'user', content: `${INTRODUCTION}\n${text}` };
  });
  const { method, path, headers } = wire;
  return { method, path, headers, body: { ...body, input: opened } };
}

const isOwnCompaction = (item: unknown): item is Json & { encrypted_content: string } =>
  isJson(item) &&
  item['type'] === 'compaction' &&
  typeof item['encrypted_content'] === 'string' &&
  item['encrypted_content'].startsWith(PREFIX);

const sealSummary = (text: string, capsules: Capsules, caller: string): string =>
  PREFIX + capsules.seal(text, buildLabel(caller));

/** A summary belongs to the key that it was made for. */
const buildLabel = (caller: string): string => `compaction\n${caller}`;

const PREFIX = 'cmp1.';

const PROMPT =
  'Summarize this conversation so that it can be continued without the messages above. Keep decisions, facts, names, file paths, open tasks and the state of the work. Respond with the summary alone.';

const INTRODUCTION = 'Summary of the conversation so far:';

/** Keeps a whole response in place of sending it. */
class WholeState extends RequestState {
  reply: Json | undefined;

  override beforeReply(reply: Reply): Promise<void> | undefined {
    if (isJson(reply.body)) this.reply = reply.body;
    return undefined;
  }
}

function forwardFailure(result: Result, reply: Json | undefined, { response }: StateRequest, { redact }: Services): Result {
  response.writeHead(result.status, { 'content-type': 'application/json', 'x-sluice-request-id': result.id });
  response.end(redact(JSON.stringify(reply ?? { error: { message: 'the conversation could not be compacted' } })));
  return result;
}

const pick = (body: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])));

/** The text of a response. */
function readText({ output }: Json): string {
  const parts = Array.isArray(output) ? output.flatMap((item) => (isJson(item) ? item['content'] : [])) : [];
  return parts.map((part) => (isJson(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}
