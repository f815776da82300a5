import type { SchemaDialect } from '../rules.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';

const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value);

const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

const isTexts: Check = (value) => Array.isArray(value) && value.every(isText);

const anything: Check = () => true;

/** How a target changes a schema that it does not accept as it is: a column of "Schema dialects" in docs/canonical.md. */
export interface Dialect {
  /** Keywords that go as they are, when their value is what it has to be. Those that need work are not listed (convert.ts). */
  keywords: Readonly<Record<string, Check>>;
  formats: (format: string, type: string | undefined) => boolean;
  /** Definitions are referred to, by nodes that do nothing else; or they are put in the place of each reference. */
  refs: 'alone' | 'inline';
  /** Objects take no other properties than the named ones. */
  isClosed: boolean;
  /** Every property is required; those that need not be there may be null. */
  allRequired: boolean;
  additionalProperties: boolean;
  prefixItems: boolean;
  constants: boolean;
  /** Which values an enum may list. */
  enums: 'scalars' | 'texts and numbers' | 'texts';
  /** A list says what it lists. */
  needsItems: boolean;
  /** OpenAPI: types in capitals, one for each node, and null is a flag. */
  isOpenApi: boolean;
}

const among =
  (...formats: string[]) =>
  (format: string): boolean =>
    formats.includes(format);

const OPENAPI_FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ['enum', 'date-time'],
  integer: ['enum', 'int32', 'int64'],
  number: ['enum', 'float', 'double'],
};

const CLOSED = {
  refs: 'alone',
  isClosed: true,
  additionalProperties: false,
  prefixItems: false,
  constants: true,
  enums: 'scalars',
  isOpenApi: false,
} as const;

const GEMINI = { isClosed: false, allRequired: false, constants: false, needsItems: true } as const;

/** `openai` and `anthropic` take any schema; the pass only sees to its root and to what is missing. */
export const DIALECTS: Readonly<Record<Exclude<SchemaDialect, 'openai' | 'anthropic'>, Dialect>> = {
  'openai-strict': {
    ...CLOSED,
    keywords: {
      title: isText,
      pattern: isText,
      multipleOf: isNumber,
      minimum: isNumber,
      maximum: isNumber,
      exclusiveMinimum: isNumber,
      exclusiveMaximum: isNumber,
      minItems: isCount,
      maxItems: isCount,
    },
    formats: among('date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'),
    allRequired: true,
    needsItems: true,
  },
  'anthropic-strict': {
    ...CLOSED,
    // The schema transform of Anthropic's own SDK keeps these.
    keywords: { title: isText, minItems: (value) => value === 0 || value === 1 },
    formats: among('date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'),
    allRequired: false,
    needsItems: false,
  },
  // js-genai, FunctionDeclaration.parametersJsonSchema: "only the following keywords are supported".
  'gemini-json': {
    ...GEMINI,
    keywords: {
      $id: isText,
      $anchor: isText,
      title: isText,
      minItems: isCount,
      maxItems: isCount,
      minimum: isNumber,
      maximum: isNumber,
      propertyOrdering: isTexts,
    },
    formats: anything,
    refs: 'alone',
    additionalProperties: true,
    prefixItems: true,
    enums: 'texts and numbers',
    isOpenApi: false,
  },
  // js-genai, Schema.
  'gemini-openapi': {
    ...GEMINI,
    keywords: {
      title: isText,
      default: anything,
      example: anything,
      minItems: isCount,
      maxItems: isCount,
      minProperties: isCount,
      maxProperties: isCount,
      minLength: isCount,
      maxLength: isCount,
      pattern: isText,
      minimum: isNumber,
      maximum: isNumber,
      propertyOrdering: isTexts,
    },
    formats: (format, type = '') => (Object.hasOwn(OPENAPI_FORMATS, type) && OPENAPI_FORMATS[type]?.includes(format)) || false,
    refs: 'inline',
    additionalProperties: false,
    prefixItems: false,
    enums: 'texts',
    isOpenApi: true,
  },
};
