import { isObject, type JsonObject } from '../accumulate/overlay.ts';
import type { OwnErrorCode } from '../canonical/errors.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { CanonicalResponse } from '../canonical/response.ts';
import { type Codec, CodecError, type HeaderBag, type Provider, type WireRequest } from '../protocols/shared/codec.ts';
import { deploymentOf } from '../protocols/shared/deployment.ts';
import type { ProviderProfile } from '../protocols/shared/profile.ts';
import type { AnswerOptions } from './context.ts';
import { decodeRequest } from './convert-request.ts';
import { decodeResponse } from './convert-response.ts';
import { withFields } from './json-fields.ts';
import { NoteList } from './notes.ts';

// Same protocol on both sides: what comes goes through as it is, and is only looked at.

/** What a client says beside its body. Everything else, its key above all, stays here. */
const SPOKEN = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'idempotency-key'];

/** The client's words beat those that the protocol has by default; what the operator or the profile says beats the client's. */
export function passedHeaders(
  headers: HeaderBag,
  { adapter_config: config = {} }: Provider,
  { anthropic_version: version }: Partial<ProviderProfile> = {},
): HeaderBag {
  const settled = Object.keys(config.headers ?? {}).map((name) => name.toLowerCase());
  if (config.api_version !== undefined) settled.push('anthropic-version');
  const sent = version === undefined ? headers : { ...headers, 'anthropic-version': version };
  const passed: HeaderBag = {};
  for (const name of SPOKEN) {
    const said = sent[name];
    if (said !== undefined && !settled.includes(name)) passed[name] = said;
  }
  return passed;
}

interface PassedBody {
  body: unknown;
  text?: string;
}

/** The body as it came, with the upstream's name of the model and these other fields; a field that is undefined is removed. */
export function passedBody(
  { body, text, path }: WireRequest & { text?: string },
  model: string,
  fields: JsonObject | undefined,
): PassedBody {
  // Azure's clients may name the model in the path alone; servers of other vendors read the body.
  const isNamed = isObject(body) && (body['model'] !== undefined || deploymentOf(path) !== undefined);
  if (!isObject(body) || !(isNamed || fields)) return { body, ...(text !== undefined && { text }) };
  const changes: JsonObject = isNamed ? { ...fields, model } : { ...fields };
  const removed = Object.keys(changes).filter((name) => changes[name] === undefined);
  const changed: JsonObject = { ...body, ...changes };
  for (const name of removed) delete changed[name];
  const written = text === undefined || removed.length > 0 ? undefined : withFields(text, changes);
  return { body: changed, ...(written !== undefined && { text: written }) };
}

/** What has to be known of a question that is not read. */
export function askedOf(wire: WireRequest, client: Codec): { model: string; stream: boolean } {
  const { model, stream }: Record<string, unknown> = isObject(wire.body) ? wire.body : {};
  if (typeof model === 'string') return { model, stream: stream === true };
  const question = readQuestion(wire, client);
  return { model: question?.model ?? '', stream: question?.stream ?? false };
}

/** The question in the canonical form; undefined when it cannot be read. */
export const readQuestion = ({ body, path, headers }: WireRequest, from: Codec): CanonicalRequest | undefined =>
  attempt(() => decodeRequest(body, { from, path, headers }));

/** The answer in the canonical form; undefined when it cannot be read. Throws the error that stands in the place of one. */
export function readAnswer(body: unknown, options: AnswerOptions): CanonicalResponse | undefined {
  return attempt(() => decodeResponse(body, options, new NoteList()));
}

const TOO_LARGE: OwnErrorCode = 'too_large';

/** What exceeds a limit is not passed on, although the upstream did not call it an error. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError && !error.error.upstream && error.error.details?.['code'] !== TOO_LARGE) return undefined;
    throw error;
  }
}
