/** Blocks of a response to output items, and the envelope around them. */

import type { BlockDelta, MessageDelta, MessageStart } from '../../canonical/events.ts';
import type { Citation, ContentBlock, ImageBlock, OpaqueBlock, TextBlock, ThinkingBlock } from '../../canonical/message.ts';
import type { Extensions, SignedBlob } from '../../canonical/protocol.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { chooseModel, isForeign } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { objectOrEmpty } from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { encodeBlob } from './blocks.ts';
import {
  CallsEncoder,
  ItemList,
  type ItemStatus,
  MessageItem,
  type RawItem,
  type ReasoningChannel,
  ReasoningItem,
  type Send,
} from './output-items.ts';
import { encodeSystem } from './request-encode.ts';
import { encodeText, encodeThinking } from './settings.ts';
import { encodeToolChoice, encodeTools } from './tools.ts';
import { PROTOCOL, readExtensions } from './wire.ts';

interface WrittenText {
  kind: 'text';
  block: TextBlock;
  /** Absent until there is text: empty texts have no item. */
  item: MessageItem | undefined;
  signature: SignedBlob | undefined;
  isStopped: boolean;
}

interface WrittenThinking {
  kind: 'thinking';
  item: ReasoningItem;
  channel: ReasoningChannel;
  /** The index of the block, which keeps its parts apart from those of others. */
  at: number;
}

/** How a block is written. `lost`: it has no form here, and its deltas are ignored. */
type Written = WrittenText | WrittenThinking | { kind: 'call' } | { kind: 'raw'; item: RawItem } | { kind: 'lost' };

/** The separator between two summaries in the text of a block. */
const SUMMARY_SEPARATOR = '\n\n';

/** Encodes blocks as output items, for streams and whole responses. Several items may be open at once. */
export class OutputEncoder {
  readonly #context: CodecContext;
  readonly #list: ItemList;
  readonly #calls: CallsEncoder;
  readonly #blocks = new Map<number, Written>();
  readonly #current: CurrentItem;
  hasText = false;
  hasRefusal = false;

  /** Without `send` only the items are built, and no events are sent. */
  constructor(responseId: string, context: CodecContext, send?: Send) {
    this.#context = context;
    this.#list = new ItemList(responseId, context, send);
    this.#calls = new CallsEncoder(this.#list, context);
    this.#current = new CurrentItem(this.#list);
  }

