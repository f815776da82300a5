/** Mutations of the content blocks of Anthropic Messages. */

import { type Mutation, mutations, type Row } from '../mutation.ts';
import { edit, isDocument, type Json, parseRoundTrip, rewrite, toText, within } from '../payloads.ts';
import {
  type Block,
  contentKey,
  DELTA,
  editBlocks,
  isBlock,
  joinDeltas,
  listEvents,
  onBlocks,
  onEvents,
  readBlock,
  readDelta,
  START,
  STOP,
  splitBlocks,
  withBlock,
} from './wire.ts';

const ONLY = ['anthropic-messages'] as const;

const TEXTS = ['text', 'thinking'];

const CALLS = ['tool_use'];

/** The position of the first delta of a block that has some of its text. */
const firstPiece = (block: Block): number =>
  block.deltas.findIndex((event) => toText(readDelta(event)[contentKey(block)]) !== '');

const numbered =
  (number: (index: number) => unknown): Row['apply'] =>
  (stream) =>
    edit(stream, (event) => (typeof event['index'] === 'number' ? { ...event, index: number(event['index']) } : event));

/** Splits every text delta in two, between any two UTF-16 code units. */
const halve: Row['apply'] = (stream, random) =>
  edit(stream, (event) => {
    const delta = readDelta(event);
    const key = ['text', 'thinking', 'partial_json'].find((name) => toText(delta[name]).length > 1);
    if (event['type'] !== DELTA || !key) return event;
    const text = toText(delta[key]);
    const at = 1 + Math.floor(random() * (text.length - 1));
    return [text.slice(0, at), text.slice(at)].map((piece) => ({ ...event, delta: { ...delta, [key]: piece } }));
  });

const merge: Row['apply'] = (stream) =>
  editBlocks(stream, (block) => {
    const key = contentKey(block);
    const texts = block.deltas.filter((event) => key in readDelta(event));
    const [first] = texts;
    if (!first || texts.length < 2 || block.deltas.indexOf(first) + texts.length > block.deltas.length) return undefined;
    const whole = { ...first, delta: { ...readDelta(first), [key]: joinDeltas(block, key) } };
    return [block.start, whole, ...block.deltas.filter((event) => !texts.includes(event)), block.stop];
  });

/** Swaps the start of a call with the stop of the block before it. */
const overlap: Row['apply'] = (stream) =>
  editBlocks(stream, (block, blocks) => {
    const [before, after] = [blocks[block.position - 1], blocks[block.position + 1]];
    const opensEarly = (next: Block | undefined): boolean => next !== undefined && CALLS.includes(next.type);
    if (!(before && opensEarly(block)) && !opensEarly(after)) return undefined;
    const own = opensEarly(after) ? [block.start, ...block.deltas] : listEvents(block);
    return opensEarly(block) && before ? [own[0] ?? block.start, before.stop, ...own.slice(1)] : own;
  });

/** Leaves out stops. A truncated message may end in an open block, so only complete ones are changed. */
const endless: Row['apply'] = (stream) => {
  const isWhole = stream.frames.some(({ data }) => /"stop_reason": ?"(?:end_turn|tool_use|stop_sequence)"/.test(data));
  if (!isWhole) return stream;
  return editBlocks(stream, (block, blocks) => {
    const hasNone = TEXTS.includes(block.type) || block.position === blocks.length - 1;
    return hasNone ? [block.start, ...block.deltas] : undefined;
  });
};

/** Moves text after thinking into the thinking block. */
const mixed: Row['apply'] = (stream) =>
  editBlocks(stream, (block, blocks) => {
    const [before, after] = [blocks[block.position - 1], blocks[block.position + 1]];
    const joins = (one: Block | undefined, next: Block | undefined): boolean =>
      one?.type === 'thinking' && next?.type === 'text' && joinDeltas(next, 'text') !== '' && firstPiece(next) === 0;
    if (joins(block, after)) return [block.start, ...block.deltas];
    if (!joins(before, block)) return undefined;
    return [...block.deltas, block.stop].map((event) => ({ ...event, index: before?.index }));
  });

