/** The JSON Schema dialects of targets that do not accept every schema. */

import type { SchemaDialect } from '../rules.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';

const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value);

const isCount: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

const isTextList: Check = (value) => Array.isArray(value) && value.every(isText);

const anything: Check = () => true;

/** How a target limits schemas: a column of "Schema dialects" in docs/canonical.md. */
export interface Dialect {
  /**
   * Keywords that are copied if their value passes the check. Keywords that are converted are not listed
   * (convert.ts).
   */
  keywords: Readonly<Record<string, Check>>;
  /** Whether a format is supported for a type. */
  formats: (format: string, type: string | undefined) => boolean;
  /** `alone`: `$ref` is supported in nodes without other keywords. `inline`: definitions replace references. */
  refs: 'alone' | 'inline';
  /** Objects must not allow other properties than the listed ones. */
  isClosed: boolean;
  /** Every property must be required; optional ones become nullable. */
  allRequired: boolean;
  /** Whether `additionalProperties` is supported. */
  additionalProperties: boolean;
  /** Whether `prefixItems` is supported. */
  prefixItems: boolean;
  /** Whether `const` is supported. */
  constants: boolean;
  /** Which values an enum may list. */
  enums: 'scalars' | 'texts and numbers' | 'texts';
  /** Whether arrays require `items`. */
  needsItems: boolean;
  /** OpenAPI: types in capitals, one type per node, and null as a flag. */
  isOpenApi: boolean;
}

const oneOf =
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

/**
 * The restricted dialects. `openai` and `anthropic` accept any schema; only the root and missing keywords are
 * repaired for them.
 */
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
    formats: oneOf('date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'),
    allRequired: true,
    needsItems: true,
  },
  'anthropic-strict': {
    ...CLOSED,
    // The schema transform of Anthropic's own SDK keeps these.
    keywords: { title: isText, minItems: (value) => value === 0 || value === 1 },
    formats: oneOf('date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'),
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
      propertyOrdering: isTextList,
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
      propertyOrdering: isTextList,
    },
    formats: (format, type = '') => (Object.hasOwn(OPENAPI_FORMATS, type) && OPENAPI_FORMATS[type]?.includes(format)) || false,
    refs: 'inline',
    additionalProperties: false,
    prefixItems: false,
    enums: 'texts',
    isOpenApi: true,
  },
};
