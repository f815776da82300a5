import { assignOwn, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type {
  AudioBlock,
  ContentBlock,
  FileBlock,
  ImageBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../../canonical/request.ts';
import { isClientCall } from '../../canonical/response.ts';
import { argumentsOf } from '../shared/answer.ts';
import { approximate, type CodecContext, drop, repair } from '../shared/codec.ts';
import { tellInexactNumbers } from '../shared/exact-numbers.ts';
import { objectOf } from '../shared/read.ts';
import { encodeServerResult } from './candidate-encode.ts';
import { fieldsOf, innerFields, partFields } from './kept.ts';
import { levelOf } from './media-decode.ts';
import {
  argsText,
  callParts,
  encodeAllMedia,
  encodeMedia,
  encodeResult,
  isMedium,
  resultMedia,
  signatureField,
  tellWrapped,
} from './parts-encode.ts';

/** Google's documented word for "there is no signature": without any, Gemini 3 refuses the calls of a turn. */
const NO_SIGNATURE = 'skip_thought_signature_validator';

interface Turn {
  role: 'user' | 'model';
  /** What the client's contents said beside role and parts. */
  fields: JsonObject;
  parts: JsonObject[];
}

/** The conversation in turns that change hands; results are the user's, and stand first in the user's turn. */
export function encodeContents(request: CanonicalRequest, context: CodecContext): JsonObject[] {
  const calls = new Map(callsOf(request).map((call) => [call.id, call]));
  const turns: Turn[] = [];
  signTurns(request.messages, context).forEach((message, i) => {
    const role = message.role === 'assistant' ? 'model' : 'user';
    const path = `/messages/${i}/content`;
    tellNames(message.content, path, context);
    const parts = encodeMessage(message, path, calls, context);
    const last = turns.at(-1);
    if (last?.role !== role) turns.push({ role, fields: { ...fieldsOf(message) }, parts });
    else {
      assignOwn(last.fields, fieldsOf(message));
      for (const part of parts) last.parts.push(part);
    }
  });
  return turns.filter(({ parts }) => parts.length > 0).map(({ fields, role, parts }) => ({ ...fields, role, parts }));
}

/** What OpenAI wants a name for has one when it has none: it says no more than the media type. */
const NO_NAME = /^document\.\w+$/;

/** Of the name of a file there is at most the media type in the end. */
function tellNames(blocks: readonly ContentBlock[], path: string, context: CodecContext): void {
  for (const [i, block] of blocks.entries()) {
    if (block.type === 'tool_result' && typeof block.content !== 'string')
      tellNames(block.content, `${path}/${i}/content`, context);
    if (block.type === 'file' && block.source.filename && !NO_NAME.test(block.source.filename))
      drop(context, { path: `${path}/${i}/source/filename`, feature: 'file.filename', message: 'files of Gemini have no names' });
  }
}

const callsOf = ({ messages }: CanonicalRequest): ToolUseBlock[] =>
  messages.flatMap(({ content }) => content.filter((block) => block.type === 'tool_use'));

/** Gemini 3: the first call of a turn without any signature gets the word for none; its siblings stay without. */
function signTurns(messages: readonly CanonicalMessage[], context: CodecContext): readonly CanonicalMessage[] {
  if (!context.profile.gemini3) return messages;
  return messages.map((message, i) => {
    const first = message.content.find((block) => block.type === 'tool_use' && isClientCall(block.kind));
    if (first?.type !== 'tool_use' || first.signature) return message;
    repair(context, {
      path: `/messages/${i}/content/${message.content.indexOf(first)}`,
      feature: 'messages.signature',
      message: 'the calls have no signature of Gemini; they say so',
    });
    const signed: ToolUseBlock = { ...first, signature: { origin: 'gemini', form: 'thought_signature', value: NO_SIGNATURE } };
    return { ...message, content: message.content.map((block) => (block === first ? signed : block)) };
  });
}

function encodeMessage(
  { role, content }: CanonicalMessage,
  path: string,
  calls: ReadonlyMap<string, ToolUseBlock>,
  context: CodecContext,
): JsonObject[] {
  if (role !== 'tool') return content.flatMap((block, i) => encodeBlock(block, `${path}/${i}`, calls, context));
  const results = content.filter((block) => block.type === 'tool_result');
  const parts = results.map((block) => encodeToolResult(block, calls.get(block.tool_use_id), context));
  // Before Gemini 3 a result holds no media: they follow all results of the turn.
  const media = context.profile.gemini3
    ? []
    : results.flatMap((block) =>
        encodeResultMedia(block, calls.get(block.tool_use_id), `${path}/${content.indexOf(block)}`, results.length > 1, context),
      );
  return [...parts, ...media];
}

/** The media of a result, outside of it. Beside other results (`isOneOfMany`), a text says which one they belong to. */
function encodeResultMedia(
  block: ToolResultBlock,
  call: ToolUseBlock | undefined,
  path: string,
  isOneOfMany: boolean,
  context: CodecContext,
): JsonObject[] {
  const media = encodeAllMedia(resultMedia(block.content));
  if (media.length === 0 || !isOneOfMany) return media;
  const label = `Media of the result of ${call?.name ?? block.name ?? 'a call'} (${block.tool_use_id}):`;
  const message =
    'results hold no media before Gemini 3; they follow all results of the turn, each behind a text that names its call';
  approximate(context, { path, feature: 'tool_result.media', message });
  return [{ text: label }, ...media];
}

function encodeToolResult(block: ToolResultBlock, call: ToolUseBlock | undefined, context: CodecContext): JsonObject {
  const { gemini3 } = context.profile;
  const name = call?.name ?? block.name ?? block.tool_use_id;
  const media = gemini3 ? encodeAllMedia(resultMedia(block.content)) : [];
  const parts = [...media, ...ownParts(block)];
  return {
    ...partFields(block),
    functionResponse: { ...encodeResult(block, name, hasId(block, call, context)), ...(parts.length > 0 && { parts }) },
  };
}

/** A result has an id where ids are known, and where the call or the client's own result has one. */
const hasId = (result: ToolResultBlock, call: ToolUseBlock | undefined, { profile }: CodecContext): boolean =>
  profile.function_call_ids &&
  (typeof innerFields(result, 'functionResponse')['id'] === 'string' ||
    !(call && innerFields(call, 'functionCall')['id'] === null));

/** Parts of a result that only Google understands. */
const ownParts = ({ content }: ToolResultBlock): unknown[] =>
  typeof content === 'string'
    ? []
    : content.flatMap((part) => (part.type === 'opaque' && part.origin === 'gemini' ? [part.raw] : []));

function encodeBlock(
  block: ContentBlock,
  path: string,
  calls: ReadonlyMap<string, ToolUseBlock>,
  context: CodecContext,
): JsonObject[] {
  switch (block.type) {
    case 'text': {
      const part = { ...partFields(block), text: block.text, ...signatureField(block, context) };
      return block.text === '' && Object.keys(part).length === 1 ? [] : [part];
    }
    case 'thinking':
      return encodeThought(block, path, context);
    case 'tool_use':
      return [encodeToolUse(block, path, context)];
    case 'tool_result':
      return isClientCall(block.kind) ? [] : [encodeServerResult(block, hasId(block, calls.get(block.tool_use_id), context))];
    case 'image':
    case 'audio':
    case 'file':
      return encodeMediaPart(block, path, context);
    case 'opaque':
      return block.origin === 'gemini' ? [objectOf(block.raw)] : block.text ? [{ text: block.text }] : [];
    default:
      return block satisfies never;
  }
}

/** Google needs no thoughts back; those that a client of its own sent go as they came, and so does what Google signed. */
function encodeThought(block: ThinkingBlock, path: string, context: CodecContext): JsonObject[] {
  const fields = partFields(block);
  if (block.signature || fields['thought'] === true) {
    const thought = block.thinking !== '' || fields['thought'] === true ? { thought: true } : {};
    return [{ ...fields, text: block.thinking, ...thought, ...signatureField(block, context) }];
  }
  if (block.thinking !== '' || block.extensions)
    drop(context, { path, feature: 'assistant.thinking', message: 'the thinking of an earlier turn is not sent' });
  return [];
}

function encodeToolUse(block: ToolUseBlock, path: string, context: CodecContext): JsonObject {
  const { json, isWrapped } = argsText(argumentsOf(block, false));
  if (isWrapped) tellWrapped(context, path);
  else tellInexactNumbers(json, path, context);
  const { outer, inner } = callParts(block, context.profile.function_call_ids);
  return { ...outer, functionCall: { ...inner, args: parseJson(json) }, ...signatureField(block, context) };
}

function encodeMediaPart(block: ImageBlock | AudioBlock | FileBlock, path: string, context: CodecContext): JsonObject[] {
  const part = encodeMedia(block);
  if (!part || !isMedium(block)) return [];
  if (block.type === 'image' && block.source.url !== undefined && !block.extensions?.gemini)
    approximate(context, { path, feature: 'image.url', message: 'Gemini fetches the image itself, which older models do not' });
  return [{ ...part, ...(block.type === 'image' && encodeDetail(block)) }];
}

function encodeDetail(block: ImageBlock): JsonObject {
  const level = levelOf(block.source.detail);
  return level === undefined || fieldsOf(block)['mediaResolution'] !== undefined ? {} : { mediaResolution: { level } };
}