  /** Clients show summaries; full reasoning only where the protocol's own server sends it. */
  get #isOwn(): boolean {
    const { source, target } = this.#context;
    return (source ?? target?.provider.protocol ?? PROTOCOL) === PROTOCOL;
  }

  get items(): JsonObject[] {
    return this.#list.items.map(({ json }) => json);
  }

  /** Starts a block and writes the content that it starts with. */
  start(at: number, block: ContentBlock): void {
    this.#calls.settle('completed');
    const written = this.#startBlock(at, block);
    this.#blocks.set(at, written);
    if (written.kind === 'text') this.#writeStart(written);
  }

  #startBlock(at: number, block: ContentBlock): Written {
    switch (block.type) {
      case 'text':
        return { kind: 'text', block, item: undefined, signature: block.signature, isStopped: false };
      case 'thinking':
        return this.#startThinking(at, block);
      case 'tool_use':
        this.#current.close();
        if (block.kind === 'server' || block.kind === 'mcp')
          return this.#drop(
            at,
            'server_tool_use',
            `${block.name} was run by the provider and is not supported by the client protocol; dropped`,
          );
        this.#calls.start(at, block);
        return { kind: 'call' };
      case 'opaque':
        return this.#startOpaque(at, block);
      case 'image':
        return this.#startImage(at, block);
      case 'audio':
      case 'file':
      case 'tool_result':
        return this.#drop(at, block.type, `${block.type} blocks in responses are not supported by OpenAI Responses; dropped`);
      default:
        return block satisfies never;
    }
  }

  /** Writes a delta of a block. */
  delta(at: number, delta: BlockDelta): void {
    const written = this.#blocks.get(at);
    if (!written) return;
    switch (delta.type) {
      case 'text_delta':
        if (written.kind === 'text') this.#write(written, delta);
        return;
      case 'thinking_delta':
        if (written.kind === 'thinking') this.#think(written, delta.thinking, delta.summary_index);
        return;
      case 'input_json_delta':
        this.#calls.write(at, delta.partial_json);
        return;
      case 'input_text_delta':
        this.#calls.write(at, delta.text);
        return;
      case 'signature_delta':
        this.#sign(at, written, delta.signature);
        return;
      case 'citations_delta':
        if (written.kind === 'text') this.#cite(written, delta.citation);
        return;
      case 'opaque_delta':
      case 'audio_delta':
        return; // the finished item has all data, or the block was dropped
      default:
        delta satisfies never;
    }
  }

  /** Ends a block; `final` is its corrected form if it changed. */
  stop(at: number, final: ContentBlock | undefined): void {
    const written = this.#blocks.get(at);
    switch (written?.kind) {
      case 'text':
        this.#stopText(written);
        return;
      case 'thinking':
        written.item.closePart();
        if (final?.type === 'thinking' && !written.item.isDone) Object.assign(written.item.json, readItemFields(final));
        return;
      case 'call':
        this.#calls.stop(at, final?.type === 'tool_use' ? final : undefined);
        return;
      case 'raw':
        if (final?.type === 'opaque' && !written.item.isDone) written.item.replace(objectOrEmpty(final.raw));
        written.item.close();
        return;
      default:
        return;
    }
  }

  /**
   * Applies blocks that changed after they had stopped. Sent events stay, but the whole response has the final items.
   */
  amend(late: NonNullable<MessageDelta['late_blocks']>): void {
    for (const { index, content_block: block } of late) {
      const written = this.#blocks.get(index);
      if (block.type === 'opaque' && written?.kind === 'raw') written.item.replace(objectOrEmpty(block.raw));
      if (block.type !== 'tool_use' || this.#calls.amend(index, block)) continue;
      const message = 'the source changed a tool call after it was sent; the change is dropped';
      noteApproximated(this.#context, { path: `/content/${index}`, feature: 'content.tool_use', message });
    }
  }

  /** Closes all open items. `late`: fields of items that arrived after their blocks had stopped. */
  finish(status: ItemStatus, late: readonly unknown[] = []): void {
    this.#calls.settle(status);
    for (const item of this.#list.items) if (!item.isDone) item.close(status);
    const byId = new Map(late.filter(isObject).map((item) => [item['id'], item]));
    if (byId.size === 0) return;
    for (const { json } of this.#list.items) {
      const { id, type } = json;
      Object.assign(json, byId.get(id), { id, type });
    }
  }

  /** Writes the provider's explanation of a refusal if the model wrote none. */
  refuse(explanation: string): void {
    const item = this.#current.messageFor({ type: 'text', text: '', refusal: true });
    item.write(explanation, undefined);
    item.closePart();
    this.hasRefusal = true;
  }

  #writeStart(written: WrittenText): void {
    this.#write(written, written.block);
    for (const citation of written.block.citations ?? []) this.#cite(written, citation);
  }

  #write(written: WrittenText, { text, logprobs }: Pick<TextBlock, 'text' | 'logprobs'>): void {
    if (text === '' && !logprobs) return;
    const item = this.#openItem(written);
    if (!item) return;
    item.write(text, logprobs);
    if (written.block.refusal) this.hasRefusal = true;
    else this.hasText = true;
  }

  #cite(written: WrittenText, citation: Citation): void {
    this.#openItem(written)?.cite(citation);
  }

  /** The message item of a text, started on first use; undefined if another text has been started since. */
  #openItem(written: WrittenText): MessageItem | undefined {
    if (written.isStopped || (written.item && this.#current.block !== written.block)) return undefined;
    written.item ??= this.#current.messageFor(written.block);
    return written.item;
  }

  #stopText(written: WrittenText): void {
    if (written.isStopped) return;
    written.isStopped = true;
    if (this.#current.block === written.block) written.item?.closePart();
    if (written.signature) this.#carryText(written.signature);
  }

  #startThinking(at: number, block: ThinkingBlock): Written {
    const item = this.#current.reasoningFor(block);
    const { variant, thinking, summary_parts: summary, signature } = block;
    const channel = variant === 'full' && this.#isOwn ? 'full' : 'summary';
    const parts = channel === 'summary' && summary ? summary : [thinking];
    if (variant !== 'redacted' && !item.isDone)
      for (const [i, text] of parts.entries())
        if (text !== '') item.think(text, channel, partKey(at, parts.length > 1 ? i : undefined));
    if (signature) item.sign(encodeBlob(signature, 'self', this.#context));
    return { kind: 'thinking', item, channel, at };
  }

  #think({ item, channel, at }: WrittenThinking, text: string, summary: number | undefined): void {
    if (text === '' || item.isDone) return;
    const key = partKey(at, summary);
    const isBorder = summary !== undefined && summary > 0 && text === SUMMARY_SEPARATOR && !item.isOpen(channel, key);
    item.think(isBorder ? '' : text, channel, key);
  }

  #startOpaque(at: number, { origin, raw, text }: OpaqueBlock): Written {
    if (origin !== PROTOCOL)
      return text === undefined
        ? this.#drop(at, 'opaque', `a block specific to ${origin} is not supported by OpenAI Responses; dropped`)
        : { kind: 'text', block: { type: 'text', text }, item: undefined, signature: undefined, isStopped: false };
    this.#current.close();
    const item = objectOrEmpty(raw);
    return { kind: 'raw', item: this.#list.raw({ type: 'unknown', ...item }, item['id'], 'item') };
  }

  #startImage(at: number, { source }: ImageBlock): Written {
    if (source.data === undefined)
      return this.#drop(at, 'image', 'an image without data is not supported by OpenAI Responses; dropped');
    const message = 'image blocks are not supported by OpenAI Responses; sent as an image_generation_call';
    noteApproximated(this.#context, { path: `/content/${at}`, feature: 'content.image', message });
    this.#current.close();
    const item = { type: 'image_generation_call', status: 'completed', result: source.data };
    return { kind: 'raw', item: this.#list.raw(item, undefined, 'ig') };
  }

  #sign(at: number, written: Written, signature: SignedBlob): void {
    switch (written.kind) {
      case 'thinking':
        if (written.item.isDone)
          noteApproximated(this.#context, {
            path: `/content/${at}`,
            feature: 'content.signature',
            message: 'the signature arrived after its item was done; sent only in the final response',
          });
        written.item.sign(encodeBlob(signature, 'self', this.#context));
        return;
      case 'call':
        this.#calls.sign(at, signature);
        return;
      case 'text':
        if (written.isStopped) this.#carryText(signature);
        else written.signature = signature;
        return;
      case 'raw':
      case 'lost':
        return;
      default:
        written satisfies never;
    }
  }

  /** Writes the signature of a text as a carrier item after it. */
  #carryText(signature: SignedBlob): void {
    this.#current.close();
    this.#list.carrier(signature, 'self');
  }

  #drop(at: number, feature: string, message: string): Written {
    noteDropped(this.#context, { path: `/content/${at}`, feature: `content.${feature}`, message });
    return { kind: 'lost' };
  }
}

