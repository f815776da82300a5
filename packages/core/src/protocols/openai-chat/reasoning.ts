import { assignOwn, type JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, ThinkingBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { sourceOf } from '../../canonical/source.ts';
import { type Attach, decodeCarrier } from '../shared/carrier.ts';
import { countOf, listOf, objectOf, textOf } from '../shared/read.ts';
import { fieldsOf, keep } from './fields.ts';

/** Where vendors put what the model thought, the best first. */
const TEXT_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;
/** Opaque state that belongs to it (OpenRouter, Copilot, and others). */
const STATE_FIELDS = ['reasoning_details', 'reasoning_signature', 'reasoning_opaque', 'reasoning_encrypted'] as const;

export const REASONING_FIELDS: readonly string[] = [...TEXT_FIELDS, ...STATE_FIELDS];

/** The thinking of an assistant message, and the blobs of other protocols that came with it. */
interface Reasoning {
  blocks: { block: ThinkingBlock; place: string }[];
  /** Blobs for the blocks that follow, in order. */
  next: { blob: SignedBlob; place: string }[];
}

/** A blob of another provider, where it stands, and where the text begins that it signs. */
interface Carried {
  blob: SignedBlob;
  attach: Attach;
  place: string;
  start: number;
}

/** One block, or one for each blob that signs a text of its own; none when there is nothing. What is not text goes back as it came. */
export function decodeReasoning(message: JsonObject): Reasoning {
  const field = TEXT_FIELDS.find((name) => textOf(message[name]) !== '');
  const details = listOf(message['reasoning_details']);
  const text = field ? textOf(message[field]) : details.map(detailText).join('');
  const carried = details.flatMap(carriedIn);
  const signing = carried.filter(({ attach }) => attach === 'self');
  const rest = stateOf(message, field);
  const next = carried.filter(({ attach }) => attach === 'next');
  if (text === '' && signing.length === 0 && Object.keys(rest).length === 0) return { blocks: [], next };
  const [first, ...others] = signing;
  const place = field ?? REASONING_FIELDS.find((name) => message[name] !== undefined) ?? '';
  return {
    blocks: [
      { block: { ...thought(textUpTo(text, 0, others[0]), first), ...keep(rest) }, place },
      ...others.map((signed, i) => ({
        block: thought(textUpTo(text, signed.start, others[i + 1]), signed),
        place: signed.place,
      })),
    ],
    next,
  };
}

function carriedIn(detail: unknown, i: number): Carried[] {
  const { data, start } = objectOf(detail);
  const carrier = decodeCarrier(textOf(data));
  return carrier ? [{ ...carrier, place: `reasoning_details[${i}]`, start: countOf(start) ?? Number.POSITIVE_INFINITY }] : [];
}

/** What the next blob signs begins a paragraph. */
function textUpTo(text: string, start: number, next: Carried | undefined): string {
  const piece = text.slice(start, next && Math.max(start, next.start));
  return next && piece.endsWith('\n\n') ? piece.slice(0, -2) : piece;
}

const thought = (text: string, signed: Carried | undefined): ThinkingBlock => ({
  type: 'thinking',
  thinking: text,
  variant: text === '' ? 'redacted' : 'full',
  ...(signed && { signature: signed.blob }),
});

/** All that is not the text itself; carriers are ours and stay here. */
function stateOf(message: JsonObject, textField: string | undefined): JsonObject {
  const rest: JsonObject = {};
  for (const name of REASONING_FIELDS) {
    const value = message[name];
    const own = Array.isArray(value) ? value.filter((item) => !decodeCarrier(textOf(objectOf(item)['data']))) : value;
    const isEmpty = own === undefined || own === null || own === '' || (Array.isArray(own) && own.length === 0);
    if (name !== textField && !isEmpty) rest[name] = own;
  }
  return rest;
}

/** `reasoning.text` and `reasoning.summary` are text; `reasoning.encrypted` is not. */
const detailText = (detail: unknown): string => textOf(objectOf(detail)['text']) || textOf(objectOf(detail)['summary']);

/** Signs the first blocks that can be signed and are not. */
export function signNext(content: readonly ContentBlock[], blobs: readonly SignedBlob[]): ContentBlock[] {
  let next = 0;
  return content.map((block) => {
    const canSign = (block.type === 'tool_use' || block.type === 'text') && !block.signature;
    const signature = canSign ? blobs[next++] : undefined;
    return canSign && signature ? { ...block, signature } : block;
  });
}

type TextField = (typeof TEXT_FIELDS)[number] | 'none';

/**
 * The field in which a chat client sent its reasoning; `none` when it stood in `reasoning_details` only. Undefined where the server is known for
 * another name than the usual one.
 */
export function sentField([first]: readonly ThinkingBlock[], field: TextField): TextField | undefined {
  if (!first || field !== 'reasoning_content') return undefined;
  const name = sourceOf(first)?.split('/').at(-1);
  return TEXT_FIELDS.find((known) => known === name) ?? (STATE_FIELDS.some((known) => known === name) ? 'none' : undefined);
}

/** The fields that give the thinking back, in the field where this server looks for it. */
export function encodeReasoning(blocks: readonly ThinkingBlock[], field: TextField): JsonObject {
  const fields: JsonObject = {};
  for (const block of blocks) assignOwn(fields, fieldsOf(block));
  if (field === 'none') return fields;
  const text = blocks.map(({ thinking }) => thinking).filter((thinking) => thinking !== '');
  return { ...fields, [field]: text.join('\n\n') };
}

/** Mistral: a part of the content. */
export const encodeThinkingPart = (block: ThinkingBlock): JsonObject => ({
  ...fieldsOf(block),
  type: 'thinking',
  thinking: [{ type: 'text', text: block.thinking }],
});
