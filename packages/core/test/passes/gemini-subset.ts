import { isObject, type JsonObject } from '../../src/json/json.ts';

// What Gemini takes of a schema, as js-genai documents it: written anew here, so that the tables of the source are not their own judge.

const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0;
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

type Fault = (path: string, message: string) => void;
type Check = (value: unknown, path: string, fault: Fault, schema: JsonObject) => void;

const plain =
  (is: (value: unknown) => boolean): Check =>
  (value, path, fault) => {
    if (!is(value)) fault(path, `has the value ${JSON.stringify(value)}`);
  };

const CAPITALS = ['STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL'];
const FORMATS: Record<string, string[]> = {
  STRING: ['enum', 'date-time'],
  INTEGER: ['enum', 'int32', 'int64'],
  NUMBER: ['enum', 'float', 'double'],
};

/** The words of one field and how their values must look. */
function wordsOf(node: Check): Record<string, Check> {
  const list: Check = (value, path, fault, schema) => {
    if (!Array.isArray(value) || value.length === 0) {
      fault(path, 'is no list');
      return;
    }
    value.forEach((item, i) => {
      node(item, `${path}/${i}`, fault, schema);
    });
  };
  const named: Check = (value, path, fault, schema) => {
    if (!isObject(value)) {
      fault(path, 'is no object');
      return;
    }
    for (const [name, item] of Object.entries(value)) node(item, `${path}/${name}`, fault, schema);
  };
  return {
    description: plain(isText),
    title: plain(isText),
    minItems: plain(isCount),
    maxItems: plain(isCount),
    minimum: plain(isNumber),
    maximum: plain(isNumber),
    propertyOrdering: plain(isTexts),
    items: node,
    anyOf: list,
    properties: named,
    required: (value, path, fault, schema) => {
      const known = isObject(schema['properties']) ? schema['properties'] : {};
      if (!isTexts(value)) fault(path, 'is no list of names');
      else for (const name of value as string[]) if (!Object.hasOwn(known, name)) fault(path, `names ${name}, which is unknown`);
    },
  };
}

const OPENAPI: Record<string, Check> = {
  ...wordsOf((value, path, fault) => checkOpenApi(value, path, fault)),
  type: plain((type) => CAPITALS.includes(String(type))),
  nullable: plain((value) => typeof value === 'boolean'),
  default: () => {},
  example: () => {},
  minLength: plain(isCount),
  maxLength: plain(isCount),
  minProperties: plain(isCount),
  maxProperties: plain(isCount),
  pattern: plain(isText),
  enum: plain((value) => isTexts(value) && (value as string[]).length > 0 && !(value as string[]).includes('')),
  format: (value, path, fault, { type }) => {
    if (!FORMATS[String(type)]?.includes(String(value))) fault(path, `the format ${value} of ${type}`);
  },
};

function checkOpenApi(schema: unknown, path: string, fault: Fault): void {
  if (!isObject(schema)) {
    fault(path, 'is no schema');
    return;
  }
  if (schema['type'] === undefined && schema['anyOf'] === undefined) fault(path, 'has no type');
  if (schema['type'] === 'ARRAY' && schema['items'] === undefined) fault(path, 'is a list of nothing');
  if (isObject(schema['properties']) && Object.keys(schema['properties']).length === 0) fault(path, 'has no properties');
  walk(schema, OPENAPI, path, fault);
}

const LOWER = CAPITALS.map((type) => type.toLowerCase());

const JSON_WORDS: Record<string, Check> = {
  ...wordsOf((value, path, fault) => checkJson(value, path, fault)),
  $id: plain(isText),
  $anchor: plain(isText),
  $defs: (value, path, fault) => {
    if (!isObject(value)) {
      fault(path, 'is no object');
      return;
    }
    for (const [name, item] of Object.entries(value)) checkJson(item, `${path}/${name}`, fault);
  },
  $ref: plain(isText),
  type: plain((type) => (Array.isArray(type) ? type : [type]).every((name) => LOWER.includes(String(name)))),
  format: plain(isText),
  enum: plain((value) => Array.isArray(value) && value.length > 0 && value.every((item) => isText(item) || isNumber(item))),
  prefixItems: (value, path, fault) => {
    if (!Array.isArray(value)) {
      fault(path, 'is no list');
      return;
    }
    value.forEach((item, i) => {
      checkJson(item, `${path}/${i}`, fault);
    });
  },
  additionalProperties: (value, path, fault) => {
    if (typeof value !== 'boolean') checkJson(value, path, fault);
  },
};

function checkJson(schema: unknown, path: string, fault: Fault): void {
  if (!isObject(schema)) {
    fault(path, 'is no schema');
    return;
  }
  const isAlone = Object.keys(schema).every((key) => key.startsWith('$'));
  if (schema['$ref'] !== undefined && !isAlone) fault(path, 'says more than its reference');
  walk(schema, JSON_WORDS, path, fault);
}

function walk(schema: JsonObject, words: Record<string, Check>, path: string, fault: Fault): void {
  for (const [key, value] of Object.entries(schema)) {
    const check = Object.hasOwn(words, key) ? words[key] : undefined;
    if (check) check(value, `${path}/${key}`, fault, schema);
    else fault(path, `says ${key}`);
  }
}

/** What Gemini would refuse or ignore of a schema; empty when it takes it whole. */
export function geminiFaults(schema: unknown, field: 'gemini-openapi' | 'gemini-json'): string[] {
  const faults: string[] = [];
  const fault: Fault = (path, message) => faults.push(`${path || '/'} ${message}`);
  if (field === 'gemini-openapi') checkOpenApi(schema, '', fault);
  else checkJson(schema, '', fault);
  return faults;
}
