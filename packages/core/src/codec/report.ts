/**
 * How codecs report what they cannot convert: errors that stop the conversion, and notes on what was lost or repaired.
 */
import { CodecError } from '../canonical/notes.ts';
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
export const explainStrict = (message: string): string => `${message.replace(/; [^;]*$/, '')}; rejected by strict mode`;

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
