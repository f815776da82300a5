import { isObject } from '../accumulate/overlay.ts';
import type { OwnErrorCode } from '../canonical/errors.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { CanonicalResponse } from '../canonical/response.ts';
import { CodecError, type HeaderBag, type ProtocolCodec, type Provider, type WireRequest } from '../protocols/shared/codec.ts';
import type { AnswerOptions } from './context.ts';
import { decodeRequest } from './convert-request.ts';
import { decodeResponse } from './convert-response.ts';
import { withModel } from './model-name.ts';
import { NoteList } from './notes.ts';

// Same protocol on both sides: what comes goes through as it is, and is only looked at.

/** What a client says beside its body. Everything else, its key above all, stays here. */
const SPOKEN = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'idempotency-key'];

/** The client's words beat those that the protocol has by default, the operator's beat the client's. */
export function passedHeaders(headers: HeaderBag, { adapter_config: config = {} }: Provider): HeaderBag {
  const settled = Object.keys(config.headers ?? {}).map((name) => name.toLowerCase());
  if (config.api_version !== undefined) settled.push('anthropic-version');
  const passed: HeaderBag = {};
  for (const name of SPOKEN) {
    const said = headers[name];
    if (said !== undefined && !settled.includes(name)) passed[name] = said;
  }
  return passed;
}

interface PassedBody {
  body: unknown;
  text?: string;
}

export function passedBody({ body, text }: WireRequest & { text?: string }, model: string): PassedBody {
  const named = isObject(body) ? body['model'] : undefined;
  if (!isObject(body) || named === undefined) return { body, ...(text !== undefined && { text }) };
  const renamed = text === undefined ? undefined : withModel(text, model);
  return { body: { ...body, model }, ...(renamed !== undefined && { text: renamed }) };
}

/** What has to be known of a question that is not read. */
export function askedOf(wire: WireRequest, client: ProtocolCodec): { model: string; stream: boolean } {
  const { model, stream }: Record<string, unknown> = isObject(wire.body) ? wire.body : {};
  if (typeof model === 'string') return { model, stream: stream === true };
  const question = readQuestion(wire, client);
  return { model: question?.model ?? '', stream: question?.stream ?? false };
}

/** The question in the canonical form; undefined when it cannot be read. */
export const readQuestion = ({ body, path, headers }: WireRequest, from: ProtocolCodec): CanonicalRequest | undefined =>
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
