import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, ImageBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { camelObject } from './wire.ts';

/** What a message holds beside text, thoughts and calls, in the words of the wire. */
export function extrasOf({ content, extensions }: CanonicalResponse): JsonObject {
  const signatures = content.flatMap(signatureOf);
  const images = content.filter((block) => block.type === 'image').map(encodeImage);
  const { blockReason }: { blockReason?: unknown } = camelObject(camelObject(extensions?.gemini)['promptFeedback']);
  return {
    ...(signatures.length > 0 && { part_signatures: signatures }),
    ...(blockReason !== undefined && blockReason !== null && { block_reason: blockReason }),
    ...(images.length > 0 && { images }),
  };
}

/** Those of calls are fields of the calls. */
const signatureOf = (block: ContentBlock): string[] =>
  (block.type === 'text' || block.type === 'thinking') && isOwn(block.signature) ? [block.signature.value] : [];

const isOwn = (signature: SignedBlob | undefined): signature is SignedBlob => signature?.form === 'thought_signature';

function encodeImage({ source }: ImageBlock): JsonObject {
  const uri = source.url ?? source.file_id;
  return {
    ...(source.media_type !== undefined && { mimeType: source.media_type }),
    ...(source.data !== undefined && { data: source.data }),
    ...(uri !== undefined && { fileUri: uri }),
  };
}

/** The fields of a functionCall part beside id, name and args. */
export function callFields({ extensions, signature }: ToolUseBlock): JsonObject {
  const { functionCall, ...fields }: JsonObject = extensions?.gemini ?? {};
  return {
    ...fields,
    ...(isObject(functionCall) && functionCall),
    ...(isOwn(signature) && { thoughtSignature: signature.value }),
  };
}
