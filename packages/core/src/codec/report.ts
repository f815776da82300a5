import { CodecError, type Note } from '../canonical/notes.ts';
import type { Telling } from '../passes/rules.ts';
import type { CodecContext } from './protocol.ts';

// How codecs report what they cannot convert: errors that stop the conversion, and notes on what was lost or repaired.

/** The input is wrong at `param`, a JSON path such as `messages[3].content`. */
export function invalid(param: string, message: string): CodecError {
  return new CodecError({ code: 'INVALID_INPUT', message: `${param}: ${message}`, http_status: 400, param });
}

/** A required field is absent. */
export function missing(param: string): CodecError {
  return new CodecError({ code: 'MISSING_REQUIRED_FIELD', message: `${param}: is required`, http_status: 400, param });
}

type Loss = Omit<Note, 'code'>;

/** A feature that the target does not have and that must not be dropped. */
export function incompatible({ path, message }: Loss): CodecError {
  return new CodecError({ code: 'INCOMPATIBLE_FEATURE', message, http_status: 400, param: path });
}

/** Whether the policy refuses to lose or repair this feature. */
export function isStrict({ policy: { strict } }: Pick<CodecContext, 'policy'>, feature: string): boolean {
  return strict === true || (Array.isArray(strict) && strict.includes(feature));
}

const placeOf = ({ locate }: CodecContext, path: string): string => locate?.(path) ?? path;

/** Throws because of a feature that the target does not have and that must not be dropped. */
export function refuse(context: CodecContext, loss: Loss): never {
  throw incompatible({ ...loss, path: placeOf(context, loss.path) });
}

/** Reports a loss: a note, or an error when the policy is strict about its feature. */
export function drop(context: CodecContext, loss: Loss): void {
  if (isStrict(context, loss.feature)) refuse(context, loss);
  context.note({ code: 'DROPPED', ...loss });
}

/** Notes that something was converted into a form that means nearly the same. */
export function approximate(context: Pick<CodecContext, 'note'>, loss: Loss): void {
  context.note({ code: 'APPROXIMATED', ...loss });
}

/** Reports invalid input that was repaired: a note, or an error when the policy is strict about its feature. */
export function repair(context: CodecContext, { path, feature, message }: Loss): void {
  if (isStrict(context, feature))
    throw new CodecError({ code: 'INVALID_INPUT', message, http_status: 400, param: placeOf(context, path) });
  context.note({ code: 'REPAIRED', path, feature, message });
}

/** How passes report, under the caller's policy. */
export const rulesTelling = (context: CodecContext): Telling => ({
  note: (note) => context.note(note),
  drop: (loss) => drop(context, loss),
  repair: (loss) => repair(context, loss),
  refuse: (loss) => refuse(context, loss),
});
