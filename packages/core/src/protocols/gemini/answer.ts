import type { JsonObject } from '../../accumulate/overlay.ts';
import { expectAnswer } from '../shared/answer-body.ts';
import { findError } from './errors.ts';
import { decodeErrorBody } from './errors-decode.ts';

/** The body of an answer. */
export const answerOf = (wire: unknown): JsonObject =>
  expectAnswer(wire, (body) => findError(body, undefined) !== undefined, decodeErrorBody);
