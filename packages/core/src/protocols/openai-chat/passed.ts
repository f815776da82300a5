import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { PassedTarget } from '../shared/codec.ts';
import { listOf, objectOf } from '../shared/read.ts';
import { REASONING_FIELDS } from './reasoning.ts';

/**
 * Streams are asked for their usage, which the encoder of the response hides from clients that did not ask. What the server is known to refuse is
 * removed.
 */
export function adjustPassed(body: JsonObject, target: PassedTarget): JsonObject | undefined {
  const changes = {
    ...askForUsage(body, target),
    ...(target.profile.reasoning_replay === 'never' && dropReasoning(body, target)),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}

function askForUsage(body: JsonObject, { stream, profile, note }: PassedTarget): JsonObject {
  const options = body['stream_options'];
  if (stream && profile.stream_usage) {
    if (objectOf(options)['include_usage'] === true) return {};
    // What is no object is the server's to judge.
    return isObject(options) || options === undefined || options === null
      ? { stream_options: { ...objectOf(options), include_usage: true } }
      : {};
  }
  if (profile.stream_usage || options === undefined) return {};
  note(refused('/stream_options', 'stream_options'));
  return { stream_options: undefined };
}

function dropReasoning(body: JsonObject, { note }: PassedTarget): JsonObject {
  const messages = listOf(body['messages']);
  if (!messages.some((message) => isObject(message) && REASONING_FIELDS.some((name) => Object.hasOwn(message, name)))) return {};
  return {
    messages: messages.map((message, i) => {
      if (!isObject(message)) return message;
      const sent = REASONING_FIELDS.filter((name) => Object.hasOwn(message, name));
      for (const name of sent) note(refused(`/messages/${i}/${name}`, 'assistant.thinking'));
      return sent.length === 0 ? message : Object.fromEntries(Object.entries(message).filter(([name]) => !sent.includes(name)));
    }),
  };
}

const refused = (path: string, feature: string) =>
  ({ code: 'DROPPED', path, feature, message: 'the provider refuses this field' }) as const;
