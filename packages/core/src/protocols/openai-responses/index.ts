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
import { OPENAI_RESPONSES_TEXTS } from '../../rules/openai-responses.ts';
import { decodeStream } from './stream-decode.ts';
import { nonBlank, readType } from './wire.ts';

/** OpenAI Responses: `POST /v1/responses`. */
export const openaiResponses: Protocol = {
  id: 'openai-responses',
  rules: OPENAI_RESPONSES_TEXTS,
  streamDecoder: decodeStream,
  recognises: (payload, event) => payload['object'] === 'response' || isResponseEvent(payload, event),
  extras: collectExtras,
  callFields: readCallFields,
};

/** If only the event line has a name, it must be a known one: GigaChat has other events that start with `response.`. */
const isResponseEvent = ({ type }: JsonObject, event = ''): boolean =>
  typeof type === 'string' ? type.startsWith('response.') : event.startsWith('response.') && readType(event).action !== undefined;

/** The content of a message other than text, reasoning and calls, in wire form. */
function collectExtras({ content, extensions }: CanonicalResponse): JsonObject {
  const late = readLateItems(extensions?.['openai-responses']?.['late_items']);
  const reasoning = buildReasoningItems(content, late);
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

/** Fields of reasoning items that arrived after their block had stopped, by item id. */
function readLateItems(list: unknown): Map<string, JsonObject> {
  const late = new Map<string, JsonObject>();
  for (const item of Array.isArray(list) ? list : []) {
    const id = isObject(item) ? nonBlank(item['id']) : undefined;
    if (id !== undefined) late.set(id, item);
  }
  return late;
}

/** The reasoning items that can be sent back: those with an id or encrypted content. Blocks of one item are merged. */
function buildReasoningItems(content: readonly ContentBlock[], late: Map<string, JsonObject>): JsonObject[] {
  const groups = new Map<string | ThinkingBlock, ThinkingBlock[]>();
  for (const block of content) {
    if (block.type !== 'thinking') continue;
    const id = nonBlank(readOwn(block)['item_id']) ?? block.signature?.item_id;
    if (id === undefined && !block.signature) continue;
    const group = groups.get(id ?? block);
    if (group) group.push(block);
    else groups.set(id ?? block, [block]);
  }
  return [...groups].map(([id, blocks]) => buildReasoningItem(blocks, typeof id === 'string' ? { id, ...late.get(id) } : {}));
}

const readOwn = (node: { extensions?: ContentBlock['extensions'] }): JsonObject => node.extensions?.['openai-responses'] ?? {};

function buildReasoningItem(blocks: ThinkingBlock[], known: JsonObject): JsonObject {
  const summary = blocks.flatMap(({ variant, summary_parts, thinking }) =>
    variant === 'summary' ? (summary_parts ?? [thinking]) : [],
  );
  const full = blocks.flatMap(({ variant, thinking }) => (variant !== 'summary' && thinking !== '' ? [thinking] : []));
  const signature = blocks.find((block) => block.signature?.origin === 'openai-responses')?.signature;
  const [first] = blocks;
  const { item_id: _, ...others } = first ? readOwn(first) : {};
  return {
    ...others,
    type: 'reasoning',
    ...known,
    // If ids change from event to event, the id that came with the encrypted content belongs to it.
    ...(signature?.item_id !== undefined && { id: signature.item_id }),
    summary: summary.map((text) => ({ type: 'summary_text', text })),
    ...(full.length > 0 && { content: full.map((text) => ({ type: 'reasoning_text', text })) }),
    ...(signature && { encrypted_content: signature.value }),
  };
}

const encodeLogprob = ({ top = [], ...token }: TokenLogprob): JsonObject => ({ ...token, top_logprobs: top });

/** The fields of a call without a canonical place. */
function readCallFields(call: ToolUseBlock): JsonObject {
  return { ...readOwn(call), ...(call.namespace !== undefined && { namespace: call.namespace }) };
}
