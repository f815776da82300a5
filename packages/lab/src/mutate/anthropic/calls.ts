/** Mutations of the calls and signatures of Anthropic Messages. */

import { type Mutation, mutations, type Row } from '../mutation.ts';
import { accumulateTexts, isDocument, type Json, parseRoundTrip, toText, within, without } from '../payloads.ts';
import { type Block, joinDeltas, onBlocks, readBlock, readDelta, withBlock } from './wire.ts';

const ONLY = ['anthropic-messages'] as const;

const CALLS = ['tool_use'];

const joinInput = (block: Block): string => joinDeltas(block, 'partial_json');

/** A delta like another, with this piece of the input. */
const pieceLike = (event: Json, text: string): Json => ({ ...event, delta: { type: 'input_json_delta', partial_json: text } });

/** Changes the input deltas of calls with complete, non-empty input. */
const onInputs =
  (change: (block: Block, pieces: readonly Json[], text: string) => readonly Json[] | undefined): Row['apply'] =>
  (stream, random) =>
    onBlocks(CALLS, (block) => {
      const text = joinInput(block);
      const pieces = block.deltas.filter((event) => toText(readDelta(event)['partial_json']) !== '');
      return isDocument(text) && pieces.length > 0 ? change(block, pieces, text) : undefined;
    })(stream, random);

const onStarts =
  (change: (call: Json, block: Block, calls: readonly Block[]) => Json): Row['apply'] =>
  (stream, random) =>
    onBlocks(CALLS, (block, blocks) => {
      const calls = blocks.filter(({ type }) => type === 'tool_use');
      const start = within(block.start, 'content_block', (call) => change(call, block, calls));
      return start === block.start ? undefined : [start, ...block.deltas, block.stop];
    })(stream, random);

const CALL_MUTATIONS = mutations('calls', ONLY, {
  'anthropic/input-in-start': {
    title: 'content_block_start contains the whole input, without deltas',
    apply: onBlocks(CALLS, (block) => {
      // Every start has an empty object, so it does not show that the input of a truncated call is empty.
      const value = isDocument(joinInput(block)) ? parseRoundTrip(joinInput(block)) : undefined;
      return value && [withBlock(block.start, { input: value }), block.stop];
    }),
  },
  'anthropic/input-in-start-and-deltas': {
    title: 'The whole input is in content_block_start and again in deltas',
    rule: 'anthropic/input-in-start-and-deltas',
    apply: onInputs((block, _, text) => [withBlock(block.start, { input: JSON.parse(text) }), ...block.deltas, block.stop]),
  },
  'anthropic/no-input-in-start': {
    title: 'content_block_start of a call has no input',
    apply: onStarts((call) => (isDocument(JSON.stringify(call['input'] ?? {})) ? call : without(call, 'input'))),
  },
  'anthropic/input-cumulative': {
    title: 'Every piece of the input repeats the previous ones',
    rule: 'anthropic/input-sent-twice',
    apply: onInputs((block, pieces) => {
      if (pieces.length < 2) return undefined;
      const texts = accumulateTexts(pieces.map((event) => toText(readDelta(event)['partial_json'])));
      const grown = pieces.map((event, at) => pieceLike(event, texts[at] ?? ''));
      return [block.start, ...grown, block.stop];
    }),
  },
  'anthropic/input-after-empty-object': {
    title: 'The first piece of the input is "{}"',
    rule: 'anthropic/input-sent-twice',
    apply: onInputs((block, [first = {}]) => [block.start, pieceLike(first, '{}'), ...block.deltas, block.stop]),
  },
  'anthropic/input-sent-twice': {
    title: 'The whole input is sent again after its pieces',
    rule: 'anthropic/input-sent-twice',
    apply: onInputs((block, [first = {}], text) => [block.start, ...block.deltas, pieceLike(first, text), block.stop]),
  },
  'anthropic/call-starts-again': {
    title: 'content_block_start of a call is sent again before the last piece of its input',
    rule: 'anthropic/block-start-repeated',
    apply: onInputs((block, pieces) => {
      const last = pieces.at(-1);
      if (pieces.length < 2 || last !== block.deltas.at(-1)) return undefined;
      return [block.start, ...block.deltas.slice(0, -1), { ...block.start }, last ?? {}, block.stop];
    }),
  },
  'anthropic/input-after-stop': {
    title: 'A piece of the input comes after content_block_stop',
    rule: 'anthropic/input-after-stop',
    apply: onInputs((block, [first = {}]) => [block.start, ...block.deltas, block.stop, pieceLike(first, '"late"')]),
  },
  'anthropic/ids-missing': {
    title: 'Calls have no id',
    loses: ['call_ids'],
    rule: 'anthropic/tool-id-missing',
    apply: onStarts((call) => without(call, 'id')),
  },
  'anthropic/ids-equal': {
    title: 'All calls share one id',
    loses: ['call_ids'],
    rule: 'anthropic/tool-id-duplicate',
    apply: onStarts((call, _, calls) => {
      const first = calls[0];
      return calls.length > 1 && first ? { ...call, id: readBlock(first.start)['id'] } : call;
    }),
  },
  'anthropic/names-missing': {
    title: 'Calls have no name',
    loses: ['call_names'],
    rule: 'anthropic/tool-name-missing',
    apply: onStarts((call) => without(call, 'name')),
  },
  'anthropic/call-starts-missing': {
    title: 'Calls have no content_block_start',
    loses: ['call_ids', 'call_names'],
    rule: 'anthropic/block-start-missing',
    apply: onInputs((block) => [...block.deltas, block.stop]),
  },
});

