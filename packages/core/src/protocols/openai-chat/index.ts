import type { AudioBlock, CanonicalResponse, ContentBlock, ToolUseBlock } from '../../canonical/message.ts';
import type { Protocol } from '../../codec/protocol.ts';
import { objectOrEmpty } from '../../codec/read.ts';
import { isSet } from '../../json/fast.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { OPENAI_CHAT_TEXTS } from '../../rules/openai-chat.ts';
import { encodeImage, encodeLogprobs } from './blocks.ts';
import { decodeStream } from './stream-decode.ts';

/** OpenAI Chat Completions, and the many servers that call themselves compatible with it. */
export const openaiChat: Protocol = {
  id: 'openai-chat',
  rules: OPENAI_CHAT_TEXTS,
  streamDecoder: decodeStream,
  recognises,
  extras: collectExtras,
  callFields: readCallFields,
  callIndex: readCallIndex,
};

function recognises({ object, choices }: JsonObject): boolean {
  // Azure has `extensions.chat.completion.chunk`.
  if (typeof object === 'string' && (object.includes('chat.completion') || object === 'text_completion')) return true;
  return (
    Array.isArray(choices) &&
    choices.every((choice) => isObject(choice) && (isObject(choice['delta']) || isObject(choice['message'])))
  );
}

/** The content of a chat message other than text, reasoning and calls, in wire form. */
function collectExtras({ content, extensions }: CanonicalResponse): JsonObject {
  const fields = objectOrEmpty(extensions?.['openai-chat']);
  const message = objectOrEmpty(fields['message']);
  const annotations = listAnnotations(content);
  const images = content.filter((block) => block.type === 'image').map(encodeImage);
  const audio = content.find((block) => block.type === 'audio');
  const extras: JsonObject = {
    reasoning_details: message['reasoning_details'],
    reasoning_opaque: message['reasoning_opaque'],
    annotations: annotations.length > 0 ? annotations : undefined,
    citations: fields['citations'],
    images: images.length > 0 ? images : undefined,
    audio: audio && encodeAudio(audio, objectOrEmpty(message['audio'])),
    logprobs: encodeLogprobs(content),
    prompt_filter_results: fields['prompt_filter_results'],
    thinking_blocks: message['thinking_blocks'],
    legacy_function_call: message['function_call'],
  };
  return Object.fromEntries(Object.entries(extras).filter(([, value]) => isSet(value)));
}

const listAnnotations = (content: readonly ContentBlock[]): unknown[] =>
  content.flatMap((block) => (block.type === 'text' && block.citations ? block.citations.map(({ raw }) => raw) : []));

function encodeAudio({ source, transcript, audio_id }: AudioBlock, rest: JsonObject): JsonObject {
  return { id: audio_id, data: source.data, transcript, ...rest };
}

function readCallFields({ extensions }: ToolUseBlock): JsonObject {
  const { index: _, ...fields }: JsonObject = extensions?.['openai-chat'] ?? {};
  return fields;
}

function readCallIndex({ extensions }: ToolUseBlock): number | undefined {
  const index = extensions?.['openai-chat']?.['index'];
  return typeof index === 'number' ? index : undefined;
}