const INDEXES = mutations('content', ONLY, {
  'anthropic/index-gaps': {
    title: 'Block indexes have gaps',
    rule: 'anthropic/index-gap',
    apply: numbered((index) => index * 3 + 1),
  },
  'anthropic/index-missing': {
    title: 'Block events have no index',
    rule: 'anthropic/index-gap',
    apply: numbered(() => undefined),
  },
  'anthropic/index-zero': {
    title: 'Every block has index 0',
    rule: 'anthropic/index-reused',
    apply: (stream) =>
      editBlocks(stream, (block, blocks) =>
        blocks.length > 1 ? listEvents(block).map((event) => ({ ...event, index: 0 })) : undefined,
      ),
  },
  'anthropic/starts-twice': {
    title: 'Every content_block_start is sent twice',
    rule: 'anthropic/block-start-repeated',
    apply: onEvents(START, (event) => [event, { ...event }]),
  },
  'anthropic/starts-missing': {
    title: 'Text and thinking blocks have no content_block_start',
    rule: 'anthropic/block-start-missing',
    apply: onBlocks(TEXTS, (block) => (firstPiece(block) === 0 ? [...block.deltas, block.stop] : undefined)),
  },
  'anthropic/stops-missing': {
    title: 'Text, thinking and the last block have no content_block_stop',
    rule: 'anthropic/block-stop-missing',
    apply: endless,
  },
  'anthropic/stops-of-nothing': {
    title: 'content_block_stop for blocks that never started',
    rule: 'anthropic/stop-without-start',
    apply: onEvents(STOP, (event) => [event, { type: STOP, index: 77 }]),
  },
  'anthropic/text-in-thinking': {
    title: 'Text is sent in the preceding thinking block',
    rule: 'anthropic/delta-of-another-kind',
    apply: mixed,
  },
  'anthropic/overlap': {
    title: 'A call starts before the previous block has stopped',
    rule: 'anthropic/blocks-overlap',
    apply: overlap,
  },
});

const CONTENT = mutations('content', ONLY, {
  'anthropic/texts-in-halves': { title: 'Every delta is split in two, at any UTF-16 code unit', apply: halve },
  'anthropic/texts-merged': { title: 'One delta per block', apply: merge },
  'anthropic/text-in-start': {
    title: 'The first piece of the text is in content_block_start',
    rule: 'anthropic/text-in-start',
    apply: onBlocks(TEXTS, (block) => {
      const at = firstPiece(block);
      const piece = block.deltas[at];
      if (!piece) return undefined;
      const text = toText(readDelta(piece)[contentKey(block)]);
      const rest = block.deltas.filter((event) => event !== piece);
      // Deltas that begin with the text of the start look like the same text sent again.
      const after = rest.map((event) => toText(readDelta(event)[contentKey(block)])).join('');
      if (after.startsWith(text) || text.startsWith(after)) return undefined;
      return [withBlock(block.start, { [contentKey(block)]: text }), ...rest, block.stop];
    }),
  },
  'anthropic/text-repeated-in-start': {
    title: 'content_block_start repeats the text of the deltas',
    rule: 'anthropic/start-text-repeated',
    apply: onBlocks(TEXTS, (block) => {
      const text = joinDeltas(block, contentKey(block));
      return text === '' ? undefined : [withBlock(block.start, { [contentKey(block)]: text }), ...block.deltas, block.stop];
    }),
  },
  'anthropic/text-after-stop': {
    title: 'The last piece of a text comes after its content_block_stop',
    loses: ['blocks'],
    rule: 'anthropic/delta-after-stop',
    apply: onBlocks(['text'], (block, blocks) => {
      const last = block.deltas.at(-1);
      const isPiece =
        last && readDelta(last)['type'] === 'text_delta' && block.deltas.length > 1 && block.position === blocks.length - 1;
      return isPiece ? [block.start, ...block.deltas.slice(0, -1), block.stop, last] : undefined;
    }),
  },
  'anthropic/content-in-start': {
    title: 'message_start contains the whole content',
    rule: 'anthropic/content-in-message-start',
    apply: (stream) =>
      rewrite(stream, (events) => {
        const content = wholeContent(events);
        if (!content) return events;
        return events
          .filter(({ type }) => type !== START && type !== DELTA && type !== STOP)
          .map((event) => within(event, 'message', (message) => ({ ...message, content })));
      }),
  },
});

/** The blocks as a whole response has them, if all are text, thinking or calls. */
function wholeContent(events: readonly Json[]): Json[] | undefined {
  const blocks = splitBlocks(events)?.filter(isBlock) ?? [];
  const whole = blocks.map(wholeBlock);
  return whole.length > 0 && whole.every((block) => block !== undefined) ? whole : undefined;
}

function wholeBlock(block: Block): Json | undefined {
  const kinds = new Set(block.deltas.map((event) => readDelta(event)['type']));
  const signature = block.deltas.map((event) => toText(readDelta(event)['signature'])).join('');
  const text = joinDeltas(block, contentKey(block));
  if (block.type === 'text' && [...kinds].every((kind) => kind === 'text_delta')) return { ...readBlock(block.start), text };
  if (block.type === 'thinking') return { ...readBlock(block.start), thinking: text, signature };
  const input = block.type === 'tool_use' && isDocument(text) ? parseRoundTrip(text) : undefined;
  return input && { ...readBlock(block.start), input };
}

/** Mutations of content blocks. */
export const ANTHROPIC_BLOCK_MUTATIONS: readonly Mutation[] = [...INDEXES, ...CONTENT];
