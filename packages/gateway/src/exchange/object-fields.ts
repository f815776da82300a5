/** Finds the ids of provider objects in parsed requests and responses, by the table of endpoints. */

import type { InterfaceType, ProtocolId } from '@sluice/core';
import { CodecError, createSseDecoder } from '@sluice/core';
import { endOfString } from '@sluice/core/internal';
import { MultipartForm } from '../http/multipart.ts';
import { CONVERTED_FIELDS, type EndpointFields, type Endpoints, KNOWN_ENDPOINTS, readRow } from './endpoint-table.ts';
import { readResourceId } from './known-endpoints.ts';

/** An id in a request. */
export interface NamedId {
  readonly id: string;
  /** The field may also have a name of the vendor, and this text does not look like an id. */
  readonly mayBeName: boolean;
}

/** The ids that a body names. `endpoint`: undefined for one that the table does not have, where all fields count. */
export function findNamedIds(protocol: ProtocolId, endpoint: EndpointFields | undefined, body: unknown): readonly NamedId[] {
  const fields = endpoint ? compileFields(protocol, endpoint) : ALL_FIELDS[protocol];
  return fields ? collect(body, fields, VENDORS[protocol]) : [];
}

/** The fields of a request that is converted. */
export const findConvertedFields = (protocol: ProtocolId, type: InterfaceType): EndpointFields =>
  CONVERTED_FIELDS[protocol][type] ?? NO_FIELDS;

const NO_FIELDS: EndpointFields = {};

/** What a request that is passed on may name objects with. */
export interface PassedContent {
  bytes: Buffer;
  /** The content type. */
  type: string;
  query: URLSearchParams;
}

/** The values of a request that may name objects: its JSON, the fields of its form, and its query. */
export function* readContent({ bytes, type, query }: PassedContent): Generator<unknown> {
  for (const [name, value] of query) yield nest(name, value);
  if (bytes.length === 0) return;
  if (/^\s*multipart\/form-data\b/i.test(type)) {
    for (const [name, value] of new MultipartForm(bytes, type).texts(MAX_FIELD_BYTES)) yield nest(name, parse(value) ?? value);
    return;
  }
  // A server may read JSON whatever its content type is.
  const text = decode(bytes);
  const value = text === undefined ? undefined : parse(text);
  if (text !== undefined && value !== undefined) {
    checkRepeats(text, value);
    yield value;
  }
  if (text !== undefined && value === undefined && /\bx-www-form-urlencoded\b/i.test(type))
    for (const [name, field] of new URLSearchParams(text)) yield nest(name, field);
}

/**
 * Throws for JSON with a field that occurs twice in its object: a server may read the first one, and only the last one is
 * in the parsed value. Every field has one colon outside of strings.
 */
export function checkRepeats(text: string, value: unknown): void {
  if (countColons(text) !== countFields(value)) throw REPEATED;
}

const REPEATED = new CodecError({
  code: 'INVALID_INPUT',
  message: 'the request body has a field twice in the same object; send each field once',
  http_status: 400,
});

function countColons(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at) - 1;
    else if (code === COLON) count++;
  }
  return count;
}

const QUOTE = 0x22;

const COLON = 0x3a;

function countFields(value: unknown): number {
  let count = 0;
  const places: object[] = isContainer(value) ? [value] : [];
  const visit = (object: object): void => {
    for (const key in object) {
      count++;
      const inner: unknown = (object as Readonly<Record<string, unknown>>)[key]; // a key of it
      if (isContainer(inner)) places.push(inner);
    }
  };
  for (let place = places.pop(); place; place = places.pop()) {
    if (!Array.isArray(place)) visit(place);
    else
      for (const entry of place)
        if (Array.isArray(entry)) places.push(entry);
        else if (isContainer(entry)) visit(entry);
  }
  return count;
}

/** Ids, and JSON that has ids. Files are longer. */
const MAX_FIELD_BYTES = 256 * 1024;

/** `tool_resources[file_search][vector_store_ids][]` as the object that it stands for. */
const nest = (name: string, value: unknown): unknown =>
  name
    .slice(0, MAX_NAME)
    .split(/[[\].]/)
    .filter((key) => key !== '' && !/^\d+$/.test(key))
    .reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);

const MAX_NAME = 512;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Only objects and lists have fields. */
function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A field that names objects. */
interface FieldRule {
  /** The fields that its object is a value of, with the start of ids in it; '' for the whole request. */
  readonly byParent: ReadonlyMap<string, string>;
  /** How ids begin, wherever the field is; undefined when it only counts below the parents. */
  readonly start: string | undefined;
}

type Fields = ReadonlyMap<string, FieldRule>;

interface Vendor {
  readonly opaque: ReadonlySet<string>;
  readonly results: ReadonlySet<string>;
  readonly isGemini: boolean;
}

/** Google's servers read a field in both spellings. */
const spell = (name: string, isGemini: boolean): readonly string[] =>
  isGemini ? [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] : [name];

function compile(names: readonly string[], isGemini: boolean): Fields {
  const rules = new Map<string, { byParent: Map<string, string>; start: string | undefined }>();
  for (const written of names) {
    const [path = '', start = ''] = written.split(':', 2);
    const [parent, own] = path.includes('.') ? path.split('.', 2) : [undefined, path];
    for (const name of spell(own ?? '', isGemini)) {
      const rule = rules.get(name) ?? { byParent: new Map(), start: undefined };
      rules.set(name, rule);
      if (parent === undefined) rule.start = start;
      else for (const one of spell(parent, isGemini)) rule.byParent.set(one, start);
    }
  }
  return rules;
}

