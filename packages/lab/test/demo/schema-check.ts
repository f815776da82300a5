// A checker of JSON Schema for tests: the keywords that tools of real clients use, and those that samples are made for.
type Schema = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const IS_TYPE: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
};

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  uri: URL.canParse,
  email: (text) => /^[^@\s]+@[\w.-]+$/.test(text),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) && !Number.isNaN(Date.parse(text)),
  uuid: (text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text),
  ipv4: (text) => /^\d+(\.\d+){3}$/.test(text),
};

/** One entry for each rule that the value breaks; none when it satisfies the schema. */
export function violations(value: unknown, schema: unknown, root: unknown = schema, at = '$'): string[] {
  if (schema === true || schema === undefined) return [];
  if (!isObject(schema)) return [`${at}: nothing is allowed`];
  const inner = (part: unknown): string[] => violations(value, part, root, at);
  const wrong = (isWrong: boolean, rule: string): string[] => (isWrong ? [`${at}: ${rule}`] : []);
  const types = list(schema['type'] ?? []).concat(typeof schema['type'] === 'string' ? [schema['type']] : []);
  const matches = (choices: unknown): number => list(choices).filter((choice) => inner(choice).length === 0).length;
  return [
    ...(typeof schema['$ref'] === 'string' ? inner(resolve(schema['$ref'], root)) : []),
    ...list(schema['allOf']).flatMap(inner),
    ...wrong(schema['anyOf'] !== undefined && matches(schema['anyOf']) === 0, 'anyOf'),
    ...wrong(schema['oneOf'] !== undefined && matches(schema['oneOf']) !== 1, 'oneOf'),
    ...wrong(types.length > 0 && !types.some((type) => IS_TYPE[String(type).toLowerCase()]?.(value)), 'type'),
    ...wrong(schema['const'] !== undefined && !same(schema['const'], value), 'const'),
    ...wrong(schema['enum'] !== undefined && !list(schema['enum']).some((one) => same(one, value)), 'enum'),
    ...(typeof value === 'number' ? wrong(!isNumberFine(value, schema), 'number') : []),
    ...(typeof value === 'string' ? wrong(!isTextFine(value, schema), 'text') : []),
    ...(Array.isArray(value) ? inArray(value, schema, root, at) : []),
    ...(isObject(value) ? inObject(value, schema, root, at) : []),
  ];
}

const resolve = (ref: string, root: unknown): unknown =>
  ref
    .split('/')
    .slice(1)
    .reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), root);

function isNumberFine(value: number, schema: Schema): boolean {
  const bound = (name: string, otherwise: number): number => (typeof schema[name] === 'number' ? schema[name] : otherwise);
  return (
    value >= bound('minimum', value) &&
    value <= bound('maximum', value) &&
    value > bound('exclusiveMinimum', -Infinity) &&
    value < bound('exclusiveMaximum', Infinity) &&
    !(schema['exclusiveMinimum'] === true && value === schema['minimum']) &&
    value % bound('multipleOf', value || 1) === 0
  );
}

function isTextFine(value: string, { minLength, maxLength, pattern, format }: Schema): boolean {
  return (
    value.length >= Number(minLength ?? 0) &&
    value.length <= Number(maxLength ?? Infinity) &&
    (typeof pattern !== 'string' || new RegExp(pattern).test(value)) &&
    (FORMATS[String(format)]?.(value) ?? true)
  );
}

function inArray(value: unknown[], schema: Schema, root: unknown, at: string): string[] {
  const { items, prefixItems, minItems, maxItems, uniqueItems } = schema;
  const isShort = value.length < Number(minItems ?? 0) || value.length > Number(maxItems ?? Infinity);
  const isTwice = uniqueItems === true && new Set(value.map((one) => JSON.stringify(one))).size < value.length;
  return [
    ...(isShort ? [`${at}: length`] : []),
    ...(isTwice ? [`${at}: uniqueItems`] : []),
    ...value.flatMap((one, i) => violations(one, list(prefixItems)[i] ?? items, root, `${at}[${i}]`)),
  ];
}

function inObject(value: Record<string, unknown>, schema: Schema, root: unknown, at: string): string[] {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const missing = list(schema['required']).filter((name) => !Object.hasOwn(value, String(name)));
  return [
    ...missing.map((name) => `${at}: ${name} is required`),
    ...(Object.keys(value).length < Number(schema['minProperties'] ?? 0) ? [`${at}: minProperties`] : []),
    ...Object.entries(value).flatMap(([name, one]) => {
      const own = Object.hasOwn(properties, name) ? properties[name] : schema['additionalProperties'];
      return violations(one, own, root, `${at}.${name}`);
    }),
  ];
}
