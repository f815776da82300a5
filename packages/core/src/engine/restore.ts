/**
 * Restores the client's tools in responses: upstreams get tools under names and in forms that they accept, and the
 * client gets its own back.
 */

import type {
  BlockDelta,
  BlockDeltaEvent,
  BlockStart,
  BlockStop,
  CanonicalStreamEvent,
  MessageDelta,
} from '../canonical/events.ts';
import { type CanonicalResponse, type ContentBlock, isClientCall, type ToolUseBlock } from '../canonical/message.ts';
import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { NOTHING, type Stage } from '../canonical/stage.ts';
import { isObject, parseJson, writeJson } from '../json/json.ts';
import { BACKSLASH, QUOTE } from '../json/scanner.ts';
import { buildNameKey, buildNameTable, listNamed, type Named } from '../passes/names.ts';
import type { ToolRules } from '../passes/rules.ts';
import { isObjectRoot } from '../passes/schema/nodes.ts';

type CallTable = ReadonlyMap<string, RenamedTool>;

/** The table of renamed tools; undefined when all tools were sent unchanged. */
export function findRenamedTools(request: CanonicalRequest, rules: ToolRules): CallTable | undefined {
  const table = buildRenamedTools(request, rules);
  return table.size === 0 ? undefined : table;
}

/**
 * Builds the table for responses: the client's tools by the names under which they were sent. Tools that were sent
 * unchanged are not in it.
 */
export function buildRenamedTools(request: CanonicalRequest, rules: ToolRules): ReadonlyMap<string, RenamedTool> {
  if (!hasTools(request)) return NO_CALLS;
  const names = buildNameTable(request, rules);
  const wrapped = new Set<Named>(rules.objectRoot ? request.tools?.filter((tool) => !isObjectRoot(tool.input_schema)) : []);
  const table = new Map<string, RenamedTool>();
  for (const called of listNamed(request)) {
    const { name, namespace, kind } = called;
    const sent = names.get(buildNameKey(called, rules)) ?? name;
    const isCustom = kind === 'custom' && !rules.custom;
    const form = isCustom ? 'custom' : wrapped.has(called) ? 'wrapped' : 'plain';
    if (table.has(sent) || (sent === name && form === 'plain')) continue;
    table.set(sent, { name, ...(namespace !== undefined && { namespace }), form });
  }
  return table;
}

/** The client's name and form of a tool that was sent under another name or in another form. */
interface RenamedTool {
  name: string;
  namespace?: string;
  /** `custom`: a text, sent as `{input: text}`; `wrapped`: any value, sent as `{input: value}`. */
  form: 'plain' | 'custom' | 'wrapped';
}

const NO_CALLS: ReadonlyMap<string, RenamedTool> = new Map();

/** Most requests have no tools, and every response looks for the table. */
const hasTools = ({ tools, tool_choice: choice, messages }: CanonicalRequest): boolean =>
  Boolean(tools || choice) ||
  messages.some(({ content }) => content.some(({ type }) => type === 'tool_use' || type === 'tool_result'));

// ---- whole responses

type AddNote = (note: Note) => void;

/**
 * Restores the client's tool names, namespaces and inputs; returns the same object when there is nothing to restore.
 */
export function restoreResponse(response: CanonicalResponse, calls: CallTable | undefined, note: AddNote): CanonicalResponse {
  if (!calls) return response;
  const restore = (content: ContentBlock[]): ContentBlock[] => content.map((block) => restoreBlock(block, calls, note));
  const content = restore(response.content);
  // The first choice and the message share one list, and still do afterwards.
  const choices = response.choices?.map((choice) => ({
    ...choice,
    content: choice.content === response.content ? content : restore(choice.content),
  }));
  return { ...response, content, ...(choices && { choices }) };
}

