/** `/v1/responses/compact` for upstreams that cannot compact: the model writes a summary, which travels sealed. */

import type { ClientRequest } from '@sluice/core';
import type { ClientConnection } from '../exchange/client-connection.ts';
import { Conversation } from '../exchange/conversation.ts';
import type { Result } from '../exchange/model-request.ts';
import type { StateRequest } from '../exchange/state.ts';
import type { Reply, Services } from '../exchange/types.ts';
import type { Capsules } from './capsule.ts';
import { createDetachedConnection } from './detached.ts';
import { createCompactionLost, createNoSummary } from './errors.ts';
import { createId, isJson, type Json, readInput } from './items.ts';
import { measureReferences, RequestState, type StateParts } from './request-state.ts';

/** Summarizes a conversation. Returns the compacted response and its exchange, or the result of a request that failed. */
export async function compact(
  request: StateRequest,
  { text, body }: { text: string; body: Json },
  parts: StateParts,
  capsules: Capsules,
  services: Services,
): Promise<{ body: Json; result: Result } | Result> {
  const { route, headers, connection } = request;
  const input = [...readInput(body['input']), { role: 'user', content: PROMPT }];
  const { tools } = body;
  const hasTools = Array.isArray(tools) && tools.length > 0;
  const asked: Json = { ...pick(body, FIELDS), input, store: false, ...(hasTools && { tools, tool_choice: 'none' }) };
  const path = route.path.replace(/\/compact(?=$|\?)/, '');
  const opened = openCompactions({ method: 'POST', path, headers, body: asked }, asked, capsules, parts.caller);
  const state = new WholeState(opened, isJson(opened.body) ? opened.body : asked, parts);
  const detached = createDetachedConnection(services.clock);
  const stop = (): void => {
    if (connection.stopError) detached.stop(connection.stopError);
    else detached.response.destroy();
  };
  // Before anything is waited for: a request must not start for a client that has left meanwhile.
  connection.listen(stop);
  if (connection.isInterrupted) stop();
  const bytes = Buffer.byteLength(text) + PROMPT.length + measureReferences(asked, parts);
  const result = await state.during(() => run(request, { opened, detached, state, bytes }, services));
  const { reply } = state;
  if (!reply || result.status >= 400) return forwardFailure(result, reply, request, services);
  const summary = readSummary(reply, result);
  const sealed = sealSummary(summary, capsules, parts.caller);
  return {
    result,
    body: {
      id: createId('resp'),
      object: 'response.compaction',
      created_at: Math.floor(Date.now() / 1000),
      output: [{ id: createId('cmp'), type: 'compaction', encrypted_content: sealed }],
      usage: reply['usage'] ?? null,
    },
  };
}

/** What the summary depends on, beside `tools`: upstreams reject calls in the input without the tools that were called. */
const FIELDS = ['model', 'instructions', 'previous_response_id'];

interface Run {
  opened: ClientRequest;
  detached: ClientConnection;
  state: WholeState;
  bytes: number;
}

/** Asks the model for the summary. */
async function run(request: StateRequest, { opened, detached, state, bytes }: Run, services: Services): Promise<Result> {
  const { route, directory, record, id, caller } = request;
  const target = { model: isJson(opened.body) ? String(opened.body['model'] ?? '') : '', isStream: false };
  const admission = await request.admitModel(target.model, opened.body, bytes);
  const exchange = new Conversation(
    {
      ...{ kind: 'chat', id, client: route.client, wire: opened, target, connection: detached, record, admission },
      ...{ observer: undefined, directory, caller, session: undefined, rule: undefined, receivedAt: services.now(), state },
    },
    services,
  );
  return exchange.run();
}

/**
 * A request with the summaries that its compactions contain; others are left for the upstream. Throws for a compaction of
 * a gateway that cannot be opened: the client has replaced its conversation by it.
 */
export function openCompactions(wire: ClientRequest, body: Json, capsules: Capsules, caller: string): ClientRequest {
  const { input } = body;
  if (!Array.isArray(input) || !input.some(isOwnCompaction)) return wire;
  const opened = input.map((item, place) => {
    if (!isOwnCompaction(item)) return item;
    const text = capsules.open(item.encrypted_content.slice(PREFIX.length), buildLabel(caller));
    if (text === undefined) throw createCompactionLost(place);
    return { role: 'user', content: `${INTRODUCTION}\n${text}` };
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

/** The text of the summary. Throws for a response that is none: the client would replace its conversation by it. */
function readSummary({ status, output }: Json, { provider }: Result): string {
  const messages = Array.isArray(output) ? output.filter((item) => isJson(item) && item['type'] === 'message') : [];
  const parts = messages.flatMap(({ content }: Json) => (Array.isArray(content) ? content.filter(isJson) : []));
  const text = parts.map((part) => (part['type'] === 'output_text' ? String(part['text'] ?? '') : '')).join('');
  if (status !== 'completed') throw createNoSummary(provider, 'the summary is incomplete');
  if (parts.some(({ type }) => type === 'refusal')) throw createNoSummary(provider, 'the model refused to summarize it');
  if (text.trim() === '') throw createNoSummary(provider, 'the summary is empty');
  return text;
}
