import type {
  CanonicalResponse,
  ContentBlock,
  TextBlock,
  ThinkingBlock,
  TokenLogprob,
  ToolUseBlock,
} from '../../canonical/message.ts';
import type { Protocol } from '../../codec/protocol.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { decodeStream } from './stream-decode.ts';
import { filled, readType } from './wire.ts';

const own = (node: { extensions?: ContentBlock['extensions'] }): JsonObject => node.extensions?.['openai-responses'] ?? {};

/** The fields of a call that only this protocol has. */
export function callFields(call: ToolUseBlock): JsonObject {
  return { ...own(call), ...(call.namespace !== undefined && { namespace: call.namespace }) };
}

/** What must survive of a message beside text, reasoning and calls, in the shapes of the wire. */
export function extras({ content, extensions }: CanonicalResponse): JsonObject {
  const late = lateItems(extensions?.['openai-responses']?.['late_items']);
  const reasoning = reasoningItems(content, late);
  const texts = content.filter((block): block is TextBlock => block.type === 'text');
  const annotations = texts.flatMap(({ citations = [] }) => citations.flatMap(({ raw }) => raw ?? []));
  const logprobs = texts.flatMap((block) => (block.logprobs ?? []).map(encodeLogprob));
  const blocks = content.flatMap((block) => (block.type === 'opaque' && block.origin === 'openai-responses' ? [block.raw] : []));
  return {
    ...(reasoning.length > 0 && { reasoning_items: reasoning }),
    ...(annotations.length > 0 && { annotations }),
    ...(blocks.length > 0 && { blocks }),
    ...(logprobs.length > 0 && { logprobs }),
  };
}

/** Fields of reasoning items that came after their block had stopped. */
function lateItems(list: unknown): Map<string, JsonObject> {
  const late = new Map<string, JsonObject>();
  for (const item of Array.isArray(list) ? list : []) {
    const id = isObject(item) ? filled(item['id']) : undefined;
    if (id !== undefined) late.set(id, item);
  }
  return late;
}

/** The reasoning that can be sent back: it has an id or a ciphertext. Blocks of one item become one again. */
function reasoningItems(content: readonly ContentBlock[], late: Map<string, JsonObject>): JsonObject[] {
  const groups = new Map<string | ThinkingBlock, ThinkingBlock[]>();
  for (const block of content) {
    if (block.type !== 'thinking') continue;
    const id = filled(own(block)['item_id']) ?? block.signature?.item_id;
    if (id === undefined && !block.signature) continue;
    const group = groups.get(id ?? block);
    if (group) group.push(block);
    else groups.set(id ?? block, [block]);
  }
  return [...groups].map(([id, blocks]) => reasoningItem(blocks, typeof id === 'string' ? { id, ...late.get(id) } : {}));
}

function reasoningItem(blocks: ThinkingBlock[], known: JsonObject): JsonObject {
  const summary = blocks.flatMap(({ variant, summary_parts, thinking }) =>
    variant === 'summary' ? (summary_parts ?? [thinking]) : [],
  );
  const full = blocks.flatMap(({ variant, thinking }) => (variant !== 'summary' && thinking !== '' ? [thinking] : []));
  const signature = blocks.find((block) => block.signature?.origin === 'openai-responses')?.signature;
  const [first] = blocks;
  const { item_id: _, ...others } = first ? own(first) : {};
  return {
    ...others,
    type: 'reasoning',
    ...known,
    // Where ids rotate, the one that came with the ciphertext belongs to it.
    ...(signature?.item_id !== undefined && { id: signature.item_id }),
    summary: summary.map((text) => ({ type: 'summary_text', text })),
    ...(full.length > 0 && { content: full.map((text) => ({ type: 'reasoning_text', text })) }),
    ...(signature && { encrypted_content: signature.value }),
  };
}

const encodeLogprob = ({ top = [], ...token }: TokenLogprob): JsonObject => ({ ...token, top_logprobs: top });

/** The name of the event alone must be a known one: GigaChat has other events that begin with `response.`. */
const isOurs = ({ type }: JsonObject, event = ''): boolean =>
  typeof type === 'string' ? type.startsWith('response.') : event.startsWith('response.') && readType(event).action !== undefined;

/** OpenAI Responses: `POST /v1/responses`. */
export const openaiResponses: Protocol = {
  id: 'openai-responses',
  streamDecoder: decodeStream,
  recognises: (payload, event) => payload['object'] === 'response' || isOurs(payload, event),
  extras,
  callFields,
};
