import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type { ContentBlock, ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import { at } from '../../canonical/source.ts';
import { type CodecContext, invalid, repair } from '../shared/codec.ts';
import { expectName, expectObject, expectShallowJson, pointerOf } from '../shared/expect.ts';
import { objectOf, textOf, unknownFields } from '../shared/read.ts';
import { decodeMedia, decodeResult, opaque } from './blocks.ts';
import type { CallBook } from './call-book.ts';
import { fieldsOf, keep } from './kept.ts';
import { decodeMediaFields } from './media-decode.ts';
import { decodeSignature } from './signature.ts';
import { CALL_FIELDS, CARRIER_FIELDS, camelKeys, PART_FIELDS, type WirePart } from './wire.ts';

/** Where a part stands, and what is known there. */
export interface PartSite {
  /** JSON path of the content. */
  param: string;
  /** Its place among the contents. */
  content: number;
  role: 'user' | 'model' | 'system';
  book: CallBook;
  context: CodecContext;
}

/** A part of a request as blocks: none when it says nothing. A call is tested first: a part can be both a call and a thought. */
export function decodePart(value: unknown, index: number, site: PartSite): ContentBlock[] {
  const param = `${site.param}.parts[${index}]`;
  const raw = typeof value === 'string' ? { text: value } : expectObject(value, param);
  const part: WirePart = camelKeys(raw);
  const block =
    decodeData(part, raw, param, index, site) ??
    (typeof part.text === 'string' ? decodeText(part, part.text, site) : decodeOther(raw));
  if (!block) return [];
  const place = `/contents/${site.content}/parts/${index}`;
  const placed = at(place, block, site.context, {
    'source/detail': `${place}/mediaResolution/level`,
    'source/video': `${place}/videoMetadata`,
    'source/video/start': `${place}/videoMetadata/startOffset`,
    'source/video/end': `${place}/videoMetadata/endOffset`,
    'source/video/fps': `${place}/videoMetadata/fps`,
    signature: `${place}/thoughtSignature`,
  });
  if (placed.type === 'tool_use') site.book.ask(placed);
  return [placed];
}

function decodeData(part: WirePart, raw: JsonObject, param: string, index: number, site: PartSite): ContentBlock | undefined {
  const fields = { ...unknownFields(part, PART_FIELDS), ...(part.thought === true && { thought: true }) };
  if (isObject(part.functionCall))
    return decodeCall(camelKeys(part.functionCall), part, fields, `${param}.functionCall`, index, site);
  const signature = textOf(part.thoughtSignature);
  const kept = { ...fields, ...(signature !== '' && { thoughtSignature: signature }) };
  if (isObject(part.functionResponse))
    return decodeAnswer(camelKeys(part.functionResponse), kept, `${param}.functionResponse`, index, site);
  if (!isObject(part.inlineData) && !isObject(part.fileData)) return undefined;
  const media = decodeMedia(part, Object.keys(kept).length > 0 ? kept : undefined);
  return media ? decodeMediaFields(media) : opaque(raw);
}

/** Nothing for an empty text that nobody signed. */
function decodeText(part: WirePart, text: string, { role }: PartSite): ContentBlock | undefined {
  const fields = unknownFields(part, PART_FIELDS);
  const value = textOf(part.thoughtSignature);
  const signature = value !== '' && { signature: decodeSignature(value) };
  if (text === '' && !signature && !fields) return undefined;
  if (part.thought === true && role === 'model')
    return { type: 'thinking', thinking: text, variant: 'summary', ...signature, ...keep({ ...fields, thought: true }) };
  return { type: 'text', text, ...signature, ...keep({ ...fields, ...(part.thought === true && { thought: true }) }) };
}

/** Code that Google ran, and whatever the future brings. A part without any content says nothing. */
function decodeOther(raw: JsonObject): ContentBlock | undefined {
  const carried = camelKeys(raw)['thoughtSignature'];
  if (unknownFields(raw, CARRIER_FIELDS)) return opaque(raw);
  return typeof carried === 'string' && carried !== ''
    ? { type: 'text', text: '', signature: decodeSignature(carried) }
    : undefined;
}

function decodeCall(
  call: JsonObject,
  part: WirePart,
  fields: JsonObject,
  param: string,
  index: number,
  { content, role, context }: PartSite,
): ToolUseBlock {
  if (role !== 'model') throw invalid(param, 'only the model calls');
  const name = expectName(call['name'], `${param}.name`);
  const id = typeof call['id'] === 'number' ? String(call['id']) : textOf(call['id']);
  const signature = textOf(part.thoughtSignature) || textOf(call['thoughtSignature']);
  const unknown = unknownFields(call, CALL_FIELDS);
  return {
    type: 'tool_use',
    id: id || deriveId('call_', content, index, name),
    name,
    ...decodeArgs(call['args'], `${param}.args`, context),
    ...(signature !== '' && { signature: decodeSignature(signature) }),
    ...keep({ ...fields, ...inner(unknown, 'functionCall', id) }),
  };
}

/** The kept fields of the object in a part. That the wire had no id is kept too: whoever did not send one may not know them. */
function inner(fields: JsonObject | undefined, key: 'functionCall' | 'functionResponse', id: string): JsonObject {
  const kept = { ...fields, ...(id === '' && { id: null }) };
  return Object.keys(kept).length > 0 ? { [key]: kept } : {};
}

/** Arguments are an object; what else came is kept as text. */
function decodeArgs(args: unknown, param: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (args === undefined || args === null) return { input: {} };
  if (isObject(args)) return { input: args };
  const text = typeof args === 'string' ? args : (writeJson(args) ?? '');
  const value = expectShallowJson(text, param);
  repair(context, {
    path: pointerOf(param),
    feature: 'messages.tool_use.input',
    message: 'the arguments of a call are no object',
  });
  return { input: isObject(value) ? value : {}, input_raw: text };
}

/** In the model's own content it is the answer to a call that Google ran itself; from anybody else, that of the client. */
function decodeAnswer(
  answer: JsonObject,
  fields: JsonObject,
  param: string,
  index: number,
  { content, role, book, context }: PartSite,
): ToolResultBlock {
  const id = typeof answer['id'] === 'number' ? String(answer['id']) : textOf(answer['id']);
  const named = textOf(answer['name']);
  if (id === '' && named === '') throw invalid(`${param}.name`, 'must be the name of the function that was called');
  const call = role === 'model' ? book.serve(id, named) : book.answer(id, named);
  const name = named || (call?.name ?? '');
  const result = decodeResult(answer, call?.id ?? (id || deriveId('call_', content, index, named)), fields);
  const kept = { ...fieldsOf(result), ...inner(keptResult(result, answer, id), 'functionResponse', id) };
  const block: ToolResultBlock = {
    ...result,
    content: placedParts(result.content, param, context),
    ...(name !== '' && { name }),
    ...keep(kept),
  };
  if (role !== 'model') return block;
  if (call) call.kind = 'server'; // its block is ours, and only now known to be this
  // What is kept of a result says whose server gave it.
  return { ...block, kind: 'server', extensions: { gemini: kept } };
}

/** An empty list of parts, and an id that is not the call's (qwen-code sends one for calls without), go back as they came. */
function keptResult(result: ToolResultBlock, { parts }: JsonObject, id: string): JsonObject {
  return {
    ...objectOf(fieldsOf(result)['functionResponse']),
    ...(id !== '' && id !== result.tool_use_id && { id }),
    ...(Array.isArray(parts) && parts.length === 0 && { parts }),
  };
}

/** The text of a result is its `response`, its media are its parts. */
function placedParts(content: ToolResultBlock['content'], param: string, context: CodecContext): ToolResultBlock['content'] {
  if (typeof content === 'string') return content;
  const place = pointerOf(param);
  return content.map((part, i) => at(i === 0 ? `${place}/response` : `${place}/parts/${i - 1}`, part, context));
}
