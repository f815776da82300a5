import { type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { ContentBlock, TextBlock, ThinkingBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { dropLogprobs, endingOf } from '../shared/answer.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import {
  type Answer,
  carrierBlock,
  createAnswer,
  dropChoices,
  dropHeld,
  dropSignature,
  encodeCall,
  encodeCitation,
  encodeEnvelope,
  encodeSignature,
  encodeTier,
  encodeUnsigned,
  imageText,
  isLostCall,
  isOwnBlock,
  NO_LOGPROBS,
  tellAudio,
} from './answer.ts';
import { encodeInput, INVALID } from './call-input.ts';
import { fieldsOf } from './fields.ts';
import { encodeStop, encodeStopDetails } from './stop.ts';
import { encodeUsage } from './usage.ts';

/** A whole `message` with all fields that the official type requires. Throws when the response is a failure. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  const { content, stop_details: details, usage, error } = response;
  const stop = endingOf(response, details, error, context);
  if ((response.choices?.length ?? 0) > 1) dropChoices(context);
  const answer = createAnswer(response, context);
  const { finish_reason: said, stop_details: raw, container = null, diagnostics = null, ...kept } = fieldsOf(response);
  const { id, type, role, model } = encodeEnvelope(response, answer);
  const message: JsonObject = {
    id,
    type,
    role,
    model,
    content: content.flatMap((block, i) => encodeBlock(block, `/content/${i}`, answer)),
    stop_reason: encodeStop(stop, said),
    stop_sequence: response.stop_sequence ?? null,
    stop_details: encodeStopDetails(stop, details, raw),
    usage: Object.assign(encodeUsage(usage), encodeTier(response.service_tier, answer)),
    container,
    diagnostics,
  };
  dropHeld(answer);
  for (const name of Object.keys(kept)) if (!Object.hasOwn(message, name)) setOwn(message, name, kept[name]);
  return message;
}

/** A block of an answer as the blocks of the wire that say the same. */
function encodeBlock(block: ContentBlock, path: string, answer: Answer): JsonObject[] {
  const { context } = answer;
  switch (block.type) {
    case 'text':
      return encodeText(block, path, answer);
    case 'thinking':
      return encodeThinking(block, answer);
    case 'tool_use':
      if (isLostCall(block, path, answer)) return [];
      return encodeToolUse(block, path, answer);
    case 'image':
      return [plainText(imageText(block, path, context))];
    case 'audio':
      tellAudio(Boolean(block.transcript), path, context);
      return block.transcript ? [plainText(block.transcript)] : [];
    case 'opaque':
      if (block.origin === 'anthropic-messages' && isOwnBlock(block.raw)) return [block.raw];
      return block.text ? [plainText(block.text)] : lose(block.type, path, context);
    case 'tool_result':
      return isOwnBlock(fieldsOf(block)) ? [fieldsOf(block)] : lose(block.type, path, context);
    case 'file':
      return lose(block.type, path, context);
    default:
      return block satisfies never;
  }
}

const plainText = (text: string): JsonObject => ({ type: 'text', text, citations: null });

function lose(type: string, path: string, context: CodecContext): JsonObject[] {
  drop(context, { path, feature: `content.${type}`, message: `an answer of Anthropic Messages holds no such ${type}` });
  return [];
}

/** What another provider signed follows its signature. */
const signed = ({ signature }: TextBlock | ToolUseBlock, block: JsonObject, { context, wantsThinking }: Answer): JsonObject[] =>
  signature && wantsThinking ? [carrierBlock(signature, 'next', context), block] : [block];

const encodeToolUse = (block: ToolUseBlock, path: string, answer: Answer): JsonObject[] =>
  signed(block, encodeCall(block, encodeInput(block, path, answer.context, INVALID), path, answer), answer);

function encodeText(block: TextBlock, path: string, answer: Answer): JsonObject[] {
  const { context, wantsThinking } = answer;
  const { text, citations = [], signature, logprobs } = block;
  if (logprobs) dropLogprobs(path, NO_LOGPROBS, context);
  const cited = citations.flatMap((citation) => encodeCitation(citation, `${path}/citations`, context) ?? []);
  if (signature && !wantsThinking) dropSignature(path, 'text', answer);
  if (text === '' && cited.length === 0) return signature && wantsThinking ? [carrierBlock(signature, 'self', context)] : [];
  const written = { ...fieldsOf(block), type: 'text', text, citations: cited.length > 0 ? cited : null };
  return signed(block, written, answer);
}

/** Thinking always has a signature. What nobody signed is not sent to Anthropic again (P80). */
function encodeThinking(block: ThinkingBlock, answer: Answer): JsonObject[] {
  const { context, isForeign, wantsThinking } = answer;
  const { thinking, signature } = block;
  if (signature?.origin === 'anthropic-messages' && signature.form === 'redacted')
    return [{ ...fieldsOf(block), type: 'redacted_thinking', data: signature.value }];
  if (isForeign && thinking === '' && (!signature || !wantsThinking)) {
    answer.held = signature ?? answer.held;
    return [];
  }
  return [
    {
      ...fieldsOf(block),
      type: 'thinking',
      thinking,
      signature: signature ? encodeSignature(signature, 'self', context) : isForeign ? encodeUnsigned(context) : '',
    },
  ];
}
