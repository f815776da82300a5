import { isObject, type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { Extensions, Node } from '../../canonical/protocol.ts';
import { type Keeper, keeper } from '../shared/kept.ts';
import { objectOf } from '../shared/read.ts';
import { CANDIDATE_NAMES, camelObject } from './wire.ts';

const kept: Keeper = keeper('gemini');

export const fieldsOf: Keeper['fieldsOf'] = kept.fieldsOf;
export const keep: Keeper['keep'] = kept.keep;

/** What of a part stands inside its one object; the other kept fields are the part's own. */
const WITHIN: ReadonlySet<string> = new Set(['functionCall', 'functionResponse', 'inlineData', 'fileData']);

/** The kept fields of a part itself. */
export function partFields(node: Node): JsonObject {
  const fields = fieldsOf(node);
  for (const key in fields) if (WITHIN.has(key)) return withoutInner(fields);
  return fields;
}

const withoutInner = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !WITHIN.has(key)));

/** The kept fields of the one object in a part. */
export const innerFields = (node: Node, key: 'functionCall' | 'functionResponse' | 'inlineData' | 'fileData'): JsonObject =>
  objectOf(fieldsOf(node)[key]);

/** What the decoder keeps of a response and of a candidate, told apart. */
export interface KeptCandidate {
  /** Fields of the response around the candidates. */
  response: JsonObject;
  candidate: JsonObject;
  content: JsonObject;
  /** The wire's own word. */
  finish: string | number | undefined;
}

export function readKept(extensions: Extensions | undefined): KeptCandidate {
  const { finish_reason: finish, candidate, content, ...fields }: JsonObject = objectOf(extensions?.gemini);
  const response: JsonObject = {};
  const own: JsonObject = {};
  for (const [name, value] of Object.entries(fields)) setOwn(CANDIDATE_NAMES.has(name) ? own : response, name, value);
  return {
    response,
    candidate: { ...own, ...objectOf(candidate) },
    content: objectOf(content),
    finish: typeof finish === 'string' || typeof finish === 'number' ? finish : undefined,
  };
}

/** A prompt that was blocked has feedback and no candidates. */
export const isBlocked = ({ response, finish }: KeptCandidate): boolean =>
  finish === undefined &&
  isObject(response['promptFeedback']) &&
  camelObject(response['promptFeedback'])['blockReason'] !== undefined;
