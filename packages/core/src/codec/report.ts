/**
 * How codecs report what they cannot convert: errors that stop the conversion, and notes on what was lost or repaired.
 */
import { CodecError, type Note } from '../canonical/notes.ts';
import type { Loss } from '../passes/rules.ts';
import type { CodecContext } from './protocol.ts';

/** Reports a loss: a note, or an error when the policy is strict about its feature. */
export function noteDropped(context: CodecContext, loss: Loss): void {
  if (isStrict(context, loss.feature)) refuse(context, { ...loss, message: explainStrict(loss.message) });
  context.note({ code: 'DROPPED', ...loss });
}

/** Reports invalid input that was repaired: a note, or an error when the policy is strict about its feature. */
export function noteRepaired(context: CodecContext, { path, feature, message }: Loss): void {
  if (isStrict(context, feature))
    throw new CodecError({
      code: 'INVALID_INPUT',
      message: explainStrict(message),
      http_status: 400,
      param: locatePath(context, path),
    });
  context.note({ code: 'REPAIRED', path, feature, message });
}

/** Notes that something was converted to a form with nearly the same meaning. */
export function noteApproximated(context: Pick<CodecContext, 'note'>, loss: Loss): void {
  context.note({ code: 'APPROXIMATED', ...loss });
}

/** Throws because the target does not support a feature that must not be dropped. */
export function refuse(context: CodecContext, loss: Loss): never {
  throw incompatible({ ...loss, path: locatePath(context, loss.path) });
}

/** Whether the policy refuses to lose or repair this feature. */
export function isStrict({ policy: { strict } }: Pick<CodecContext, 'policy'>, feature: string): boolean {
  return strict === true || (Array.isArray(strict) && strict.includes(feature));
}

/** Replaces the consequence at the end of a note ("; dropped"), which a strict policy prevents. */
export const explainStrict = (message: string): string => `${message.replace(CONSEQUENCE, '')}; rejected by strict mode`;

const CONSEQUENCE = /; [^;]*$/;

const locatePath = ({ locate }: CodecContext, path: string): string => locate?.(path) ?? path;

/** An error for invalid input at `param`, a JSON path such as `messages[3].content`. */
export function invalid(param: string, message: string): CodecError {
  return new CodecError({ code: 'INVALID_INPUT', message: `${param}: ${message}`, http_status: 400, param });
}

/** An error for a required field that is absent. */
export function missing(param: string): CodecError {
  return new CodecError({ code: 'MISSING_REQUIRED_FIELD', message: `${param}: is required`, http_status: 400, param });
}

/** An error for a feature that the target does not support and that must not be dropped. */
export function incompatible({ path, message }: Loss): CodecError {
  return new CodecError({ code: 'INCOMPATIBLE_FEATURE', message, http_status: 400, param: path });
}

/** An error for a request without content. The engine adds what was dropped, if that is the reason. */
export const noContent = (param: string): CodecError =>
  new CodecError({ ...invalid(param, 'must contain at least one message with content').error, details: { code: NO_CONTENT } });

/** The error of a request of which everything was dropped, with the first loss. Any other error is returned as it is. */
export function explainNoContent(error: unknown, notes: readonly Note[]): unknown {
  const lost = notes.find(({ code }) => code === 'DROPPED');
  if (!lost || !(error instanceof CodecError) || error.error.details?.['code'] !== NO_CONTENT) return error;
  return new CodecError({ ...error.error, message: `${error.message}; ${lost.path}: ${lost.message.replace(CONSEQUENCE, '')}` });
}

const NO_CONTENT = 'no_content';
