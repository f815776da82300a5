import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Citation, ContentBlock, ImageBlock, OpaqueBlock, TextBlock, ThinkingBlock } from '../../canonical/blocks.ts';
import type { BlockDelta, MessageDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { CallsEncoder } from './calls-encode.ts';
import { CurrentItem, itemFields } from './current-item.ts';
import type { ItemStatus, Send } from './item-events.ts';
import { ItemList } from './item-list.ts';
import { PROTOCOL } from './kept.ts';
import type { MessageItem } from './message-draft.ts';
import { encodeBlob } from './parts-encode.ts';
import type { RawItem } from './raw-draft.ts';
import type { ReasoningChannel, ReasoningItem } from './reasoning-draft.ts';

interface WrittenText {
  kind: 'text';
  block: TextBlock;
  /** Absent until there is something to say: empty texts have no item. */
  item: MessageItem | undefined;
  signature: SignedBlob | undefined;
  isStopped: boolean;
}

interface WrittenThinking {
  kind: 'thinking';
  item: ReasoningItem;
  channel: ReasoningChannel;
  /** Its place among the blocks, which tells its parts from others'. */
  at: number;
}

/** What became of a block. `lost`: it has no form here, and its deltas say nothing. */
type Written = WrittenText | WrittenThinking | { kind: 'call' } | { kind: 'raw'; item: RawItem } | { kind: 'lost' };

/** The separator that stands between two summaries in the text of a block. */
const BETWEEN_SUMMARIES = '\n\n';

const partKey = (at: number, summary: number | undefined): string => `${at} ${summary}`;

/** Blocks to output items, live or whole. Several items may be open at once. */
export class OutputEncoder {
  readonly #context: CodecContext;
  readonly #list: ItemList;
  readonly #calls: CallsEncoder;
  readonly #blocks = new Map<number, Written>();
  readonly #current: CurrentItem;
  hasText = false;
  hasRefusal = false;

  /** Without `send` nothing but the items is made. */
  constructor(responseId: string, context: CodecContext, send?: Send) {
    this.#context = context;
    this.#list = new ItemList(responseId, context, send);
    this.#calls = new CallsEncoder(this.#list, context);
    this.#current = new CurrentItem(this.#list);
  }

  get items(): JsonObject[] {
    return this.#list.items.map(({ json }) => json);
  }

  start(at: number, block: ContentBlock): void {
    this.#calls.settle('completed');
    const written = this.#begin(at, block);
    this.#blocks.set(at, written);
    if (written.kind === 'text') this.#writeStart(written);
  }

  #begin(at: number, block: ContentBlock): Written {
    switch (block.type) {
      case 'text':
        return { kind: 'text', block, item: undefined, signature: block.signature, isStopped: false };
      case 'thinking':
        return this.#startThinking(at, block);
      case 'tool_use':
        this.#current.close();
        if (block.kind === 'server' || block.kind === 'mcp')
          return this.#lose(at, 'server_tool_use', `${block.name} was called and run by the provider`);
        this.#calls.start(at, block);
        return { kind: 'call' };
      case 'opaque':
        return this.#startOpaque(at, block);
      case 'image':
        return this.#startImage(at, block);
      case 'audio':
      case 'file':
      case 'tool_result':
        return this.#lose(at, block.type, `an answer of OpenAI Responses holds no ${block.type}`);
      default:
        return block satisfies never;
    }
  }

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
        return; // the item is whole when it is done, or was lost
      default:
        delta satisfies never;
    }
  }

  stop(at: number, final: ContentBlock | undefined): void {
    const written = this.#blocks.get(at);
    switch (written?.kind) {
      case 'text':
        this.#stopText(written);
        return;
      case 'thinking':
        written.item.closePart();
        if (final?.type === 'thinking' && !written.item.isDone) Object.assign(written.item.json, itemFields(final));
        return;
      case 'call':
        this.#calls.stop(at, final?.type === 'tool_use' ? final : undefined);
        return;
      case 'raw':
        if (final?.type === 'opaque' && !written.item.isDone) written.item.replace(objectOf(final.raw));
        written.item.close();
        return;
      default:
        return;
    }
  }

  /** Blocks that changed after they had stopped. What went out cannot be called back, but the whole response has the items as they are. */
  amend(late: NonNullable<MessageDelta['late_blocks']>): void {
    for (const { index, content_block: block } of late) {
      const written = this.#blocks.get(index);
      if (block.type === 'opaque' && written?.kind === 'raw') written.item.replace(objectOf(block.raw));
      if (block.type !== 'tool_use' || this.#calls.amend(index, block)) continue;
      const message = 'the source changed a call after it had been passed on';
      approximate(this.#context, { path: `/content/${index}`, feature: 'content.tool_use', message });
    }
  }

  /** Everything that is still open ends with the response. `late`: fields of items that came when their blocks had stopped. */
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

  /** What the provider says about a refusal, when the model said nothing. */
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

  /** Undefined when another text has taken the place: no block of text is written while another is. */
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
    const channel = variant === 'full' ? 'full' : 'summary';
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
    const isBorder = summary !== undefined && summary > 0 && text === BETWEEN_SUMMARIES && !item.isOpen(channel, key);
    item.think(isBorder ? '' : text, channel, key);
  }

  #startOpaque(at: number, { origin, raw, text }: OpaqueBlock): Written {
    if (origin !== PROTOCOL)
      return text === undefined
        ? this.#lose(at, 'opaque', `a block of ${origin} has no form in OpenAI Responses`)
        : { kind: 'text', block: { type: 'text', text }, item: undefined, signature: undefined, isStopped: false };
    this.#current.close();
    const item = objectOf(raw);
    return { kind: 'raw', item: this.#list.raw({ type: 'unknown', ...item }, item['id'], 'item') };
  }

  #startImage(at: number, { source }: ImageBlock): Written {
    if (source.data === undefined) return this.#lose(at, 'image', 'an image without its data has no form in OpenAI Responses');
    const message = 'the image is written as the result of an image_generation_call';
    approximate(this.#context, { path: `/content/${at}`, feature: 'content.image', message });
    this.#current.close();
    const item = { type: 'image_generation_call', status: 'completed', result: source.data };
    return { kind: 'raw', item: this.#list.raw(item, undefined, 'ig') };
  }

  #sign(at: number, written: Written, signature: SignedBlob): void {
    switch (written.kind) {
      case 'thinking':
        if (written.item.isDone)
          approximate(this.#context, {
            path: `/content/${at}`,
            feature: 'content.signature',
            message: 'the signature came after its item was done; only the response at the end has it',
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

  /** A text is signed when it has been written: the item behind it says so. */
  #carryText(signature: SignedBlob): void {
    this.#current.close();
    this.#list.carrier(signature, 'self');
  }

  #lose(at: number, feature: string, message: string): Written {
    drop(this.#context, { path: `/content/${at}`, feature: `content.${feature}`, message });
    return { kind: 'lost' };
  }
}