function restoreBlock(block: ContentBlock, calls: CallTable, note: AddNote): ContentBlock {
  const call = block.type === 'tool_use' && isClientCall(block.kind) ? calls.get(block.name) : undefined;
  if (block.type !== 'tool_use' || !call) return block;
  const named = rename(block, call);
  const text = block.input_raw ?? (isEmpty(block.input) ? '' : (writeJson(block.input) ?? ''));
  if (call.form === 'custom') return withText(named, unwrapText(text, note));
  return call.form === 'wrapped' ? withJson(named, unwrapInput(text)) : named;
}

const isEmpty = (input: ToolUseBlock['input']): boolean => Object.keys(input).length === 0;

function rename(block: ToolUseBlock, { name, namespace, form }: RenamedTool): ToolUseBlock {
  return {
    ...block,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(form === 'custom' && { kind: 'custom' as const }),
  };
}

function unwrapText(source: string, note: AddNote): string {
  const reader = new InputUnwrapper();
  const text = reader.push(source) + reader.end();
  if (reader.hasMore) note(MORE_INPUT);
  return text;
}

const MORE_INPUT: Note = {
  code: 'APPROXIMATED',
  path: '/content',
  feature: 'content.tool_use.input',
  message: 'the arguments have more properties than "input" of the custom tool; only "input" is used',
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

// ---- streams

/** Restores the client's tools in the events of a stream. */
export const restoreEvents = (calls: CallTable, note: AddNote): Stage<CanonicalStreamEvent, CanonicalStreamEvent> =>
  new EventRestorer(calls, note);

/** An open call whose input is being restored. */
type OpenCall = { form: 'custom'; reader: InputUnwrapper } | { form: 'wrapped'; text: string };

class EventRestorer implements Stage<CanonicalStreamEvent, CanonicalStreamEvent> {
  readonly #calls: CallTable;
  readonly #note: AddNote;
  readonly #open = new Map<string, OpenCall>();

  constructor(calls: CallTable, note: AddNote) {
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
    if (call.form === 'custom') this.#open.set(blockKey(event), { form: call.form, reader: new InputUnwrapper() });
    if (call.form === 'wrapped') this.#open.set(blockKey(event), { form: call.form, text: '' });
    const named = rename(block, call);
    return { ...event, content_block: call.form === 'custom' ? { ...named, input: '' } : named };
  }

  #delta(event: BlockDeltaEvent): Iterable<CanonicalStreamEvent> {
    const open = event.delta.type === 'input_json_delta' ? this.#open.get(blockKey(event)) : undefined;
    if (event.delta.type !== 'input_json_delta' || !open) return [event];
    const { partial_json: piece } = event.delta;
    if (open.form === 'custom') return withDelta(event, textDelta(open.reader.push(piece)));
    open.text += piece;
    return NOTHING;
  }

  #stop(event: BlockStop): Iterable<CanonicalStreamEvent> {
    const key = blockKey(event);
    const open = this.#open.get(key);
    const stop = event.content_block ? { ...event, content_block: this.#rename(event.content_block) } : event;
    if (!open) return [stop];
    this.#open.delete(key);
    if (open.form === 'wrapped') return [...withDelta(event, jsonDelta(unwrapInput(open.text))), stop];
    if (open.reader.hasMore) this.#note(MORE_INPUT);
    return [...withDelta(event, textDelta(open.reader.end())), stop];
  }

  /** Late fields of a call. Its arguments were restored before, unless they are among the late fields. */
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

const blockKey = ({ choice = 0, index }: { choice?: number; index: number }): string => `${choice} ${index}`;

const textDelta = (text: string): BlockDelta => ({ type: 'input_text_delta', text });

const jsonDelta = (partial_json: string): BlockDelta => ({ type: 'input_json_delta', partial_json });

function withDelta({ index, choice }: BlockDeltaEvent | BlockStop, delta: BlockDelta): CanonicalStreamEvent[] {
  const isNothing = ('text' in delta && delta.text === '') || ('partial_json' in delta && delta.partial_json === '');
  return isNothing ? [] : [{ type: 'content_block_delta', index, ...(choice !== undefined && { choice }), delta }];
}

// ---- wrapped inputs

/**
 * Unwraps the arguments of a custom tool that was sent as a function, `{"input":"…"}`, to the text inside, piece by
 * piece. Arguments of any other form are the text themselves.
 */
export class InputUnwrapper {
  #state: 'head' | 'text' | 'tail' | 'raw' = 'head';
  /** Text that cannot be decoded before more of it arrives. */
  #held = '';
  /** The first half of a surrogate pair: returned text never ends in one. */
  #half = '';
  #hasMore = false;

  /** The arguments contain something besides the text. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  push(piece: string): string {
    switch (this.#state) {
      case 'head':
        return this.#head(this.#held + piece);
      case 'text':
        return this.#text(this.#held + piece);
      case 'raw':
        return piece;
      case 'tail':
        this.#tail(piece);
        return '';
      default:
        return this.#state satisfies never;
    }
  }

  end(): string {
    const rest = this.#half === '' ? this.#held : `\ufffd${this.#held}`;
    this.#half = this.#held = '';
    return rest;
  }

  #head(begun: string): string {
    const head = HEAD.exec(begun);
    if (head) {
      this.#state = 'text';
      return this.#text(begun.slice(head[0].length));
    }
    const compact = begun.replace(/\s+/g, '');
    const isBegun = begun.length <= MAX_HEAD && compact.length < COMPACT_HEAD.length && COMPACT_HEAD.startsWith(compact);
    this.#state = isBegun ? 'head' : 'raw';
    this.#held = isBegun ? begun : '';
    return isBegun ? '' : begun;
  }

  #text(source: string): string {
    this.#held = '';
    let out = this.#half;
    let at = 0;
    while (at < source.length) {
      const stop = nextMark(source, at);
      out += source.slice(at, stop);
      if (source[stop] === '"') {
        this.#state = 'tail';
        this.#tail(source.slice(stop + 1));
        break;
      }
      ESCAPE.lastIndex = stop;
      const found = ESCAPE.exec(source);
      if (!found && source.length - stop < MAX_ESCAPE) {
        this.#held = source.slice(stop);
        break;
      }
      // An invalid escape is taken literally.
      out += found ? decodeEscape(found) : '\\';
      at = stop + (found?.[0].length ?? 1);
    }
    return this.#withoutHalf(out);
  }

  #withoutHalf(text: string): string {
    const last = text.charCodeAt(text.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    this.#half = isHalf ? text.slice(-1) : '';
    return isHalf ? text.slice(0, -1) : text;
  }

  #tail(piece: string): void {
    this.#hasMore ||= /[^\s}]/.test(piece);
  }
}

const HEAD = /^\s*\{\s*"input"\s*:\s*"/;

const COMPACT_HEAD = '{"input":"';

/** No encoder puts more white space than this before the text. */
const MAX_HEAD = 64;

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|([^u]))/y;

const ESCAPED: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

const MAX_ESCAPE = 6;

/** The position of the next quote or backslash, or the length of the text. */
function nextMark(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === BACKSLASH) return at;
  }
  return text.length;
}

const decodeEscape = ([, code, char = '']: RegExpExecArray): string =>
  code === undefined ? (ESCAPED[char] ?? char) : String.fromCharCode(Number.parseInt(code, 16));

/** Unwraps `{"input": …}` to the JSON text of the value; any other text is returned as it is. */
export function unwrapInput(text: string): string {
  const [head] = WRAPPER.exec(text) ?? [];
  const whole = text.trimEnd();
  if (head === undefined || !whole.endsWith('}')) return text;
  const inner = whole.slice(head.length, -1).trim();
  return isJson(inner) ? inner : text;
}

const WRAPPER = /^\s*\{\s*"input"\s*:/;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
