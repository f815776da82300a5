import { getOwn, isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../accumulate/overlay.ts';
import { MAX_PARTIAL_ARGS_DEPTH, MAX_PARTIAL_ARGS_GAP } from '../../json/limits.ts';
import type { CallLimits } from '../shared/call-limits.ts';
import { textOf } from '../shared/read.ts';
import { camelObject } from './wire.ts';

type Step = string | number;

/**
 * Arguments that arrive in pieces (Vertex, streamFunctionCallArguments): each piece names a place by a JSONPath and brings a value, or a
 * part of a string. What cannot be placed makes the whole unreadable, so that half an object is never taken for the arguments.
 */
export class PartialArgs {
  readonly #root: JsonObject;
  readonly #limits: CallLimits;
  isReadable = true;
  /** The last piece was a string that has not ended. */
  isInString = false;

  constructor(base: unknown, limits: CallLimits) {
    this.#limits = limits;
    // A copy: the payload belongs to everybody who looks at it.
    const text = isObject(base) ? (writeJson(base) ?? '') : '';
    limits.count(text.length);
    const copy = parseJson(text);
    this.#root = isObject(copy) ? copy : {};
  }

  push(piece: unknown): void {
    const { jsonPath, willContinue, ...value }: { jsonPath?: unknown; willContinue?: unknown } & JsonObject = camelObject(piece);
    const path = textOf(jsonPath);
    const steps = parsePath(path);
    const brings = readValue(value);
    this.#limits.count(path.length + textOf(brings).length);
    this.isInString = willContinue === true && typeof brings === 'string';
    if (!steps || !this.#place(steps, brings)) this.isReadable = false;
  }

  /** The object as JSON. Of a call that was cut, or cannot be read, the last brace is left out: it must not look whole. */
  toText(isWhole: boolean): string {
    const text = writeJson(this.#root) ?? '{}';
    return isWhole && this.isReadable ? text : text.slice(0, -1);
  }

  #place(steps: readonly Step[], value: unknown): boolean {
    let node: JsonObject | unknown[] = this.#root;
    for (const [at, step] of steps.entries()) {
      if (at === steps.length - 1) return put(node, step, value);
      const next = enter(node, step, steps[at + 1]);
      if (!next) return false;
      node = next;
    }
    return false;
  }
}

/** A piece has exactly one of these; a null is told by its key. */
function readValue(piece: JsonObject): unknown {
  if (Object.hasOwn(piece, 'nullValue')) return null;
  return piece['stringValue'] ?? piece['numberValue'] ?? piece['boolValue'];
}

function put(node: JsonObject | unknown[], step: Step, value: unknown): boolean {
  if (!fits(node, step)) return false;
  const current = read(node, step);
  // A place without a value only announces itself.
  if (value === undefined) return true;
  write(node, step, typeof current === 'string' && typeof value === 'string' ? current + value : value);
  return true;
}

function enter(node: JsonObject | unknown[], step: Step, next: Step | undefined): JsonObject | unknown[] | undefined {
  if (!fits(node, step)) return undefined;
  const current = read(node, step);
  if (current === undefined || current === null) {
    const made: JsonObject | unknown[] = typeof next === 'number' ? [] : {};
    write(node, step, made);
    return made;
  }
  return isObject(current) || Array.isArray(current) ? current : undefined;
}

function fits(node: JsonObject | unknown[], step: Step): boolean {
  return Array.isArray(node) ? typeof step === 'number' && step <= node.length + MAX_PARTIAL_ARGS_GAP : typeof step === 'string';
}

function read(node: JsonObject | unknown[], step: Step): unknown {
  if (Array.isArray(node)) return node[Number(step)];
  return getOwn(node, step);
}

function write(node: JsonObject | unknown[], step: Step, value: unknown): void {
  if (!Array.isArray(node)) {
    setOwn(node, String(step), value);
    return;
  }
  while (node.length < Number(step)) node.push(null);
  node[Number(step)] = value;
}

const STEP = /\.([^.[\]]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** `$.a.b[0]['c d']`, also without the `$`; undefined when it is not a path to one place. */
function parsePath(text: string): Step[] | undefined {
  const steps: Step[] = [];
  const path = /^[$.[]/.test(text) ? text : `.${text}`;
  STEP.lastIndex = path.startsWith('$') ? 1 : 0;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (!match || steps.length === MAX_PARTIAL_ARGS_DEPTH) return undefined;
    const [, name, index, single, double] = match;
    steps.push(index !== undefined ? Number(index) : (name ?? (single ?? double ?? '').replace(/\\(.)/g, '$1')));
  }
  return steps.length > 0 ? steps : undefined;
}
