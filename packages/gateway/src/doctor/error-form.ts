import type { ProtocolId } from '@sluice/core';

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

const inner = (body: unknown): Record<string, unknown> => {
  const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined;
  return typeof error === 'object' && error !== null ? { ...error } : {};
};

/** What the official SDKs read of an error. */
const FORMS = {
  'openai-chat': (body) => isText(inner(body)['message']),
  'openai-responses': (body) => isText(inner(body)['message']),
  'anthropic-messages': (body) =>
    typeof body === 'object' && body !== null && 'type' in body && body.type === 'error' && isText(inner(body)['type']),
  gemini: (body) => isText(inner(body)['message']) && isText(inner(body)['status']),
} as const satisfies Record<ProtocolId, (body: unknown) => boolean>;

/** Whether an error is said in the words of a protocol. */
export const isErrorForm = (protocol: ProtocolId, body: unknown): boolean => FORMS[protocol](body);
