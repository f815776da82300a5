import type { Row, WireStream } from '../mutation.ts';
import { edit, isObject, type Json, rewrite, textOf } from '../payloads.ts';
import type { Random } from '../random.ts';

export const MESSAGE_START = 'message_start';

export const START = 'content_block_start';

export const DELTA = 'content_block_delta';

export const STOP = 'content_block_stop';

export const MESSAGE_DELTA = 'message_delta';

export const MESSAGE_STOP = 'message_stop';

export const isType =
  (type: string) =>
  (event: Json): boolean =>
    event['type'] === type;

/** The events of one block, between start and stop. */
export interface Block {
  readonly start: Json;
  readonly deltas: readonly Json[];
  readonly stop: Json;
  readonly type: string;
  readonly index: number;
  readonly position: number;
}

export const blockOf = (start: Json): Json => (isObject(start['content_block']) ? start['content_block'] : {});

export const deltaOf = (event: Json): Json => (isObject(event['delta']) ? event['delta'] : {});

/** A stream cut into blocks and what stands around them; undefined when its blocks do not follow each other. */
export function blocksOf(events: readonly Json[]): (Json | Block)[] | undefined {
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
      parts.push({ ...open, stop: event, type: textOf(blockOf(open.start)['type']), position: position++ });
      open = undefined;
    } else if (!open) parts.push(event);
    // A ping inside of a block says nothing, and would be in the way.
  }
  return open ? undefined : parts;
}

export const isBlock = (part: Json | Block): part is Block => 'start' in part && 'deltas' in part;

/** Changes whole blocks: to the events that are to stand for it. */
export function editBlocks(
  stream: WireStream,
  change: (block: Block, blocks: readonly Block[]) => readonly Json[] | undefined,
): WireStream {
  return rewrite(stream, (events) => {
    const parts = blocksOf(events);
    if (!parts) return events;
    const blocks = parts.filter(isBlock);
    const changed = blocks.map((block) => change(block, blocks));
    if (changed.every((list) => list === undefined)) return events;
    return parts.flatMap((part) => (isBlock(part) ? [...(changed[part.position] ?? eventsOf(part))] : [part]));
  });
}

export const eventsOf = ({ start, deltas, stop }: Block): Json[] => [start, ...deltas, stop];

export const onBlocks =
  (types: readonly string[], change: (block: Block, blocks: readonly Block[]) => readonly Json[] | undefined): Row['apply'] =>
  (stream) =>
    editBlocks(stream, (block, blocks) => (types.includes(block.type) ? change(block, blocks) : undefined));

/** Changes the events of one type. */
export const onEvents =
  (type: string, change: (event: Json, random: Random) => Json | Json[]): Row['apply'] =>
  (stream, random) =>
    edit(stream, (event) => (event['type'] === type ? change(event, random) : event));

/** A start with other content. */
export const withBlock = (start: Json, change: Json): Json => ({ ...start, content_block: { ...blockOf(start), ...change } });

/** What the deltas of a block bring of one kind: text, thinking or partial_json. */
export const joined = ({ deltas }: Block, key: string): string => deltas.map((event) => textOf(deltaOf(event)[key])).join('');

const KEYS: Record<string, string> = { text: 'text', thinking: 'thinking', tool_use: 'partial_json' };

/** The field in which the deltas of a block bring its content; "" for blocks that have no such thing. */
export const keyOf = ({ type }: Block): string => KEYS[type] ?? '';
