/** The events of Anthropic Messages as mutations see them: types and content blocks. */

import type { Row, WireStream } from '../mutation.ts';
import { edit, isObject, type Json, rewrite, toText } from '../payloads.ts';
import type { Random } from '../random.ts';

/** The type of the first event. */
export const MESSAGE_START = 'message_start';

/** The type of the event that starts a block. */
export const START = 'content_block_start';

/** The type of the event with a piece of a block. */
export const DELTA = 'content_block_delta';

/** The type of the event that ends a block. */
export const STOP = 'content_block_stop';

/** The type of the event with the stop reason and usage. */
export const MESSAGE_DELTA = 'message_delta';

/** The type of the last event. */
export const MESSAGE_STOP = 'message_stop';

/** Returns a test for events of a type. */
export const isType =
  (type: string) =>
  (event: Json): boolean =>
    event['type'] === type;

/** The events of one block. */
export interface Block {
  readonly start: Json;
  readonly deltas: readonly Json[];
  readonly stop: Json;
  readonly type: string;
  readonly index: number;
  readonly position: number;
}

/** The content block of a start event. */
export const readBlock = (start: Json): Json => (isObject(start['content_block']) ? start['content_block'] : {});

/** The delta of an event. */
export const readDelta = (event: Json): Json => (isObject(event['delta']) ? event['delta'] : {});

/** Splits a stream into blocks and the events around them; undefined when its blocks overlap. */
export function splitBlocks(events: readonly Json[]): (Json | Block)[] | undefined {
  const parts: (Json | Block)[] = [];
  let open: { start: Json; deltas: Json[]; index: number } | undefined;
  let position = 0;
  for (const event of events) {
    if (event['type'] === START) {
      if (open || typeof event['index'] !== 'number') return undefined;
      open = { start: event, deltas: [], index: event['index'] };
    } else if (event['type'] === DELTA) {
      if (event['index'] !== open?.index) return undefined;
      open?.deltas.push(event);
    } else if (event['type'] === STOP) {
      if (!open || event['index'] !== open.index) return undefined;
      parts.push({ ...open, stop: event, type: toText(readBlock(open.start)['type']), position: position++ });
      open = undefined;
    } else if (!open) parts.push(event);
    // Pings inside a block are dropped: they carry nothing.
  }
  return open ? undefined : parts;
}

/** Whether a part of `splitBlocks` is a block. */
export const isBlock = (part: Json | Block): part is Block => 'start' in part && 'deltas' in part;

/** Replaces whole blocks by events; undefined keeps a block. */
export function editBlocks(
  stream: WireStream,
  change: (block: Block, blocks: readonly Block[]) => readonly Json[] | undefined,
): WireStream {
  return rewrite(stream, (events) => {
    const parts = splitBlocks(events);
    if (!parts) return events;
    const blocks = parts.filter(isBlock);
    const changed = blocks.map((block) => change(block, blocks));
    if (changed.every((list) => list === undefined)) return events;
    return parts.flatMap((part) => (isBlock(part) ? [...(changed[part.position] ?? listEvents(part))] : [part]));
  });
}

/** The events of a block. */
export const listEvents = ({ start, deltas, stop }: Block): Json[] => [start, ...deltas, stop];

/** Changes the blocks of some types. */
export const onBlocks =
  (types: readonly string[], change: (block: Block, blocks: readonly Block[]) => readonly Json[] | undefined): Row['apply'] =>
  (stream) =>
    editBlocks(stream, (block, blocks) => (types.includes(block.type) ? change(block, blocks) : undefined));

/** Changes the events of one type. */
export const onEvents =
  (type: string, change: (event: Json, random: Random) => Json | Json[]): Row['apply'] =>
  (stream, random) =>
    edit(stream, (event) => (event['type'] === type ? change(event, random) : event));

/** The start event with fields of its content block changed. */
export const withBlock = (start: Json, change: Json): Json => ({ ...start, content_block: { ...readBlock(start), ...change } });

/** The content of a block's deltas in one field: text, thinking or partial_json. */
export const joinDeltas = ({ deltas }: Block, key: string): string =>
  deltas.map((event) => toText(readDelta(event)[key])).join('');

const KEYS: Record<string, string> = { text: 'text', thinking: 'thinking', tool_use: 'partial_json' };

/** The field in which the deltas of a block have its content; "" for blocks without deltas. */
export const contentKey = ({ type }: Block): string => KEYS[type] ?? '';
