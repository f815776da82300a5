import { wellFormed } from '../../accumulate/chat-delta.ts';
import { countKeys, isObject, isSet, type JsonObject, overlay, present } from '../../accumulate/overlay.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import type { Context } from '../shared/context.ts';
import { decodeStop } from './stop.ts';
import { decodeUsage } from './usage.ts';

/**
 * Most responses are one choice with one text and the usual fields. They are read without the stream decoder, with the same result: converting
 * one to Anthropic takes 3.0 us instead of 6.3 us. Returns undefined for any other response.
 */
export function readPlain(body: JsonObject, context: Context): CanonicalResponse | undefined {
  const { id, object, created, model, choices, usage, service_tier: tier, system_fingerprint: fingerprint } = body;
  const envelope = present(id) + present(object) + present(created) + present(model) + present(usage);
  if (countKeys(body) !== envelope + present(choices) + present(tier) + present(fingerprint)) return undefined;
  const isNamed = typeof id === 'string' && id !== '' && typeof model === 'string' && typeof created === 'number';
  if (!isNamed || created === 0 || !isText(tier) || !isText(fingerprint) || !isFlat(usage)) return undefined;
  const said = Array.isArray(choices) && choices.length === 1 ? readChoice(choices[0]) : undefined;
  if (!said) return undefined;
  const { text, role, finish } = said;
  const response: CanonicalResponse = {
    id,
    model,
    created,
    content: [{ type: 'text', text: wellFormed(text) }],
    stop_reason: decodeStop(finish),
  };
  if (typeof tier === 'string') response.service_tier = tier;
  if (typeof fingerprint === 'string') response.system_fingerprint = fingerprint;
  if (usage) response.usage = decodeUsage(overlay({}, usage), context);
  response.extensions = { 'openai-chat': { finish_reason: finish, message: { role } } };
  return response;
}

interface Said {
  text: string;
  role: string;
  finish: string;
}

function readChoice(choice: unknown): Said | undefined {
  if (!isObject(choice)) return undefined;
  const { index, message, logprobs, finish_reason: finish } = choice;
  if (countKeys(choice) !== present(index) + present(message) + present(logprobs) + present(finish)) return undefined;
  if ((index !== 0 && index !== undefined) || isSet(logprobs) || !isObject(message)) return undefined;
  return finish === 'stop' || finish === 'length' ? readMessage(message, finish) : undefined;
}

function readMessage(message: JsonObject, finish: string): Said | undefined {
  const { role, content: text, refusal, annotations, tool_calls: calls } = message;
  const known = present(role) + present(text) + present(refusal) + present(annotations) + present(calls);
  if (countKeys(message) !== known || isSet(refusal) || !isNone(annotations) || !isNone(calls)) return undefined;
  const isSaid = typeof role === 'string' && role !== '' && typeof text === 'string' && text !== '';
  return isSaid ? { text, role, finish } : undefined;
}

const isText = (value: unknown): boolean => !isSet(value) || typeof value === 'string';

const isNone = (value: unknown): boolean => !isSet(value) || (Array.isArray(value) && value.length === 0);

/** Counts, and objects of counts. */
function isFlat(usage: unknown): usage is JsonObject | null | undefined {
  if (!isSet(usage)) return true;
  return (
    isObject(usage) &&
    Object.values(usage).every((value) => isCount(value) || (isObject(value) && Object.values(value).every(isCount)))
  );
}

const isCount = (value: unknown): boolean => typeof value !== 'object' || value === null;