/** Unknown fields of a reasoning item. */
function readItemFields(block: ThinkingBlock): JsonObject {
  const { item_id: _, ...fields } = readExtensions(block);
  return fields;
}

const partKey = (at: number, summary: number | undefined): string => `${at} ${summary}`;

/** The message or reasoning item that the next block may continue; it stays open until another item starts. */
export class CurrentItem {
  readonly #list: ItemList;
  #item: MessageItem | ReasoningItem | undefined;
  /** The block that was last written to it. */
  #block: ContentBlock | undefined;

  constructor(list: ItemList) {
    this.#list = list;
  }

  get block(): ContentBlock | undefined {
    return this.#block;
  }

  /** The message of a text block. Adjacent texts share a message, each as a part, unless the source has two. */
  messageFor(block: TextBlock): MessageItem {
    const current =
      this.#item instanceof MessageItem && this.#block && isSameMessage(this.#block, block) ? this.#item : undefined;
    const item = current ?? this.#open(() => this.#message(block));
    item.openPart(block.refusal === true);
    this.#block = block;
    return item;
  }

  #message(block: TextBlock): MessageItem {
    const { item_id: wanted, phase } = readExtensions(block);
    return this.#list.message(wanted, typeof phase === 'string' ? { phase } : {});
  }

  /** The reasoning item of a block. Blocks of one item (a summary and the full text) share it. */
  reasoningFor(block: ThinkingBlock): ReasoningItem {
    const { signature } = block;
    const wanted = readExtensions(block)['item_id'] ?? (signature?.origin === PROTOCOL ? signature.item_id : undefined);
    if (this.#item instanceof ReasoningItem && wanted !== undefined && this.#item.json['id'] === wanted) return this.#item;
    const item = this.#open(() => this.#list.reasoning(wanted, readItemFields(block)));
    this.#block = block;
    return item;
  }

  #open<T extends MessageItem | ReasoningItem>(create: () => T): T {
    this.close();
    const item = create();
    this.#item = item;
    return item;
  }

  /** Closes the item. */
  close(): void {
    this.#item?.close('completed');
    this.#item = undefined;
    this.#block = undefined;
  }
}

