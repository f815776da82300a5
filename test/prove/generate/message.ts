import fc from 'fast-check';
import type {
  CanonicalUsage,
  ContentBlock,
  ProtocolId,
  StopReason,
  ThinkingBlock,
  ToolUseBlock,
} from '../../../packages/core/src/index.ts';
import { argumentText, id, jsonObject, name, text } from './values.ts';

/** An answer before it is cut into events. */
export interface Answer {
  id: string;
  model: string;
  blocks: readonly ContentBlock[];
  stop: StopReason;
  usage: CanonicalUsage | undefined;
}

/** Blocks that every protocol can say: what must survive every conversion. */
const textBlock: fc.Arbitrary<ContentBlock> = text.map((value) => ({ type: 'text', text: value }));
const thinkingBlock: fc.Arbitrary<ContentBlock> = text.map((thinking) => ({ type: 'thinking', thinking, variant: 'full' }));
const call: fc.Arbitrary<ContentBlock> = fc
  .record({ id: id('call_'), name, raw: argumentText })
  .map(({ id: callId, name: called, raw }) => ({ type: 'tool_use', id: callId, name: called, input: {}, input_raw: raw }));

export const portableBlock: fc.Arbitrary<ContentBlock> = fc.oneof(
  { weight: 3, arbitrary: textBlock },
  { weight: 1, arbitrary: thinkingBlock },
  { weight: 3, arbitrary: call },
);

const FORMS = {
  'openai-chat': undefined,
  'anthropic-messages': 'signature',
  'openai-responses': 'encrypted',
  gemini: 'thought_signature',
} as const satisfies Record<ProtocolId, unknown>;

/** Proofs are opaque, and those of Gemini base64. */
const signature = (origin: ProtocolId): fc.Arbitrary<NonNullable<ThinkingBlock['signature']>> =>
  fc.base64String({ minLength: 8, maxLength: 24 }).map((value) => ({ origin, form: FORMS[origin] ?? 'signature', value }));

/** What only its own protocol understands: a block of a type of the future, or code that Google runs. */
const opaqueRaw = (origin: ProtocolId, rest: Record<string, unknown>): Record<string, unknown> =>
  origin === 'gemini'
    ? { executableCode: { language: 'PYTHON', code: JSON.stringify(rest) } }
    : { ...rest, type: 'vendor_block' };

/** Blocks that only some protocols can say, as the decoder of one of them would give them out. */
function specialBlock(origin: ProtocolId): fc.Arbitrary<ContentBlock> {
  const refusal: fc.Arbitrary<ContentBlock> = text.map((value) => ({ type: 'text', text: value, refusal: true }));
  const custom: fc.Arbitrary<ContentBlock> = fc
    .record({ id: id('call_'), name, input: text })
    .map(({ id: callId, name: called, input }) => ({
      type: 'tool_use',
      kind: 'custom',
      id: callId,
      name: called,
      input: '',
      input_raw: input,
    }));
  const cited: fc.Arbitrary<ContentBlock> = fc.record({ value: text, url: fc.webUrl() }).map(({ value, url }) => ({
    type: 'text',
    text: value,
    citations: [{ kind: 'url', url, title: 'T', start: 0, end: 1, origin }],
  }));
  const opaque: fc.Arbitrary<ContentBlock> = jsonObject.map((rest) => ({ type: 'opaque', origin, raw: opaqueRaw(origin, rest) }));
  const image: fc.Arbitrary<ContentBlock> = fc.constant({ type: 'image', source: { data: 'AAAA', media_type: 'image/png' } });
  const signed: fc.Arbitrary<ContentBlock> = fc
    .tuple(text, signature(origin))
    .map(([thinking, proof]) => ({ type: 'thinking', thinking, variant: 'summary', signature: proof }));
  const redacted: fc.Arbitrary<ContentBlock> = fc.base64String({ minLength: 8, maxLength: 24 }).map((value) => ({
    type: 'thinking',
    thinking: '',
    variant: 'redacted',
    signature: { origin: 'anthropic-messages', form: 'redacted', value },
  }));
  return fc.oneof(refusal, custom, cited, opaque, image, signed, redacted);
}

/** Every kind of block. */
export const anyBlock = (origin: ProtocolId): fc.Arbitrary<ContentBlock> =>
  fc.oneof({ weight: 3, arbitrary: portableBlock }, { weight: 1, arbitrary: specialBlock(origin) });

const usage: fc.Arbitrary<CanonicalUsage | undefined> = fc.option(
  fc
    .record({
      read: fc.nat(50),
      fresh: fc.integer({ min: 1, max: 900 }),
      reasoning: fc.nat(40),
      said: fc.integer({ min: 1, max: 900 }),
    })
    .map(({ read, fresh, reasoning, said }) => ({
      input_tokens: read + fresh,
      output_tokens: reasoning + said,
      cache_read_tokens: read,
      reasoning_tokens: reasoning,
    })),
  { nil: undefined, freq: 5 },
);

const isCall = (block: ContentBlock): block is ToolUseBlock => block.type === 'tool_use';

/** Two blocks of the same kind without a border between them are one to most wires; ids are distinct. */
function tidy(blocks: readonly ContentBlock[]): ContentBlock[] {
  const ids = new Set<string>();
  return blocks.flatMap((block, at): ContentBlock[] => {
    const before = blocks[at - 1];
    const isPlainPair = before?.type === block.type && (block.type === 'text' || block.type === 'thinking');
    if (isPlainPair) return [];
    if (!isCall(block)) return [block];
    const fresh = ids.has(block.id) ? `${block.id}${at}` : block.id;
    ids.add(fresh);
    return [{ ...block, id: fresh }];
  });
}

/** In a message that was cut, a call without arguments may have lost them: no wire can say that it has not. */
const withArguments = (block: ContentBlock): ContentBlock =>
  isCall(block) && block.kind !== 'custom' && (block.input_raw === '' || block.input_raw === '{}')
    ? { ...block, input_raw: '{"a":1}' }
    : block;

export function answer(block: fc.Arbitrary<ContentBlock>, maxBlocks = 6): fc.Arbitrary<Answer> {
  return fc
    .record({
      id: id('gen_'),
      model: fc.constantFrom('model-a', 'gpt-5.6', 'claude-sonnet-5', 'gemini-3-pro'),
      blocks: fc.array(block, { minLength: 1, maxLength: maxBlocks }).map(tidy),
      cut: fc.constantFrom<StopReason | undefined>(undefined, undefined, undefined, undefined, 'max_tokens'),
      usage,
    })
    .map(({ cut, blocks, ...rest }) => ({
      ...rest,
      blocks: cut ? blocks.map(withArguments) : blocks,
      stop: cut ?? (blocks.some(isCall) ? 'tool_use' : 'end_turn'),
    }));
}
