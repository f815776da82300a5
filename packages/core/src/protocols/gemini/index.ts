import type { CanonicalResponse, ContentBlock, ImageBlock, ToolUseBlock } from '../../canonical/message.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { Protocol } from '../../codec/protocol.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { GEMINI_TEXTS } from '../../rules/gemini.ts';
import { decodeStream } from './stream-decode.ts';
import { hasUsage, isResponse, isWrapped, toCamelObject } from './wire.ts';

/** Gemini's generateContent for reading: the Gemini API, Vertex AI and Cloud Code. */
export const gemini: Protocol = {
  id: 'gemini',
  rules: GEMINI_TEXTS,
  streamDecoder: decodeStream,
  recognises,
  extras: buildExtras,
  callFields: readCallFields,
};

/** The signatures, the block reason and the images of a message, in wire form. */
function buildExtras({ content, extensions }: CanonicalResponse): JsonObject {
  const signatures = content.flatMap(listSignature);
  const images = content.filter((block) => block.type === 'image').map(encodeImage);
  const { blockReason }: { blockReason?: unknown } = toCamelObject(toCamelObject(extensions?.gemini)['promptFeedback']);
  return {
    ...(signatures.length > 0 && { part_signatures: signatures }),
    ...(blockReason !== undefined && blockReason !== null && { block_reason: blockReason }),
    ...(images.length > 0 && { images }),
  };
}

/** Signatures of text and thinking; those of calls are fields of the calls. */
const listSignature = (block: ContentBlock): string[] =>
  (block.type === 'text' || block.type === 'thinking') && isThoughtSignature(block.signature) ? [block.signature.value] : [];

function encodeImage({ source }: ImageBlock): JsonObject {
  const uri = source.url ?? source.file_id;
  return {
    ...(source.media_type !== undefined && { mimeType: source.media_type }),
    ...(source.data !== undefined && { data: source.data }),
    ...(uri !== undefined && { fileUri: uri }),
  };
}

/** The fields of a functionCall part beside id, name and args. */
function readCallFields({ extensions, signature }: ToolUseBlock): JsonObject {
  const { functionCall, ...fields }: JsonObject = extensions?.gemini ?? {};
  return {
    ...fields,
    ...(isObject(functionCall) && functionCall),
    ...(isThoughtSignature(signature) && { thoughtSignature: signature.value }),
  };
}

const isThoughtSignature = (signature: SignedBlob | undefined): signature is SignedBlob =>
  signature?.form === 'thought_signature';

function recognises(payload: JsonObject): boolean {
  const { response, error }: { response?: unknown; error?: unknown } = payload;
  if (isObject(response) && isWrapped(payload)) return recognises(response);
  if (isObject(error)) return isGoogleStatus(error);
  return isResponse(payload) || hasUsage(payload);
}

/** Whether an error is a google.rpc.Status: other protocols have no status in capitals. */
function isGoogleStatus({ code, status }: JsonObject): boolean {
  return typeof code === 'number' && typeof status === 'string' && /^[A-Z]+(_[A-Z]+)*$/.test(status);
}
