import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Dialect } from './dialects.ts';

/** The values that a schema lists, as the dialect lists them. */
export interface Values {
  enum?: readonly unknown[];
  const?: unknown;
  /** OpenAPI marks an enum of what are no texts. */
  format?: string;
  /** null was among them, and has another place there. */
  hasNull: boolean;
  lost: readonly (readonly [keyword: string, value: unknown])[];
}

type Kind = 'text' | 'number' | 'boolean' | 'null' | 'other';

function kindOf(value: unknown): Kind {
  if (value === null) return 'null';
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  return typeof value === 'boolean' ? 'boolean' : 'other';
}

const TAKEN: Readonly<Record<Dialect['enums'], ReadonlySet<Kind>>> = {
  scalars: new Set(['text', 'number', 'boolean', 'null']),
  'texts and numbers': new Set(['text', 'number']),
  // Numbers are written as texts.
  texts: new Set(['text', 'number']),
};

/** An enum that the dialect cannot list whole is only told: half of it would forbid the rest. */
export function convertEnum(schema: JsonObject, dialect: Dialect): Values {
  const { enum: listed, const: only } = schema;
  if (listed === undefined && only === undefined) return { hasNull: false, lost: [] };
  const taken = TAKEN[dialect.enums];
  if (listed === undefined && dialect.constants)
    return taken.has(kindOf(only)) ? { const: only, hasNull: false, lost: [] } : { hasNull: false, lost: [['const', only]] };
  const keyword = listed === undefined ? 'const' : 'enum';
  const values: readonly unknown[] = Array.isArray(listed) ? listed : listed === undefined ? [only] : [];
  const isNullApart = !taken.has('null');
  const rest = isNullApart ? values.filter((value) => value !== null) : values;
  const hasNull = rest.length < values.length;
  const lost: [string, unknown][] = listed !== undefined && only !== undefined ? [['const', only]] : [];
  if (rest.length === 0 || !rest.every((value) => taken.has(kindOf(value))))
    return { hasNull, lost: hasNull && rest.length === 0 ? lost : [...lost, [keyword, listed ?? only]] };
  return { ...(dialect.enums === 'texts' ? asTexts(rest, lost) : { enum: rest, lost }), hasNull };
}

/** Gemini refuses an empty text in an enum. */
function asTexts(values: readonly unknown[], lost: readonly (readonly [string, unknown])[]): Omit<Values, 'hasNull'> {
  const texts = values.map(String).filter((text) => text !== '');
  if (texts.length < values.length) return { lost: [...lost, ['enum', values]] };
  const isMarked = values.some((value) => typeof value !== 'string');
  return { enum: texts, lost, ...(isMarked && { format: 'enum' }) };
}