/**
 * Whether two texts are parts of one message: they have the same item id and phase; texts of other protocols have none.
 */
const isSameMessage = (before: ContentBlock, block: TextBlock): boolean =>
  readExtensions(before)['item_id'] === readExtensions(block)['item_id'] &&
  readExtensions(before)['phase'] === readExtensions(block)['phase'];

// ---- envelope

/** The fields that a response has from `response.created` to its end. */
export interface Envelope {
  id: string;
  /** The response came in another protocol. */
  isForeign: boolean;
  /** In wire order; `status`, `output` and the like are overwritten later. */
  fields: JsonObject;
}

/**
 * Required by the SDK's types or by the Open Responses schema; an upstream of another protocol reports none of them.
 */
const UNREPORTED = {
  access_programs: null,
  completed_at: null,
  frequency_penalty: 0,
  presence_penalty: 0,
  service_tier: 'default',
} as const satisfies JsonObject;

/** Builds the envelope of a response. */
export function encodeEnvelope(message: MessageStart['message'], context: CodecContext, echo?: Echo): Envelope {
  const foreign = isForeign(message, PROTOCOL, context);
  const { id: set, ...fields } = context.envelope ?? NO_FIELDS;
  const own = foreign ? encodeId(message.id) : message.id || context.newId('resp_');
  const id = typeof set === 'string' ? set : own;
  return {
    id,
    isForeign: foreign,
    fields: {
      id,
      object: 'response',
      created_at: Math.floor(message.created ?? context.now()),
      status: 'in_progress',
      error: null,
      incomplete_details: null,
      model: chooseModel(message.model, context) || message.model,
      output: [],
      ...(foreign && UNREPORTED),
      ...buildDefaults(foreign),
      ...(context.request && echo?.(context.request, context)),
      ...encodeTier(message.service_tier, foreign, context),
      // Not a field of OpenAI, but other servers of this protocol send it.
      ...(!foreign && message.system_fingerprint !== undefined && { system_fingerprint: message.system_fingerprint }),
      usage: null,
      ...fields,
    },
  };
}

const NO_FIELDS: JsonObject = {};

/** Required by the official type of a response, which allows null for none of them. */
const REQUIRED = ['object', 'created_at', 'model', 'output', 'parallel_tool_calls', 'tool_choice', 'tools'] as const;

/**
 * The fields that a response of this protocol leaves out although clients require them. One with all required
 * fields stays as it is: its server may be older or newer than the other ones.
 */
export function completeEnvelope(response: JsonObject, context: CodecContext, echo?: Echo): JsonObject {
  if (REQUIRED.every((name) => response[name] !== undefined)) return NO_FIELDS;
  const { id, created_at: created, model } = response;
  const message = {
    id: typeof id === 'string' ? id : '',
    model: typeof model === 'string' ? model : '',
    ...(typeof created === 'number' && { created }),
  };
  const { fields } = encodeEnvelope(message, { ...context, envelope: undefined }, echo);
  const known: JsonObject = {
    ...fields,
    ...UNREPORTED,
    ...buildDefaults(true),
    ...(context.request && echo?.(context.request, context)),
  };
  // What the response says of itself is not known better here.
  const { id: _id, status, usage, ...filled } = known;
  // Until a response ends, its usage is null.
  if (response['status'] === status) Object.assign(filled, { usage });
  if (response['status'] === 'completed') Object.assign(filled, { completed_at: Math.floor(context.now()) });
  return Object.fromEntries(Object.entries(filled).filter(([name]) => response[name] === undefined));
}

