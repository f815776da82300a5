import { isObject, type JsonObject, parseJson, writeJson } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock, FileBlock, ImageBlock, ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { isFailure, responseText } from './blocks.ts';
import { fieldsOf, innerFields, partFields } from './kept.ts';
import { mediaTypeOf } from './media-type.ts';
import { encodeSignature } from './signature.ts';

// Parts that requests, whole answers and streams write in the same words.

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/** A part with inlineData or fileData; undefined for what has neither data nor an address. */
export function encodeMedia(block: MediaBlock): JsonObject | undefined {
  const { data, uri } = placeOf(block);
  const mimeType = mediaTypeOf(block, data);
  if (data !== undefined)
    return { ...partFields(block), inlineData: { ...innerFields(block, 'inlineData'), mimeType, data }, ...encodeVideo(block) };
  if (uri === undefined) return undefined;
  const isTyped = block.source.media_type !== undefined || fieldsOf(block)['fileData'] === undefined;
  const fileData = { ...innerFields(block, 'fileData'), ...(isTyped && { mimeType }), fileUri: uri };
  return { ...partFields(block), fileData, ...encodeVideo(block) };
}

function placeOf(block: MediaBlock): { data?: string | undefined; uri?: string | undefined } {
  if (block.type !== 'file') return { data: block.source.data, uri: block.source.url ?? block.source.file_id };
  return { data: block.source.file_data, uri: block.source.file_url ?? block.source.file_id };
}

/** Which stretch of a video is looked at. */
function encodeVideo(block: MediaBlock): JsonObject {
  const video = block.type === 'file' ? block.source.video : undefined;
  if (!video) return {};
  const kept = fieldsOf(block)['videoMetadata'];
  return {
    videoMetadata: {
      ...(isObject(kept) && kept),
      ...(video.start !== undefined && { startOffset: video.start }),
      ...(video.end !== undefined && { endOffset: video.end }),
      ...(video.fps !== undefined && { fps: video.fps }),
    },
  };
}

/** The part of a call around its arguments. `hasId`: the other side knows ids; who sent none gets none. */
export function callParts(block: ToolUseBlock, hasId: boolean): { outer: JsonObject; inner: JsonObject } {
  const { id: kept, ...inner } = innerFields(block, 'functionCall');
  return { outer: partFields(block), inner: { ...inner, ...(hasId && kept !== null && { id: block.id }), name: block.name } };
}

const LINE_ENDS = /[\r\n]+/g;

/**
 * Arguments are an object here: anything else stands under `input`, and so does the free text of a custom tool, whatever it looks like. It is
 * the text of the wire on one line: numbers survive.
 */
export function argsText(text: string, isCustom = false): { json: string; isWrapped: boolean } {
  const value = isCustom ? text : text.trim() === '' ? null : parseJson(text);
  if (value === null) return { json: '{}', isWrapped: false }; // none; Groq says it in this word
  // In JSON a line end is white space: it never stands in a string.
  if (isObject(value)) return { json: text.replace(LINE_ENDS, ' '), isWrapped: false };
  return { json: writeJson({ input: value ?? text }) ?? '{}', isWrapped: true };
}

/** The arguments of a function are no JSON: cut, or garbled. Wrapped, they would look like a call to run. */
export const isBroken = (text: string, { kind }: ToolUseBlock): boolean =>
  kind !== 'custom' && text.trim() !== '' && parseJson(text) === undefined;

/** Nothing in the text shows that it is all: the rest may have been lost with the end of the message. */
export const isDoubtful = (text: string, block: ToolUseBlock): boolean =>
  block.kind === 'custom' || text.trim() === '' || isBroken(text, block);

export function tellWrapped(context: CodecContext, path: string): void {
  const message = 'the arguments of a call are no object; they stand under input';
  approximate(context, { path, feature: 'tool_use.input', message });
}

/** A functionResponse without its media. `{output}` and `{error}` are Google's convention; the object that came goes back while it says the same. */
export function encodeResult(block: ToolResultBlock, name: string, hasId: boolean): JsonObject {
  const { response: kept, id, ...inner } = innerFields(block, 'functionResponse');
  const text = resultText(block.content);
  const isSame = isObject(kept) && responseText(kept) === text && isFailure(kept) === (block.is_error === true);
  return {
    ...inner,
    ...(hasId && id !== null && { id: id ?? block.tool_use_id }),
    name,
    response: isSame ? kept : { [block.is_error ? 'error' : 'output']: text },
  };
}

/** The texts of a result; its media stand elsewhere. */
function resultText(content: ToolResultBlock['content']): string {
  if (typeof content === 'string') return content;
  return content
    .flatMap((block) => (block.type === 'text' ? [block.text] : block.type === 'opaque' && block.text ? [block.text] : []))
    .join('\n');
}

export const encodeAllMedia = (blocks: readonly MediaBlock[]): JsonObject[] =>
  blocks.map(encodeMedia).filter((part) => part !== undefined);

export const resultMedia = (content: ToolResultBlock['content']): MediaBlock[] =>
  typeof content === 'string' ? [] : content.filter(isMedium);

export const isMedium = (block: ContentBlock): block is MediaBlock =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

/** As a part of a part. */
export const signatureField = (
  { signature }: { signature?: Parameters<typeof encodeSignature>[0] | undefined },
  context: CodecContext,
): JsonObject => (signature ? { thoughtSignature: encodeSignature(signature, context) } : {});
