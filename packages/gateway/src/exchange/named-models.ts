import { CodecError, checkModelName, findJsonStrings, type Span, withFields } from '@sluice/core';
import { MultipartForm } from './multipart.ts';

/** The models that a body names, and ways to rename them. */
export interface NamedModels {
  readonly names: readonly string[];
  /** The body with `names` replaced, in the same order. */
  rename(names: readonly string[]): Buffer;
  /** The body with this model as its only one, added if the body names none. */
  set(name: string): Buffer;
}

/** Where JSON bodies name a model; `*` stands for every entry of a list. */
const PLACES: readonly (readonly string[])[] = [
  ['model'],
  // Anthropic: agents, batches.
  ['model', 'id'],
  ['requests', '*', 'params', 'model'],
  // OpenAI: graders, evals.
  ['grader', 'model'],
  ['data_source', 'model'],
  // Gemini: batches.
  ['batch', 'model'],
];

/** Throws for a body whose models cannot be read: it must not reach a provider that the client did not name. */
export function readNamedModels(body: Buffer, contentType: string): NamedModels {
  if (/^\s*multipart\/form-data\b/i.test(contentType)) return modelsInForm(body, contentType);
  const isJson = /\bjson\b/i.test(contentType);
  return isJson || isObjectLike(body) ? modelsInJson(body, isJson) : unnamed(body);
}

const unnamed = (body: Buffer): NamedModels => ({ names: [], rename: () => body, set: () => body });

/** curl sends JSON as a form by default, and some clients send no content type. */
const isObjectLike = (body: Buffer): boolean => /^\s*\{/.test(body.toString('latin1', 0, HEAD_BYTES));
const HEAD_BYTES = 64;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** `isDeclared`: the content type is JSON. Otherwise a body that is not JSON is accepted as something else. */
function modelsInJson(body: Buffer, isDeclared: boolean): NamedModels {
  if (body.length === 0) return unnamed(body);
  const read = parse(body);
  if (read) return new JsonModels(body, read);
  if (isDeclared) throw refuse('JSON_PARSE_ERROR', 'the body of the request is not JSON');
  return unnamed(body);
}

interface ReadJson {
  text: string;
  value: unknown;
}

function parse(body: Buffer): ReadJson | undefined {
  try {
    const text = UTF8.decode(body);
    return { text, value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

class JsonModels implements NamedModels {
  readonly names: readonly string[];
  readonly #body: Buffer;
  readonly #read: ReadJson;
  readonly #spans: readonly Span[];

  constructor(body: Buffer, read: ReadJson) {
    this.#body = body;
    this.#read = read;
    this.#spans = PLACES.flatMap((place) => findOnce(read.text, place)).toSorted((a, b) => a.start - b.start);
    this.names = this.#spans.map(({ start, end }) => checked(JSON.parse(read.text.slice(start, end))));
  }

  rename(names: readonly string[]): Buffer {
    if (names.every((name, i) => name === this.names[i])) return this.#body;
    const { text } = this.#read;
    let written = '';
    let at = 0;
    for (const [i, { start, end }] of this.#spans.entries()) {
      written += text.slice(at, start) + JSON.stringify(names[i]);
      at = end;
    }
    return Buffer.from(written + text.slice(at));
  }

  set(name: string): Buffer {
    const { text, value } = this.#read;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#body;
    if (!Object.hasOwn(value, 'model')) return Buffer.from(withFields(text, { model: name }) ?? text);
    const [place] = findOnce(text, ['model']);
    return Buffer.from(
      place
        ? text.slice(0, place.start) + JSON.stringify(name) + text.slice(place.end)
        : JSON.stringify({ ...value, model: name }),
    );
  }
}

function findOnce(text: string, place: readonly string[]): readonly Span[] {
  const spans = findJsonStrings(text, place);
  if (!spans) throw MORE_THAN_ONCE;
  return spans;
}

function modelsInForm(body: Buffer, contentType: string): NamedModels {
  const form = new MultipartForm(body, contentType);
  const [field, second] = form.find('model');
  if (second) throw MORE_THAN_ONCE;
  if (!field) return { ...unnamed(body), set: (name) => form.add('model', name) };
  // Longer names are refused: no more than that is decoded.
  const name = checked(body.toString('utf8', field.start, Math.min(field.end, field.start + MAX_READ)));
  return {
    names: [name],
    rename: ([next = name]) => (next === name ? body : form.replace(field, next)),
    set: (next) => form.replace(field, next),
  };
}

const MAX_READ = 1024;

function checked(name: string): string {
  checkModelName(name);
  return name;
}

const refuse = (code: 'JSON_PARSE_ERROR' | 'INVALID_INPUT', message: string): CodecError =>
  new CodecError({ code, message, http_status: 400 });

const MORE_THAN_ONCE = refuse('INVALID_INPUT', 'model: is given more than once');
