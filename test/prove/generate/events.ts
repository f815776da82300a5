import fc from 'fast-check';
import type { BlockDelta, CanonicalStreamEvent, ContentBlock, ProtocolId } from '../../../packages/core/src/index.ts';
import { below, chance, type Random, seededRandom } from '../../../packages/lab/src/mutate/random.ts';
import { type Answer, answer, anyBlock, portableBlock } from './message.ts';

/** Pieces of a text, cut anywhere but inside of a pair of surrogates: none of the canonical deltas ends in half a character. */
export function cutText(whole: string, random: Random): string[] {
  const characters = [...whole];
  const pieces: string[] = [];
  while (characters.length > 0) pieces.push(characters.splice(0, 1 + below(random, characters.length)).join(''));
  return pieces;
}

function deltasOf(block: ContentBlock, random: Random): BlockDelta[] {
  switch (block.type) {
    case 'text':
      return [
        ...cutText(block.text, random).map(
          (text): BlockDelta => ({ type: 'text_delta', text, ...(block.refusal && { refusal: true }) }),
        ),
        ...(block.citations ?? []).map((citation): BlockDelta => ({ type: 'citations_delta', citation })),
      ];
    case 'thinking':
      return [
        ...cutText(block.thinking, random).map((thinking): BlockDelta => ({ type: 'thinking_delta', thinking })),
        ...(block.signature && block.variant !== 'redacted'
          ? [{ type: 'signature_delta' as const, signature: block.signature }]
          : []),
      ];
    case 'tool_use': {
      const pieces = cutText(block.input_raw ?? '', random);
      return pieces.map((piece) =>
        block.kind === 'custom' ? { type: 'input_text_delta', text: piece } : { type: 'input_json_delta', partial_json: piece },
      );
    }
    default:
      return [];
  }
}

/** A block as it starts: what deltas bring is not there yet. */
function startOf(block: ContentBlock): ContentBlock {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: '', ...(block.refusal && { refusal: true }) };
    case 'thinking':
      return block.variant === 'redacted'
        ? block
        : { type: 'thinking', thinking: '', ...(block.variant && { variant: block.variant }) };
    case 'tool_use': {
      const { input_raw: _, ...start } = block;
      return start;
    }
    default:
      return block;
  }
}

function blockEvents(block: ContentBlock, index: number, random: Random): CanonicalStreamEvent[] {
  return [
    { type: 'content_block_start', index, content_block: startOf(block) },
    ...deltasOf(block, random).map((delta): CanonicalStreamEvent => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** Runs of calls may overlap, as long as they start in order; everything else stands alone. */
function interleave(queues: CanonicalStreamEvent[][], random: Random): CanonicalStreamEvent[] {
  const out: CanonicalStreamEvent[] = [];
  let started = 0;
  while (queues.some(({ length }) => length > 0)) {
    const open = queues.map((queue, at) => ({ queue, at })).filter(({ queue, at }) => queue.length > 0 && at <= started);
    const chosen = open[below(random, open.length)];
    const event = chosen?.queue.shift();
    if (!chosen || !event) break;
    if (event.type === 'content_block_start') started = chosen.at + 1;
    out.push(event);
  }
  return out;
}

/** A legal stream of events for an answer; the seed decides where it is cut and how calls overlap. */
export function eventsOf({ id, model, blocks, stop, usage }: Answer, seed: number): CanonicalStreamEvent[] {
  const random = seededRandom(seed);
  const events: CanonicalStreamEvent[] = [{ type: 'message_start', message: { id, model, created: 1_700_000_000 } }];
  let run: CanonicalStreamEvent[][] = [];
  const flush = (): void => {
    events.push(...interleave(run, random));
    run = [];
  };
  for (const [index, block] of blocks.entries()) {
    const isParallel = block.type === 'tool_use' && blocks[index - 1]?.type === 'tool_use' && chance(random, 0.6);
    if (!isParallel) flush();
    run.push(blockEvents(block, index, random));
    if (chance(random, 0.1) && run.length === 1) events.push({ type: 'ping' });
  }
  flush();
  events.push({ type: 'message_delta', delta: { stop_reason: stop }, ...(usage && { usage }) }, { type: 'message_stop' });
  return events;
}

/** An answer, and how it is cut. */
export interface Told {
  answer: Answer;
  seed: number;
}

const told = (arbitrary: fc.Arbitrary<Answer>): fc.Arbitrary<Told> => fc.record({ answer: arbitrary, seed: fc.nat(0xffff) });

export const portableTold: fc.Arbitrary<Told> = told(answer(portableBlock));
export const anyTold = (origin: ProtocolId): fc.Arbitrary<Told> => told(answer(anyBlock(origin)));
