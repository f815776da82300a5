import { type Asked, type Codec, CodecError, type WireRequest } from '../protocols/shared/codec.ts';

/** The model and the stream flag of a request. Throws if it names no model, or one that is too long. */
export function readAsked(client: Codec, wire: WireRequest): Asked {
  const target = client.readTarget(wire);
  if (!target)
    throw new CodecError({ code: 'MISSING_REQUIRED_FIELD', message: 'model: is required', http_status: 400, param: 'model' });
  checkModelName(target.model);
  return target;
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