const isSignature = (event: Json): boolean => readDelta(event)['type'] === 'signature_delta';

/** Changes thinking blocks with one signature that can be split. */
const onSignatures =
  (change: (block: Block, signature: Json, text: string) => readonly Json[]): Row['apply'] =>
  (stream, random) =>
    onBlocks(['thinking'], (block) => {
      const [signature, another] = block.deltas.filter(isSignature);
      const text = signature ? toText(readDelta(signature)['signature']) : '';
      return signature && !another && text.length > 1 ? change(block, signature, text) : undefined;
    })(stream, random);

const withSignature = (event: Json, signature: string): Json => ({ ...event, delta: { type: 'signature_delta', signature } });

const SIGNATURES = mutations('content', ONLY, {
  'anthropic/signature-split': {
    title: 'A signature is sent in two pieces',
    rule: 'anthropic/signature-split',
    apply: onSignatures((block, signature, text) => {
      const at = Math.ceil(text.length / 2);
      const halves = [text.slice(0, at), text.slice(at)].map((half) => withSignature(signature, half));
      return [block.start, ...block.deltas.flatMap((event) => (event === signature ? halves : [event])), block.stop];
    }),
  },
  'anthropic/signature-twice': {
    title: 'A signature is sent twice',
    rule: 'anthropic/signature-repeated',
    apply: onSignatures((block, signature) => [block.start, ...block.deltas, { ...signature }, block.stop]),
  },
  'anthropic/signature-late': {
    title: 'A signature comes after content_block_stop',
    rule: 'anthropic/signature-late',
    apply: onSignatures((block, signature) => [
      block.start,
      ...block.deltas.filter((event) => event !== signature),
      block.stop,
      signature,
    ]),
  },
  'anthropic/signature-in-start': {
    title: 'The signature is in content_block_start',
    apply: onSignatures((block, signature, text) => [
      withBlock(block.start, { signature: text }),
      ...block.deltas.filter((event) => event !== signature),
      block.stop,
    ]),
  },
});

/** Mutations of calls and signatures. */
export const ANTHROPIC_CALL_MUTATIONS: readonly Mutation[] = [...CALL_MUTATIONS, ...SIGNATURES];