const compiled = new WeakMap<EndpointFields, Fields>();

function compileFields(protocol: ProtocolId, endpoint: EndpointFields): Fields | undefined {
  if (!endpoint.names) return undefined;
  const known = compiled.get(endpoint) ?? compile(endpoint.names, protocol === 'gemini');
  compiled.set(endpoint, known);
  return known;
}

const mapProtocols = <T>(build: (protocol: ProtocolId) => T): Readonly<Record<ProtocolId, T>> => ({
  'openai-chat': build('openai-chat'),
  'openai-responses': build('openai-responses'),
  'anthropic-messages': build('anthropic-messages'),
  gemini: build('gemini'),
});

const VENDORS = mapProtocols((protocol): Vendor => {
  const { opaque, results }: Endpoints = KNOWN_ENDPOINTS[protocol];
  const isGemini = protocol === 'gemini';
  return { opaque: new Set(opaque.flatMap((name) => spell(name, isGemini))), results: new Set(results), isGemini };
});

const ALL_FIELDS = mapProtocols((protocol) => {
  const { stateless, stored }: Endpoints = KNOWN_ENDPOINTS[protocol];
  const converted = Object.values(CONVERTED_FIELDS[protocol]).flatMap(({ names = [] }) => names);
  const passed = [...stateless, ...stored].flatMap((row) => readRow(row).fields.names ?? []);
  return compile([...converted, ...passed], protocol === 'gemini');
});

/** A value that is still to be searched, and the field that it is a value of. */
interface Place {
  readonly value: object;
  readonly parent: string;
}

/** Visits every object once; entries of lists count as values of the list's field. */
function collect(body: unknown, fields: Fields, vendor: Vendor): readonly NamedId[] {
  return isContainer(body) ? new Search(fields, vendor).run(body) : [];
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

class Search {
  readonly #fields: Fields;
  readonly #vendor: Vendor;
  readonly #found = new Map<string, NamedId>();
  readonly #places: Place[] = [];

  constructor(fields: Fields, vendor: Vendor) {
    this.#fields = fields;
    this.#vendor = vendor;
  }

  run(body: object): readonly NamedId[] {
    this.#places.push({ value: body, parent: '' });
    for (let place = this.#places.pop(); place; place = this.#places.pop()) this.#open(place);
    return [...this.#found.values()];
  }

  /** Entries are visited at once: a list may have a million. */
  #open({ value, parent }: Place): void {
    if (!Array.isArray(value)) this.#visit(value, parent);
    else
      for (const entry of value)
        if (Array.isArray(entry)) this.#places.push({ value: entry, parent });
        else if (isContainer(entry)) this.#visit(entry, parent);
  }

  #visit(value: object, parent: string): void {
    const { opaque, results, isGemini } = this.#vendor;
    const object = value as Readonly<Record<string, unknown>>; // no list
    const type = object['type'];
    if (typeof type === 'string' && results.has(type)) return;
    // `for in` allocates no list, and parsed JSON has only own fields.
    for (const key in object) {
      const inner = object[key];
      const rule = this.#fields.get(key);
      const start = rule && (rule.byParent.get(parent) ?? rule.start);
      if (start !== undefined) for (const text of listTexts(inner)) note(text, start, isGemini, this.#found);
      if (isContainer(inner) && !opaque.has(key)) this.#places.push({ value: inner, parent: key });
    }
  }
}

function listTexts(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function note(text: unknown, start: string, isGemini: boolean, found: Map<string, NamedId>): void {
  if (typeof text !== 'string' || text === '') return;
  const id = isGemini ? readResourceId(text) : text;
  if (id !== undefined) found.set(id, { id, mayBeName: !text.startsWith(start) });
}

/** The ids in a response that belong to its key from then on. `isNew`: the request creates an object. */
export function findMadeIds(protocol: ProtocolId, endpoint: EndpointFields | undefined, isNew: boolean, text: string): string[] {
  const { made }: Endpoints = KNOWN_ENDPOINTS[protocol];
  const paths = endpoint?.makes ?? (isNew ? made : []);
  if (paths.length === 0) return [];
  const whole = parse(text);
  return (whole ? [whole] : readEvents(text)).flatMap((value) => readIds(protocol, paths, value));
}

/** The ids at some paths of a response. */
export const readIds = (protocol: ProtocolId, paths: readonly string[], value: unknown): string[] =>
  paths
    .flatMap((path) =>
      path.split('.').reduce<readonly unknown[]>((values, key) => values.flatMap((one) => readField(one, key)), [value]),
    )
    .flatMap((id) => (typeof id !== 'string' || id === '' ? [] : ((protocol === 'gemini' ? readResourceId(id) : id) ?? [])));

/** The value of a field as a list; entries of a list count. */
function readField(value: unknown, key: string): readonly unknown[] {
  if (!isContainer(value)) return [];
  const next: unknown = Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined; // an own field
  return Array.isArray(next) ? next : [next];
}

/** The events of a stream. */
function readEvents(text: string): object[] {
  const decoder = createSseDecoder({ maxLineBytes: text.length * 4, maxEventBytes: text.length * 4 });
  return [...decoder.push(Buffer.from(text))].flatMap(({ data }) => parse(data) ?? []);
}