const encodeId = (id: string): string => (id.startsWith('resp_') ? id : `resp_${id.replace(/[^A-Za-z0-9_-]/g, '_')}`);

/** The fields of a response that repeat the request, as the API fills them where the request has none. */
const buildDefaults = (foreign: boolean): JsonObject => {
  // OpenAI reports the default for an unset field; for another upstream of this protocol it is unknown.
  const unset = foreign ? 1 : null;
  return {
    background: false,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    parallel_tool_calls: true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    store: false,
    temperature: unset,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_logprobs: 0,
    top_p: unset,
    truncation: 'disabled',
    user: null,
  };
};

/**
 * The fields of a response that repeat those of its request. An argument of the encoders, because it needs those of
 * requests: a repair has no request, and its bundle does not contain them.
 */
export type Echo = (request: CanonicalRequest, context: CodecContext) => JsonObject;

/** Echoes what the request sets; `encodeEnvelope` has the defaults of everything else. */
export const echoRequest: Echo = (request, context) => {
  const { parameters, state, system, tools, tool_choice: choice, metadata, store, truncation } = request;
  const kept = objectOrEmpty(request.extensions?.[PROTOCOL]);
  const quiet: CodecContext = { ...context, note: () => {}, policy: {} };
  const { text = {} } = encodeText(request, objectOrEmpty(kept['text']), quiet);
  const { reasoning } = encodeThinking(request.thinking, kept['reasoning'], quiet);
  return dropUnset({
    background: state?.background,
    instructions: encodeSystem(system ?? [], false).instructions,
    max_output_tokens: parameters.max_tokens,
    max_tool_calls: parameters.max_tool_calls,
    metadata,
    parallel_tool_calls: request.parallel_tool_use,
    previous_response_id: state?.previous_response_id,
    prompt_cache_key: request.prompt_cache?.key,
    reasoning: { effort: null, summary: null, ...objectOrEmpty(reasoning) },
    safety_identifier: request.user_id,
    store,
    temperature: parameters.temperature,
    text: { format: { type: 'text' }, ...objectOrEmpty(text) },
    tool_choice: choice && encodeToolChoice(choice, tools ?? [], kept['tool_choice']),
    tools: encodeTools(tools ?? [], true).map(completeTool),
    top_logprobs: parameters.top_logprobs,
    top_p: parameters.top_p,
    truncation,
  });
};

const dropUnset = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));

/** Schemas require these fields of an echoed function, even if the request left them out. */
const completeTool = (tool: JsonObject): JsonObject =>
  tool['type'] === 'function' ? { description: null, parameters: null, strict: false, ...tool } : tool;

/** Wire names of the service tiers of other protocols; both protocols of OpenAI have the same. */
const SERVICE_TIERS: Record<string, string> = {
  standard: 'default',
  default: 'default',
  auto: 'auto',
  flex: 'flex',
  scale: 'scale',
  priority: 'priority',
};

/** The service tier in OpenAI's names, or no field: not every client accepts null. */
export function encodeTier(tier: string | undefined, foreign: boolean, context: CodecContext): { service_tier?: string } {
  if (tier === undefined) return {};
  if (!foreign) return { service_tier: tier };
  const known = Object.hasOwn(SERVICE_TIERS, tier) ? SERVICE_TIERS[tier] : undefined;
  if (known !== undefined) return { service_tier: known };
  noteDropped(context, {
    path: '/service_tier',
    feature: 'service_tier',
    message: `service tier "${tier}" is not supported by OpenAI Responses; dropped`,
  });
  return {};
}

/** The extensions of a response of this protocol, which override what is derived from the request. */
export function readEnvelopeExtensions(extensions: Extensions | undefined): JsonObject {
  const { finish_reason: _, late_items: __, ...fields } = objectOrEmpty(extensions?.[PROTOCOL]);
  return fields;
}
