import { isObject, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type {
  AudioBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
} from '../../canonical/blocks.ts';
import type { Node, SignedBlob } from '../../canonical/protocol.ts';
import { listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { BLOB_FIELDS, CARRIER_FIELDS, camelObject, FUNCTION_RESPONSE_FIELDS, type WirePart } from './wire.ts';

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

export const signed = (value: string): SignedBlob => ({ origin: 'gemini', form: 'thought_signature', value });

/** The fields nobody knows, for a node that has some. */
export const extended = (fields: JsonObject | undefined): Node => (fields ? { extensions: { gemini: fields } } : {});

/** A text-like block as it starts. Gemini shows thoughts as summaries only. */
export function emptyBlock(kind: 'text' | 'thinking', fields: JsonObject | undefined): TextBlock | ThinkingBlock {
  if (kind === 'text') return { type: 'text', text: '', ...extended(fields) };
  return { type: 'thinking', thinking: '', variant: 'summary', ...extended(fields) };
}

/** executableCode, toolCall and whatever the future brings: only Gemini understands it, so the part stays as it is. */
export const opaque = (raw: JsonObject): OpaqueBlock => ({ type: 'opaque', origin: 'gemini', raw });

/** The block of a part with inlineData or fileData. `fields`: what else the part says (a signature, `thought`). */
export function decodeMedia({ inlineData, fileData }: WirePart, fields?: JsonObject): MediaBlock | undefined {
  const blob = camelObject(isObject(inlineData) ? inlineData : fileData);
  const { mimeType, data, fileUri }: { mimeType?: unknown; data?: unknown; fileUri?: unknown } = blob;
  const media_type = textOf(mimeType);
  const more = unknownFields(blob, BLOB_FIELDS);
  const within = more && { [isObject(inlineData) ? 'inlineData' : 'fileData']: more };
  // Whose a file is, its node says.
  const isOwn = typeof fileUri === 'string' && !isRemote(fileUri);
  const node = extended(fields || within || isOwn ? { ...fields, ...within } : undefined);
  if (isObject(inlineData) && typeof data === 'string') return inlineBlock(media_type, standardBase64(data), node);
  return typeof fileUri === 'string' ? fileBlock(media_type, fileUri, node) : undefined;
}

/** proto3 readers take both base64 alphabets; everybody else takes the standard one. */
const standardBase64 = (data: string): string => (/[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data);

function inlineBlock(media_type: string, data: string, node: Node): MediaBlock {
  const type = media_type && { media_type };
  if (media_type.startsWith('image/')) return { type: 'image', source: { data, media_type }, ...node };
  if (media_type.startsWith('audio/')) return { type: 'audio', source: { data, media_type }, ...node };
  return { type: 'file', source: { file_data: data, ...(type || {}) }, ...node };
}

/** Files of the API and of Cloud Storage are no addresses that others could fetch. */
const isRemote = (uri: string): boolean => /^https?:/.test(uri) && !uri.startsWith('https://generativelanguage.googleapis.com/');

function fileBlock(media_type: string, uri: string, node: Node): MediaBlock {
  const type = media_type === '' ? {} : { media_type };
  const at = isRemote(uri) ? { url: uri } : { file_id: uri };
  if (media_type.startsWith('image/')) return { type: 'image', source: { ...at, ...type }, ...node };
  if (media_type.startsWith('audio/')) return { type: 'audio', source: { ...at, ...type }, ...node };
  return { type: 'file', source: { ...(isRemote(uri) ? { file_url: uri } : { file_id: uri }), ...type }, ...node };
}

/** A functionResponse in the model's own content: the answer to a call that Google ran itself (tools[].mcpServers). */
export const decodeServerResult = (result: JsonObject, tool_use_id: string, fields: JsonObject | undefined): ToolResultBlock => ({
  ...decodeResult(result, tool_use_id, fields),
  kind: 'server',
});

const MEDIA_FIELDS: ReadonlySet<string> = new Set(['inlineData', 'fileData']);

export function decodeResult(result: JsonObject, tool_use_id: string, fields: JsonObject | undefined): ToolResultBlock {
  const { response }: { response?: unknown } = result;
  const isError = isFailure(response);
  const text = responseText(response);
  const media = listOf(result['parts'])
    .filter((part) => isObject(part) && unknownFields(part, CARRIER_FIELDS))
    .map((part) => decodeMedia(camelObject(part), unknownFields(camelObject(part), MEDIA_FIELDS)) ?? opaque(objectOf(part)));
  const within = { ...unknownFields(result, FUNCTION_RESPONSE_FIELDS), ...(!isPlainResult(response) && { response }) };
  const kept = { ...fields, ...(Object.keys(within).length > 0 && { functionResponse: within }) };
  return {
    type: 'tool_result',
    tool_use_id,
    ...(textOf(result['name']) !== '' && { name: textOf(result['name']) }),
    content: media.length > 0 ? [{ type: 'text', text }, ...media] : text,
    ...(isError && { is_error: true }),
    ...extended(Object.keys(kept).length > 0 ? kept : undefined),
  };
}

export const isFailure = (response: unknown): boolean =>
  isObject(response) && response['error'] !== undefined && response['error'] !== null;

const RESULT_KEYS: ReadonlySet<string> = new Set(['output', 'result', 'error']);

/** `{output}`, `{result}` and `{error}` are Google's convention; any other object, and one that says more, is the result itself. */
export function responseText(response: unknown): string {
  const said = isObject(response) ? Object.entries(response).filter(([, value]) => value !== null) : [];
  const [only] = said;
  const value = said.length === 1 && only && RESULT_KEYS.has(only[0]) ? only[1] : response;
  return typeof value === 'string' ? value : (writeJson(value) ?? '');
}

/** The text alone brings it back. */
const isPlainResult = (response: unknown): boolean =>
  isObject(response) &&
  Object.keys(response).length === 1 &&
  (typeof response['output'] === 'string' || typeof response['error'] === 'string');
