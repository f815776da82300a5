import { isObject, parseJson, writeJson } from '../accumulate/overlay.ts';
import type { ContentBlock, ToolUseBlock } from '../canonical/blocks.ts';
import type {
  BlockDelta,
  BlockDeltaEvent,
  BlockStart,
  BlockStop,
  CanonicalStreamEvent,
  MessageDelta,
} from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { type CanonicalResponse, isClientCall } from '../canonical/response.ts';
import { type Answered, callTable } from '../passes/call-table.ts';
import type { ToolRules } from '../passes/rules.ts';
import { NOTHING, type Stage } from '../stage.ts';
import { InputText, unwrapped } from './input-text.ts';

// The way back: a request names its tools as the upstream wants them, and the client gets its own names in the answer.

type Tell = (note: Note) => void;
type CallTable = ReadonlyMap<string, Answered>;

/** How the upstream calls the client's tools; undefined when it calls them all by their names. */
export function callsOf(request: CanonicalRequest, rules: ToolRules): CallTable | undefined {
  const table = callTable(request, rules);
  return table.size === 0 ? undefined : table;
}

/** The answer with the client's own names, namespaces and inputs; the same object when there is nothing to restore. */
export function restoreResponse(response: CanonicalResponse, calls: CallTable | undefined, note: Tell): CanonicalResponse {
  if (!calls) return response;
  const restore = (content: ContentBlock[]): ContentBlock[] => content.map((block) => restoreBlock(block, calls, note));
  const content = restore(response.content);
  // The first choice mirrors the message, and stays the same list.
  const choices = response.choices?.map((choice) => ({
    ...choice,
    content: choice.content === response.content ? content : restore(choice.content),
  }));
  return { ...response, content, ...(choices && { choices }) };
}

function restoreBlock(block: ContentBlock, calls: CallTable, note: Tell): ContentBlock {
  const call = block.type === 'tool_use' && isClientCall(block.kind) ? calls.get(block.name) : undefined;
  if (block.type !== 'tool_use' || !call) return block;
  const named = rename(block, call);
  const text = block.input_raw ?? (isEmpty(block.input) ? '' : (writeJson(block.input) ?? ''));
  if (call.form === 'custom') return withText(named, readText(text, note));
  return call.form === 'wrapped' ? withJson(named, unwrapped(text)) : named;
}

const isEmpty = (input: ToolUseBlock['input']): boolean => Object.keys(input).length === 0;

function rename(block: ToolUseBlock, { name, namespace, form }: Answered): ToolUseBlock {
  return {
    ...block,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(form === 'custom' && { kind: 'custom' as const }),
  };
}

function readText(source: string, note: Tell): string {
  const reader = new InputText();
  const text = reader.push(source) + reader.end();
  if (reader.hasMore) note(MORE_INPUT);
  return text;
}

const MORE_INPUT: Note = {
  code: 'APPROXIMATED',
  path: '/content',
  feature: 'content.tool_use.input',
  message: 'the arguments held more than the input of the custom tool',
};

const withText = ({ input_raw: _, ...block }: ToolUseBlock, text: string): ToolUseBlock => ({
  ...block,
  input: text,
  ...(text !== '' && { input_raw: text }),
});

function withJson({ input_raw: _, ...block }: ToolUseBlock, text: string): ToolUseBlock {
  const value = parseJson(text);
  return { ...block, input: isObject(value) ? value : {}, ...(text !== '' && { input_raw: text }) };
}

/** The same for a stream. */
export const restoreEvents = (calls: CallTable, note: Tell): Stage<CanonicalStreamEvent, CanonicalStreamEvent> =>
  new Restore(calls, note);

/** A call that is open, and what its input becomes. */
type OpenCall = { form: 'custom'; reader: InputText } | { form: 'wrapped'; text: string };

class Restore implements Stage<CanonicalStreamEvent, CanonicalStreamEvent> {
  readonly #calls: CallTable;
  readonly #note: Tell;
  readonly #open = new Map<string, OpenCall>();

  constructor(calls: CallTable, note: Tell) {
    this.#calls = calls;
    this.#note = note;
  }

  push(event: CanonicalStreamEvent): Iterable<CanonicalStreamEvent> {
    switch (event.type) {
      case 'content_block_start':
        return [this.#start(event)];
      case 'content_block_delta':
        return this.#delta(event);
      case 'content_block_stop':
        return this.#stop(event);
      case 'message_delta':
        return [this.#finish(event)];
      default:
        return [event];
    }
  }

  end(): Iterable<CanonicalStreamEvent> {
    return NOTHING;
  }

  #start(event: BlockStart): BlockStart {
    const block = event.content_block;
    const call = block.type === 'tool_use' && isClientCall(block.kind) ? this.#calls.get(block.name) : undefined;
    if (block.type !== 'tool_use' || !call) return event;
    if (call.form === 'custom') this.#open.set(keyOf(event), { form: call.form, reader: new InputText() });
    if (call.form === 'wrapped') this.#open.set(keyOf(event), { form: call.form, text: '' });
    const named = rename(block, call);
    return { ...event, content_block: call.form === 'custom' ? { ...named, input: '' } : named };
  }

  #delta(event: BlockDeltaEvent): Iterable<CanonicalStreamEvent> {
    const open = event.delta.type === 'input_json_delta' ? this.#open.get(keyOf(event)) : undefined;
    if (event.delta.type !== 'input_json_delta' || !open) return [event];
    const { partial_json: piece } = event.delta;
    if (open.form === 'custom') return withDelta(event, textDelta(open.reader.push(piece)));
    open.text += piece;
    return NOTHING;
  }

  #stop(event: BlockStop): Iterable<CanonicalStreamEvent> {
    const key = keyOf(event);
    const open = this.#open.get(key);
    const stop = event.content_block ? { ...event, content_block: this.#rename(event.content_block) } : event;
    if (!open) return [stop];
    this.#open.delete(key);
    if (open.form === 'wrapped') return [...withDelta(event, jsonDelta(unwrapped(open.text))), stop];
    if (open.reader.hasMore) this.#note(MORE_INPUT);
    return [...withDelta(event, textDelta(open.reader.end())), stop];
  }

  /** Late fields of a call whose arguments have gone through already, unless they are among them. */
  #rename(block: ContentBlock): ContentBlock {
    if (block.type === 'tool_use' && block.input_raw !== undefined) return restoreBlock(block, this.#calls, this.#note);
    const call = block.type === 'tool_use' && isClientCall(block.kind) ? this.#calls.get(block.name) : undefined;
    return block.type === 'tool_use' && call ? rename(block, call) : block;
  }

  #finish(event: MessageDelta): MessageDelta {
    if (!event.late_blocks) return event;
    const late_blocks = event.late_blocks.map(({ index, content_block: block }) => ({
      index,
      content_block: restoreBlock(block, this.#calls, this.#note),
    }));
    return { ...event, late_blocks };
  }
}

const keyOf = ({ choice = 0, index }: { choice?: number; index: number }): string => `${choice} ${index}`;

const textDelta = (text: string): BlockDelta => ({ type: 'input_text_delta', text });
const jsonDelta = (partial_json: string): BlockDelta => ({ type: 'input_json_delta', partial_json });

function withDelta({ index, choice }: BlockDeltaEvent | BlockStop, delta: BlockDelta): CanonicalStreamEvent[] {
  const isNothing = ('text' in delta && delta.text === '') || ('partial_json' in delta && delta.partial_json === '');
  return isNothing ? [] : [{ type: 'content_block_delta', index, ...(choice !== undefined && { choice }), delta }];
}
