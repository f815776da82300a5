/** Checks of stream payloads for violations that our decoders tolerate but other clients do not. */

import type { ProtocolId } from '../canonical/protocol.ts';
import type { WireCheck } from '../codec/repair.ts';
import { AnthropicCheck } from '../protocols/anthropic-messages/violations.ts';
import { GeminiCheck } from '../protocols/gemini/violations.ts';
import { ChatCheck } from '../protocols/openai-chat/violations.ts';
import { ResponsesCheck } from '../protocols/openai-responses/violations.ts';
import type { Report } from '../rules/index.ts';

/** Creates the check of a protocol; undefined for one that is not registered. */
export const createCheck = (protocol: ProtocolId, report: Report): WireCheck | undefined =>
  Object.hasOwn(CHECKS, protocol) ? CHECKS[protocol](report) : undefined;

const CHECKS = {
  'openai-chat': (report) => new ChatCheck(report),
  'anthropic-messages': (report) => new AnthropicCheck(report),
  'openai-responses': (report) => new ResponsesCheck(report),
  gemini: (report) => new GeminiCheck(report),
} satisfies Record<ProtocolId, (report: Report) => WireCheck>;

/**
 * Whether a JSON text has a lone surrogate escape in one of its strings. In the bytes there cannot be one: it would not
 * be UTF-8.
 */
export const hasLoneSurrogate = (json: string): boolean =>
  SURROGATE.test(json) && SURROGATE.test(json.replace(WHOLE_ESCAPES, ''));

/**
 * Complete escapes: surrogate pairs, and everything that is not a surrogate. An escaped backslash is matched together
 * with what it escapes.
 */
const WHOLE_ESCAPES = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|[^u]|u(?![dD][89a-fA-F])[\da-fA-F]{4})/g;

const SURROGATE = /\\u[dD][89a-fA-F]/;
