import { countKeys, isFilledText, isObject, isSet, type JsonObject, present } from './overlay.ts';

/** A tool-call delta as compatible servers send it, made comparable: blanks are absent, numbers are numbers. */
export interface ToolCallReading {
  id: string | undefined;
  index: number | undefined;
  name: string | undefined;
  /** `"null"` where a name should be: some gateways stringify their null. A name only if nothing better comes. */
  literalName: string | undefined;
  type: string | undefined;
  /** A fragment of the argument text. */
  fragment: string;
  /** Arguments that came as an object or array: a whole snapshot. */
  snapshot: unknown;
  /** Fields nobody knows: they must survive. */
  extra: JsonObject | undefined;
}

/** The fields of a tool-call delta that have a meaning. Named reads are several times cheaper than a walk over the keys. */
export interface WireToolCall {
  index?: unknown;
  id?: unknown;
  type?: unknown;
  function?: unknown;
  custom?: unknown;
}

export interface WireFunction {
  name?: unknown;
  arguments?: unknown;
  input?: unknown;
}

export function readToolCall(delta: WireToolCall): ToolCallReading {
  const { index, id, type, function: body, custom } = delta;
  const reading: ToolCallReading = {
    id: readId(id),
    index: readIndex(index),
    name: undefined,
    literalName: undefined,
    type: isFilledText(type) ? type.toLowerCase() : undefined,
    fragment: '',
    snapshot: undefined,
    extra: undefined,
  };
  if (isObject(body)) readFunction(reading, body, 'function');
  if (isObject(custom)) {
    reading.type ??= 'custom';
    readFunction(reading, custom, 'custom');
  }
  const known = present(index) + present(id) + present(type) + present(body) + present(custom);
  if (countKeys(delta) !== known) keepUnknown(reading, delta);
  return reading;
}

function readFunction(reading: ToolCallReading, body: WireFunction, wireKey: 'function' | 'custom'): void {
  const { name, arguments: text, input } = body;
  const value = wireKey === 'custom' ? input : text;
  if (isSet(value)) readArguments(reading, value);
  readName(reading, name);
  if (countKeys(body) !== present(name) + present(value)) keepUnknownOf(reading, body, wireKey);
}

function keepUnknown(reading: ToolCallReading, delta: WireToolCall): void {
  const { index: _index, id: _id, type: _type, function: _function, custom: _custom, ...unknown } = delta;
  for (const [key, value] of Object.entries(unknown)) keep(reading, key, value);
}

function keepUnknownOf(reading: ToolCallReading, body: WireFunction, wireKey: 'function' | 'custom'): void {
  const { name: _name, [wireKey === 'custom' ? 'input' : 'arguments']: _text, ...unknown } = body;
  if (countKeys(unknown) > 0) keep(reading, wireKey, unknown);
}

function readArguments(reading: ToolCallReading, value: unknown): void {
  // Servers that dump a whole struct send both `function` and `custom`, one of them blank.
  if (typeof value === 'string') reading.fragment ||= value;
  else if (typeof value === 'object') reading.snapshot = value;
  // A bare number or boolean is no document; as text it is at least seen and flagged.
  else reading.fragment = String(value);
}

function readName(reading: ToolCallReading, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '') return;
  if (value === 'null') reading.literalName = value;
  else reading.name = value;
}

function keep(reading: ToolCallReading, key: string, value: unknown): void {
  if (value === null) return;
  reading.extra ??= Object.create(null) as JsonObject; // no prototype: `__proto__` is a key like any other
  reading.extra[key] = value;
}

/** What servers write where they have no id. Blanks are none either. */
export const ABSENT_IDS: ReadonlySet<unknown> = new Set([null, '', 'null', 'None', 'undefined']);

function readId(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && !ABSENT_IDS.has(value.trim()) ? value : undefined;
}

/** An integer, negative ones too (an opaque key), or text that looks like one. Anything else is no index. */
function readIndex(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
  if (typeof value !== 'string' || !/^-?\d{1,15}$/.test(value)) return undefined;
  return Number(value);
}
