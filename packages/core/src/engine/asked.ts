import { isObject } from '../accumulate/overlay.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { deploymentOf } from '../protocols/openai-chat/interface.ts';
import { CodecError, type WireRequest } from '../protocols/shared/codec.ts';

/** What must be known of a question before it is known who answers it. */
export interface Asked {
  /** Empty when a stored prompt names it. */
  model: string;
  isStream: boolean;
}

/** Gemini says both in the path, the others in the body. */
const READERS = {
  'openai-chat': askedInBody,
  'anthropic-messages': askedInBody,
  'openai-responses': askedInResponses,
  gemini: askedInPath,
} as const satisfies Record<ProtocolId, (wire: WireRequest) => Partial<Asked>>;

export function readAsked(protocol: ProtocolId, wire: WireRequest): Asked {
  const { model, isStream = false } = READERS[protocol](wire);
  if (model === undefined || (model === '' && !isTemplate(protocol, wire)))
    throw new CodecError({ code: 'MISSING_REQUIRED_FIELD', message: 'model: is required', http_status: 400, param: 'model' });
  checkModelName(model);
  return { model, isStream };
}

/** The longest names in use have about 100 bytes. */
const MAX_MODEL_BYTES = 512;
const encoder = new TextEncoder();

/** Throws if a model name is too long: names become keys of caches, metric labels and log fields. */
export function checkModelName(model: string): void {
  const isTooLong =
    model.length > MAX_MODEL_BYTES || (model.length > MAX_MODEL_BYTES / 3 && encoder.encode(model).length > MAX_MODEL_BYTES);
  if (!isTooLong) return;
  const message = `model: must be at most ${MAX_MODEL_BYTES} bytes`;
  throw new CodecError({ code: 'INVALID_INPUT', message, http_status: 400, param: 'model' });
}

function askedInBody({ body, path }: WireRequest): Partial<Asked> {
  const { model: named, stream }: Record<string, unknown> = isObject(body) ? body : {};
  // Azure's clients name the deployment in the path.
  const model = path.includes('/deployments/') ? (deploymentOf(path)?.model ?? named) : named;
  return typeof model === 'string' ? { model, isStream: stream === true } : {};
}

function askedInResponses(wire: WireRequest): Partial<Asked> {
  const asked = askedInBody(wire);
  if (asked.model !== undefined || !isTemplate('openai-responses', wire)) return asked;
  return { model: '', isStream: isObject(wire.body) && wire.body['stream'] === true };
}

/** A stored prompt names its own model: the request need not. */
const isTemplate = (protocol: ProtocolId, { body }: WireRequest): boolean =>
  protocol === 'openai-responses' && isObject(body) && isObject(body['prompt']) && typeof body['prompt']['id'] === 'string';

const MODELS = /\/(?:models|tunedModels)\//;
const VERB = /^\w+$/;

/** `/v1beta/models/MODEL:VERB`; the name itself may have colons. One expression for all of it backtracks at every slash and colon. */
function askedInPath({ path }: WireRequest): Partial<Asked> {
  const end = path.search(/[?#]/);
  const call = end < 0 ? path : path.slice(0, end);
  const before = MODELS.exec(call);
  const colon = call.lastIndexOf(':');
  const verb = call.slice(colon + 1);
  const from = before ? before.index + before[0].length : colon;
  if (colon <= from || !VERB.test(verb)) return {};
  return { model: decoded(call.slice(from, colon)), isStream: verb === 'streamGenerateContent' };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
