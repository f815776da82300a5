/** Sample arguments for the tools of the demo model: fixed values that satisfy a JSON schema. */

/**
 * Builds arguments for a tool: required properties only, with fixed values that satisfy the schema. Nothing is taken
 * from the conversation. `not`, `if` and `dependentRequired` are ignored.
 */
export function sampleArguments(schema: Schema): Record<string, unknown> {
  return new Sampler(schema).object({ ...schema, type: 'object' });
}

/** Limits of sampled arguments: the client's schema may be recursive or require any number of values. */
const MAX_SAMPLE_DEPTH = 32;

const MAX_VALUES = 1000;

const MAX_TEXT = 1000;

/** Properties, required names and values that are copied while schemas are merged. */
const MAX_COPIES = 200_000;

type Schema = Readonly<Record<string, unknown>>;

class Sampler {
  readonly #root: Schema;
  #values = 0;
  #copies = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  object(schema: Schema): Record<string, unknown> {
    return this.#object(this.#resolve(schema, 0), 0, 0);
  }

  /** `nth`: values for different numbers differ where the schema allows more than one, for arrays of unique items. */
  #value(unresolved: unknown, nth: number, depth: number): unknown {
    if (++this.#values > MAX_VALUES || depth > MAX_SAMPLE_DEPTH) return null;
    const schema = this.#resolve(unresolved, depth);
    if (schema['const'] !== undefined) return schema['const'];
    const { enum: values } = schema;
    if (Array.isArray(values) && values.length > 0) return values[Math.min(nth, values.length - 1)];
    switch (readType(schema)) {
      case 'object':
        return this.#object(schema, nth, depth);
      case 'array':
        return this.#array(schema, depth);
      case 'number':
        return sampleNumber(schema, nth, 0.5);
      case 'integer':
        return sampleNumber(schema, nth, 1);
      case 'boolean':
        return nth % 2 === 1;
      case 'null':
        return null;
      default:
        return sampleText(schema, nth);
    }
  }

  #object(schema: Schema, nth: number, depth: number): Record<string, unknown> {
    const properties = asSchema(schema['properties']);
    const { additionalProperties: others } = schema;
    const names = new Set(readNames(schema['required']));
    const least = readNumber(schema['minProperties']) ?? 0;
    for (const name of Object.keys(properties)) if (names.size < least) names.add(name);
    while (others !== false && names.size < Math.min(least, MAX_VALUES)) names.add(`${TEXT}-${names.size}`);
    const sample = (name: string) => this.#value(Object.hasOwn(properties, name) ? properties[name] : others, nth, depth + 1);
    return Object.fromEntries([...names].map((name) => [name, sample(name)]));
  }

  #array(schema: Schema, depth: number): unknown[] {
    const { prefixItems, items, uniqueItems } = schema;
    const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    const length = Math.min(readNumber(schema['minItems']) ?? 0, MAX_VALUES);
    return Array.from({ length }, (_, i) => this.#value(first[i] ?? items, uniqueItems === true ? i : 0, depth + 1));
  }

  /** Merges the schema with its `$ref`, all of `allOf`, and one alternative each of `anyOf` and `oneOf`. */
  #resolve(schema: unknown, depth: number): Schema {
    if (this.#copies > MAX_COPIES || depth > MAX_SAMPLE_DEPTH || !isSchema(schema)) return {};
    const { $ref, allOf, anyOf, oneOf, ...own } = schema;
    const parts = [
      ...(typeof $ref === 'string' ? [this.#find($ref)] : []),
      ...(Array.isArray(allOf) ? allOf : []),
      ...[anyOf, oneOf].flatMap((choices) => (Array.isArray(choices) ? [simplest(choices)] : [])),
    ];
    let merged: Schema = own;
    this.#count(merged);
    for (const part of parts) {
      if (this.#copies > MAX_COPIES) break;
      merged = merge(merged, this.#resolve(part, depth + 1));
      this.#count(merged);
    }
    return merged;
  }

  #count(schema: Schema): void {
    const { properties, required, enum: values } = schema;
    this.#copies += 1 + Object.keys(schema).length + Object.keys(asSchema(properties)).length;
    this.#copies += readNames(required).length + (Array.isArray(values) ? values.length : 0);
  }

  /** Resolves a reference within the document: `#`, `#/$defs/name`. */
  #find(ref: string): unknown {
    const [start, ...steps] = ref.split('/');
    if (start !== '#') return {};
    const names = steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    return names.reduce<unknown>((at, name) => (isSchema(at) && Object.hasOwn(at, name) ? at[name] : {}), this.#root);
  }
}

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

const asSchema = (value: unknown): Schema => (isSchema(value) ? value : {});

const readNames = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** Gemini sends counts as text. */
const readNumber = (value: unknown): number | undefined =>
  (typeof value === 'number' || typeof value === 'string') && Number.isFinite(Number(value)) ? Number(value) : undefined;

/**
 * The first alternative that is neither an object, an array nor a reference, which may be recursive; else the first.
 */
function simplest(choices: readonly unknown[]): unknown {
  const isSimple = (choice: unknown): boolean =>
    isSchema(choice) && choice['$ref'] === undefined && !/^(object|array)$/.test(readType(choice));
  return choices.find(isSimple) ?? choices[0];
}

function readType(schema: Schema): string {
  const { type } = schema;
  const first: unknown = Array.isArray(type) ? type[0] : type;
  // Gemini sends types in upper case.
  if (typeof first === 'string') return first.toLowerCase();
  if ('properties' in schema || 'required' in schema) return 'object';
  if ('items' in schema || 'minItems' in schema) return 'array';
  return 'minimum' in schema || 'maximum' in schema ? 'number' : 'string';
}

// ---- merging

/** Merges two schemas into one that requires both. */
function merge(left: Schema, right: Schema): Schema {
  const merged: Record<string, unknown> = { ...left, ...right };
  for (const [name, combine] of Object.entries(COMBINED))
    if (left[name] !== undefined && right[name] !== undefined) merged[name] = combine(left[name], right[name]);
  return merged;
}

const larger = (a: unknown, b: unknown): unknown => ((readNumber(a) ?? 0) > (readNumber(b) ?? 0) ? a : b);

const smaller = (a: unknown, b: unknown): unknown => ((readNumber(a) ?? 0) < (readNumber(b) ?? 0) ? a : b);

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

function intersect(a: unknown, b: unknown): unknown[] {
  const others = new Set(toList(b));
  return toList(a).filter((one) => others.has(one));
}

const COMBINED: Readonly<Record<string, (a: unknown, b: unknown) => unknown>> = {
  properties: (a, b) => mergeProperties(asSchema(a), asSchema(b)),
  required: (a, b) => [...readNames(a), ...readNames(b)],
  enum: intersect,
  type: intersect,
  minimum: larger,
  exclusiveMinimum: larger,
  minLength: larger,
  minItems: larger,
  minProperties: larger,
  maximum: smaller,
  exclusiveMaximum: smaller,
  maxLength: smaller,
};

function mergeProperties(left: Schema, right: Schema): Schema {
  const both = Object.keys(left).filter((name) => Object.hasOwn(right, name));
  return { ...left, ...right, ...Object.fromEntries(both.map((name) => [name, { allOf: [left[name], right[name]] }])) };
}

// ---- values

/** No program, file or host has these names, so a client that acts on a sample does nothing. */
const TEXT = 'sluice-demo-sample';

const HOST = 'sluice-demo.invalid';

/** Samples by `format`. */
const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-01',
  'date-time': '2026-01-01T00:00:00Z',
  time: '00:00:00Z',
  duration: 'PT1S',
  email: `sample@${HOST}`,
  hostname: HOST,
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: `http://${HOST}/`,
  url: `http://${HOST}/`,
  'uri-reference': '/',
  uuid: '00000000-0000-4000-8000-000000000000',
  byte: 'AAAA',
  'json-pointer': '/sample',
  regex: '.',
};

/** `step`: the distance of a number from an excluded bound. */
function sampleNumber(schema: Schema, nth: number, step: number): number {
  const least = bound(schema, 'minimum', 'exclusiveMinimum', step);
  const most = bound(schema, 'maximum', 'exclusiveMaximum', -step);
  const multiple = readNumber(schema['multipleOf']);
  const unit = multiple !== undefined && multiple > 0 ? multiple : 1;
  const fits = (value: number): boolean =>
    (least === undefined || value >= least) &&
    (most === undefined || value <= most) &&
    (multiple === undefined || value % unit === 0);
  const up = (value: number): number => Math.ceil(value / unit) * unit;
  const down = (value: number): number => Math.floor(value / unit) * unit;
  const ends = [least, most].flatMap((end) => (end === undefined ? [] : [up(end), down(end), end]));
  const first = [1, unit, 0, ...ends].find(fits) ?? 1;
  const [higher, lower] = [first + nth * unit, first - nth * unit];
  return fits(higher) ? higher : lower;
}

/** The inclusive bound. The first draft with exclusive bounds had `true` beside the number. */
function bound(schema: Schema, name: string, exclusiveName: string, step: number): number | undefined {
  const inclusive = readNumber(schema[name]);
  const exclusive = schema[exclusiveName];
  const open = exclusive === true ? inclusive : readNumber(exclusive);
  if (open === undefined) return inclusive;
  const moved = open + step;
  if (inclusive === undefined || exclusive === true) return moved;
  return step > 0 ? Math.max(inclusive, moved) : Math.min(inclusive, moved);
}

function sampleText({ pattern, format, minLength, maxLength }: Schema, nth: number): string {
  if (typeof pattern === 'string') return samplePattern(pattern) ?? TEXT;
  if (typeof format === 'string' && Object.hasOwn(FORMATS, format)) return FORMATS[format] ?? TEXT;
  const most = readNumber(maxLength) ?? MAX_TEXT;
  const text = nth === 0 ? TEXT : `${nth}-${TEXT}`;
  return text.padEnd(Math.min(readNumber(minLength) ?? 0, MAX_TEXT), '-').slice(0, most);
}

// ---- patterns

/**
 * Builds a text that matches a regular expression: the first alternative, the fewest repetitions. Undefined for
 * patterns with lookaround or back references, and for invalid ones. The pattern is untrusted and never run: matching
 * can take exponential time, building is linear.
 */
function samplePattern(pattern: string): string | undefined {
  if (pattern.length > MAX_LENGTH) return undefined;
  const reader = new PatternReader(pattern);
  const sample = reader.alternatives();
  return reader.isDone && sample.length <= MAX_LENGTH ? sample : undefined;
}

/** Longer patterns and longer samples are not supported. */
const MAX_LENGTH = 500;

const CLASSES: Readonly<Record<string, string>> = { d: '0', w: 'a', s: ' ', D: 'a', W: '-', S: 'a' };

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

const CANDIDATES = 'a0A-_ ./:@~!';

class PatternReader {
  readonly #pattern: string;
  #at = 0;
  #hasFailed = false;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  get isDone(): boolean {
    return !this.#hasFailed && this.#at === this.#pattern.length;
  }

  alternatives(): string {
    const first = this.#sequence();
    while (this.#take('|')) this.#sequence();
    return first;
  }

  #sequence(): string {
    let text = '';
    while (!this.#hasFailed && this.#at < this.#pattern.length && !'|)'.includes(this.#peek())) {
      const atom = this.#atom();
      const times = this.#repetitions();
      if (text.length + atom.length * times > MAX_LENGTH) this.#hasFailed = true;
      else text += atom.repeat(times);
    }
    return text;
  }

  #atom(): string {
    const character = this.#next();
    switch (character) {
      case '^':
      case '$':
        return '';
      case '.':
        return 'a';
      case '(':
        return this.#group();
      case '[':
        return this.#set();
      case '\\':
        return this.#escape(this.#next());
      case '*':
      case '+':
      case '?':
        this.#hasFailed = true;
        return '';
      default:
        return character;
    }
  }

  #group(): string {
    const opening = /^\?(?::|<[A-Za-z_]\w*>)/.exec(this.#rest())?.[0];
    if (opening !== undefined) this.#at += opening.length;
    else if (this.#peek() === '?') this.#hasFailed = true;
    const text = this.alternatives();
    if (!this.#take(')')) this.#hasFailed = true;
    return text;
  }

  #escape(character: string): string {
    if (character === 'b' || character === 'B') return '';
    const known = CLASSES[character] ?? CONTROLS[character];
    if (known !== undefined) return known;
    // Escaped punctuation is literal; other escaped letters and digits are not supported.
    if (character === '' || /\w/.test(character)) this.#hasFailed = true;
    return character;
  }

  /** A set matches one character, whatever it contains, so running it is safe. */
  #set(): string {
    const body = /^\^?\]?(?:\\.|[^\]\\])*\]/.exec(this.#rest())?.[0];
    const set = body === undefined ? undefined : toSet(body);
    if (body === undefined || !set) {
      this.#hasFailed = true;
      return '';
    }
    this.#at += body.length;
    const literal = /^\^?\\?(.)/.exec(body)?.[1] ?? '';
    return [...CANDIDATES, literal].find((character) => set.test(character)) ?? '';
  }

  /** The fewest repetitions that the quantifier allows. */
  #repetitions(): number {
    const quantifier = /^(?:[*+?]|\{(\d+)(?:,\d*)?\})\??/.exec(this.#rest());
    if (!quantifier) return 1;
    this.#at += quantifier[0].length;
    if (quantifier[1] !== undefined) return Number(quantifier[1]);
    return quantifier[0].startsWith('+') ? 1 : 0;
  }

  #rest(): string {
    return this.#pattern.slice(this.#at);
  }

  #peek(): string {
    return this.#pattern.charAt(this.#at);
  }

  #next(): string {
    return this.#pattern.charAt(this.#at++);
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }
}

function toSet(body: string): RegExp | undefined {
  try {
    return new RegExp(`^[${body}$`);
  } catch {
    return undefined;
  }
}
