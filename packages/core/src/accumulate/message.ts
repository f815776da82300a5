import type { BlockDelta, BlockStart, BlockStop, CanonicalStreamEvent, MessageDelta, MessageStart } from '../canonical/events.ts';
import type {
  AudioBlock,
  CanonicalChoice,
  CanonicalResponse,
  CanonicalUsage,
  Citation,
  ContentBlock,
  OpaqueBlock,
  StopReason,
  TextBlock,
  ThinkingBlock,
  ToolUseBlock,
} from '../canonical/message.ts';
import type { CanonicalError } from '../canonical/notes.ts';
import { isObject, parseJson, setOwn } from '../json/json.ts';
import { wellFormed } from './chat-delta.ts';

/**
 * Accumulates canonical events into the complete message, for all protocols.
 *
 * ```ts
 * const acc = new MessageAccumulator();
 * for await (const event of readEvents(response)) acc.push(event);
 * const { message, complete } = acc.finish();
 * ```
 */
export class MessageAccumulator {
  #start: MessageStart['message'] | undefined;
  readonly #choices = new Map<number, ChoiceBuilder>();
  #error: CanonicalError | null = null;
  #stopped = false;

  /** Adds an event. */
  push(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'content_block_delta':
        this.#applyDelta(this.#choice(event.choice).blocks.get(event.index), event.delta);
        return;
      case 'content_block_start':
        this.#startBlock(event);
        return;
      case 'content_block_stop':
        this.#stopBlock(event);
        return;
      case 'message_start':
        this.#start = event.message;
        return;
      case 'message_delta':
        this.#finishChoice(this.#choice(event.choice), event);
        return;
      case 'message_stop':
        this.#stopped = true;
        return;
      case 'error':
        // A truncated stream is not an error: the message is only incomplete.
        this.#error = event.error.code === 'STREAM_TRUNCATED' ? null : event.error;
        return;
      case 'ping':
        return;
      default:
        event satisfies never;
    }
  }

  #finishChoice(choice: ChoiceBuilder, event: MessageDelta): void {
    choice.delta = event;
    for (const { index, content_block } of event.late_blocks ?? []) {
      const block = { ...content_block };
      if (block.type === 'tool_use') finishToolUse(block);
      choice.blocks.set(index, block);
    }
  }

  #choice(index = 0): ChoiceBuilder {
    let choice = this.#choices.get(index);
    if (!choice) {
      choice = { index, blocks: new Map() };
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #startBlock({ index, choice, content_block }: BlockStart): void {
    const block = { ...content_block };
    if (block.type === 'text' && block.citations) block.citations = [...block.citations];
    if (block.type === 'opaque') block.raw = copyRaw(block.raw);
    // Arguments arrive as text and are parsed once, when the block stops.
    if (block.type === 'tool_use') block.input_raw = '';
    this.#choice(choice).blocks.set(index, block);
  }

  #applyDelta(block: ContentBlock | undefined, delta: BlockDelta): void {
    if (!block) return;
    switch (delta.type) {
      case 'text_delta':
        if (block.type === 'text') addText(block, delta);
        return;
      case 'input_json_delta':
        if (block.type === 'tool_use') block.input_raw += delta.partial_json;
        return;
      case 'input_text_delta':
        if (block.type === 'tool_use') block.input_raw += delta.text;
        return;
      case 'thinking_delta':
        if (block.type === 'thinking') addThinking(block, delta.thinking, delta.summary_index);
        return;
      case 'signature_delta':
        if (block.type === 'thinking' || block.type === 'tool_use' || block.type === 'text') block.signature = delta.signature;
        return;
      case 'citations_delta':
        if (block.type === 'text') addCitation(block, delta.citation);
        return;
      case 'audio_delta':
        if (block.type === 'audio') addAudio(block, delta);
        return;
      case 'opaque_delta':
        if (block.type === 'opaque') addOpaque(block, delta.raw);
        return;
      default:
        delta satisfies never;
    }
  }

  #stopBlock({ index, choice, content_block }: BlockStop): void {
    const block = this.#choice(choice).blocks.get(index);
    if (!block) return;
    Object.assign(block, content_block);
    if (block.type === 'tool_use') finishToolUse(block);
  }

  /**
   * A copy that later events change on its own. It costs the number of blocks and of their parts; texts are shared. To
   * show a stream at any place, keep copies and add the events since.
   */
  copy(): MessageAccumulator {
    const copy = new MessageAccumulator();
    copy.#start = this.#start;
    copy.#error = this.#error;
    copy.#stopped = this.#stopped;
    for (const [index, choice] of this.#choices)
      copy.#choices.set(index, { ...choice, blocks: new Map([...choice.blocks].map(([at, block]) => [at, copyBlock(block)])) });
    return copy;
  }

  /** The blocks of the first choice so far. Not copied: later events change them. */
  get content(): ContentBlock[] {
    return [...(this.#main?.blocks.values() ?? [])];
  }

  /** Why the first choice stopped; null while it has not. */
  get stopReason(): StopReason | null {
    return this.#main?.delta?.delta.stop_reason ?? null;
  }

  /** The usage, once the stream has reported it at its end. */
  get usage(): CanonicalUsage | undefined {
    return this.#main?.delta?.usage;
  }

  /** The error that ended the stream; null for a stream that is only truncated. */
  get error(): CanonicalError | null {
    return this.#error;
  }

  get #main(): ChoiceBuilder | undefined {
    return this.#choices.get(0) ?? this.#choices.values().next().value;
  }

  /** The message as far as it is known. Reading it costs its size, so do not read it for every chunk. */
  get message(): CanonicalResponse {
    const main = this.#main;
    const { id = '', model = '', usage, ...rest } = this.#start ?? {};
    const delta = main?.delta;
    const { stop_reason = null, stop_sequence, stop_details } = delta?.delta ?? {};
    const message: CanonicalResponse = { id, model, ...rest, content: cleanBlocks(main), stop_reason };
    if (stop_sequence !== undefined) message.stop_sequence = stop_sequence;
    if (stop_details) message.stop_details = stop_details;
    Object.assign(message, delta?.message);
    const choices = [...this.#choices.values()];
    const finalUsage = delta?.usage ?? choices.find((choice) => choice.delta?.usage)?.delta?.usage;
    if (finalUsage) message.usage = finalUsage;
    else if (usage) message.usage = { input_tokens: 0, output_tokens: 0, ...usage };
    if (delta?.extensions) message.extensions = { ...message.extensions, ...delta.extensions };
    if (choices.length > 1) message.choices = choices.sort((a, b) => a.index - b.index).map(toChoice);
    if (this.#error) message.error = this.#error;
    return message;
  }

  /** The message, whether it is complete, and the error if there was one. */
  finish(): StreamResult {
    const error = this.#error;
    return { message: this.message, complete: this.#stopped || error?.details?.['terminal'] === true, error };
  }
}

/** The message that a stream produced. */
export interface StreamResult {
  message: CanonicalResponse;
  /** A finish reason or a terminal marker was read. */
  complete: boolean;
  /** The error that the stream reported or that reading it found; a truncated stream only sets `complete` to false. */
  error: CanonicalError | null;
}

interface ChoiceBuilder {
  readonly index: number;
  readonly blocks: Map<number, ContentBlock>;
  delta?: MessageDelta;
}

function cleanBlocks(choice: ChoiceBuilder | undefined): ContentBlock[] {
  return [...(choice?.blocks.values() ?? [])].map((block) => {
    if (block.type === 'text') return { ...block, text: wellFormed(block.text) };
    if (block.type === 'thinking') return { ...block, thinking: wellFormed(block.thinking) };
    return block;
  });
}

function toChoice(choice: ChoiceBuilder): CanonicalChoice {
  const { index, delta } = choice;
  return {
    index,
    content: cleanBlocks(choice),
    stop_reason: delta?.delta.stop_reason ?? null,
    ...(delta?.extensions && { extensions: delta.extensions }),
  };
}

function addText(block: TextBlock, { text, logprobs }: Extract<BlockDelta, { type: 'text_delta' }>): void {
  block.text += text;
  if (!logprobs) return;
  block.logprobs ??= [];
  for (const token of logprobs) block.logprobs.push(token);
}

function addCitation(block: TextBlock, citation: Citation): void {
  block.citations ??= [];
  block.citations.push(citation);
}

function addThinking(block: ThinkingBlock, text: string, part: number | undefined): void {
  block.thinking += text;
  if (part === undefined) return;
  block.summary_parts ??= [];
  // Parts arrive in order; an untrusted number beyond the end appends instead of leaving a gap.
  const at = Math.max(0, Math.min(part, block.summary_parts.length));
  // The blank line between two parts belongs to neither.
  const isBorder = text === '\n\n' && at > 0 && at === block.summary_parts.length;
  block.summary_parts[at] = (block.summary_parts[at] ?? '') + (isBorder ? '' : text);
}

function addAudio(block: AudioBlock, { data, transcript }: Extract<BlockDelta, { type: 'audio_delta' }>): void {
  if (data !== undefined) block.source = { ...block.source, data: (block.source.data ?? '') + data };
  if (transcript !== undefined) block.transcript = (block.transcript ?? '') + transcript;
}

/** Deltas of an unknown block: strings are concatenated, anything else takes the later value, null is ignored. */
function addOpaque(block: OpaqueBlock, raw: unknown): void {
  const { raw: current } = block;
  if (!isObject(current) || !isObject(raw)) {
    block.raw = copyRaw(raw);
    return;
  }
  for (const [key, value] of Object.entries(raw)) {
    const before = current[key];
    if (value !== null) setOwn(current, key, typeof before === 'string' && typeof value === 'string' ? before + value : value);
  }
}

/** A copy of a block. Deltas change its lists and the raw object in place. */
const copyBlock = (block: ContentBlock): ContentBlock =>
  Object.fromEntries(
    Object.entries(block).map(([name, value]) => [
      name,
      Array.isArray(value) ? [...value] : name === 'raw' ? copyRaw(value) : value,
    ]),
  ) as unknown as ContentBlock; // the same fields

/** A copy that deltas can be merged into without changing the event. */
const copyRaw = (raw: unknown): unknown => (isObject(raw) ? { ...raw } : raw);

/**
 * Parses the arguments. The text is kept beside the value: key order, spacing and big integers survive, and a truncated
 * call stays visibly truncated.
 */
function finishToolUse(block: ToolUseBlock): void {
  const text = block.input_raw ?? '';
  if (text === '') delete block.input_raw;
  if (block.kind === 'custom') {
    // Without a delta, the input of the start is complete.
    if (text !== '' || isObject(block.input)) block.input = text;
    return;
  }
  const value = parseJson(text);
  if (isObject(value)) block.input = value;
}
