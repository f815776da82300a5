/** Limits of responses: choices, blocks, tool calls and their arguments. The console runs this file, too. */

import type { CanonicalError, CanonicalResponse, CanonicalStreamEvent, ContentBlock } from '@sluice/core';
import { isDeeperThan, JsonScanner } from '@sluice/core/internal';
import type { Limits } from '../config/options.ts';
import { createLimitError } from './response-errors.ts';

/** Counts the choices, blocks and calls of a stream, because an upstream may invent any number of indexes. */
export class ResponseMeter {
  readonly #limits: ResponseLimits;
  /** The upstream as error messages name it. */
  readonly #name: string;
  readonly #tallies = new Map<number, Tally>();
  /** Characters of text, reasoning and arguments so far. */
  characters = 0;

  constructor(limits: ResponseLimits, name: string) {
    this.#limits = limits;
    this.#name = name;
  }

  /** The limit that this event exceeds; undefined when it exceeds none. */
  add(event: CanonicalStreamEvent): CanonicalError | undefined {
    switch (event.type) {
      case 'content_block_delta':
        this.characters += countCharacters(event.delta);
        if (event.delta.type === 'input_json_delta') return this.#grow(event, event.delta.partial_json);
        return event.delta.type === 'input_text_delta' ? this.#grow(event, event.delta.text) : undefined;
      case 'content_block_start':
        return this.#start(event, event.content_block);
      case 'content_block_stop':
        this.#tallies.get(event.choice ?? 0)?.open.delete(event.index);
        return undefined;
      default:
        return undefined;
    }
  }

  #start({ choice = 0, index }: { choice?: number; index: number }, { type }: ContentBlock): CanonicalError | undefined {
    const tally: Tally = this.#tallies.get(choice) ?? { blocks: 0, calls: 0, open: new Map() };
    this.#tallies.set(choice, tally);
    tally.blocks++;
    if (type === 'tool_use') {
      tally.calls++;
      tally.open.set(index, new ArgumentMeter());
    }
    return checkExcess({ choices: this.#tallies.size, ...tally }, this.#limits, this.#name);
  }

  #grow({ choice = 0, index }: { choice?: number; index: number }, text: string): CanonicalError | undefined {
    const meter = this.#tallies.get(choice)?.open.get(index);
    if (!meter) return undefined;
    meter.push(text);
    return checkExcess(meter, this.#limits, this.#name);
  }
}

/** The length of a delta's text; other deltas have none. */
function countCharacters(delta: ContentDelta): number {
  switch (delta.type) {
    case 'text_delta':
    case 'input_text_delta':
      return delta.text.length;
    case 'thinking_delta':
      return delta.thinking.length;
    case 'input_json_delta':
      return delta.partial_json.length;
    default:
      return 0;
  }
}

type ContentDelta = Extract<CanonicalStreamEvent, { type: 'content_block_delta' }>['delta'];

/** The limits that can end a response. */
export type ResponseLimits = Pick<Limits, 'choices' | 'toolCalls' | 'contentBlocks' | 'argumentBytes' | 'argumentDepth'>;

/** What one choice of a stream contains so far. */
interface Tally {
  blocks: number;
  calls: number;
  /** Tool arguments that are still arriving, by the index of their block. */
  open: Map<number, ArgumentMeter>;
}

/** Measures the size and the depth of arguments that arrive in pieces. */
class ArgumentMeter {
  bytes = 0;
  readonly #scanner = new JsonScanner();

  get deepest(): number {
    return this.#scanner.deepest;
  }

  push(text: string): void {
    this.bytes += countBytes(text);
    const scanner = this.#scanner;
    for (let at = 0; at < text.length; at++) {
      if (scanner.isInString) at = scanner.skipString(text, at);
      if (at < text.length) scanner.step(text.charCodeAt(at));
    }
  }
}

/** The length in UTF-8, without encoding. A lone surrogate is replaced by a character of three bytes. */
function countBytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    bytes += code < 0x800 ? 1 : 2;
    // A pair has four bytes, of which two units and two more are counted.
    if (code >= 0xd800 && code < 0xdc00 && isLowSurrogate(text.charCodeAt(at + 1))) at++;
  }
  return bytes;
}

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code < 0xe000;

/** The limit that a whole response exceeds; undefined when it exceeds none. `bytes` is the size of its body. */
export function findExcess(
  response: CanonicalResponse,
  bytes: number,
  limits: ResponseLimits,
  name: string,
): CanonicalError | undefined {
  const choices = response.choices ?? [response];
  for (const { content } of choices) {
    const calls = content.filter(({ type }) => type === 'tool_use').length;
    const excess =
      checkExcess({ choices: choices.length, blocks: content.length, calls }, limits, name) ??
      findCallExcess(content, bytes, limits, name);
    if (excess) return excess;
  }
  return undefined;
}

/** Arguments are smaller than the body that contains them, so most responses need no measuring. */
function findCallExcess(
  content: readonly ContentBlock[],
  bytes: number,
  limits: ResponseLimits,
  name: string,
): CanonicalError | undefined {
  for (const block of content) {
    if (block.type !== 'tool_use') continue;
    const deepest = isDeeperThan(block.input, limits.argumentDepth) ? limits.argumentDepth + 1 : 0;
    const excess = checkExcess({ deepest }, limits, name);
    if (excess) return excess;
    if (bytes <= limits.argumentBytes) continue;
    const length = countBytes(block.input_raw ?? JSON.stringify(block.input));
    if (length > limits.argumentBytes) return checkExcess({ bytes: length }, limits, name);
  }
  return undefined;
}

interface Measured {
  choices?: number;
  blocks?: number;
  calls?: number;
  bytes?: number;
  deepest?: number;
}

function checkExcess(
  { choices = 0, blocks = 0, calls = 0, bytes = 0, deepest = 0 }: Measured,
  limits: ResponseLimits,
  name: string,
): CanonicalError | undefined {
  if (choices > limits.choices) return createLimitError(name, `more than ${limits.choices} choices`);
  if (calls > limits.toolCalls) return createLimitError(name, `more than ${limits.toolCalls} tool calls`);
  if (blocks > limits.contentBlocks) return createLimitError(name, `more than ${limits.contentBlocks} content blocks`);
  if (bytes > limits.argumentBytes)
    return createLimitError(name, `a tool call with more than ${limits.argumentBytes} bytes of arguments`);
  if (deepest > limits.argumentDepth)
    return createLimitError(name, `a tool call whose arguments are nested more than ${limits.argumentDepth} levels deep`);
  return undefined;
}
