import { isSet, type JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock } from '../../canonical/blocks.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { objectOf } from '../shared/read.ts';
import { encodeImage, encodeLogprobs } from './blocks.ts';

/** What a chat message holds beside text, reasoning and calls, in the words of the wire. */
export function extrasOf({ content, extensions }: CanonicalResponse): JsonObject {
  const fields = objectOf(extensions?.['openai-chat']);
  const message = objectOf(fields['message']);
  const annotations = citationsOf(content);
  const images = content.filter((block) => block.type === 'image').map(encodeImage);
  const audio = content.find((block) => block.type === 'audio');
  const extras: JsonObject = {
    reasoning_details: message['reasoning_details'],
    reasoning_opaque: message['reasoning_opaque'],
    annotations: annotations.length > 0 ? annotations : undefined,
    citations: fields['citations'],
    images: images.length > 0 ? images : undefined,
    audio: audio && encodeAudio(audio, objectOf(message['audio'])),
    logprobs: encodeLogprobs(content),
    prompt_filter_results: fields['prompt_filter_results'],
    thinking_blocks: message['thinking_blocks'],
    legacy_function_call: message['function_call'],
  };
  return Object.fromEntries(Object.entries(extras).filter(([, value]) => isSet(value)));
}

const citationsOf = (content: readonly ContentBlock[]): unknown[] =>
  content.flatMap((block) => (block.type === 'text' && block.citations ? block.citations.map(({ raw }) => raw) : []));

function encodeAudio({ source, transcript, audio_id }: AudioBlock, rest: JsonObject): JsonObject {
  return { id: audio_id, data: source.data, transcript, ...rest };
}
