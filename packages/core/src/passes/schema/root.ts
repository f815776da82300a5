import { isObject } from '../../accumulate/overlay.ts';
import type { JsonSchema } from '../../canonical/protocol.ts';
import { MAX_JSON_DEPTH } from '../../json/limits.ts';
import { resolveRef } from './refs.ts';

/** What at the root says that the value may be something else than one object of known shape: APIs refuse it there. */
const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', 'const', '$ref', 'items', 'prefixItems'];

/** Whether the arguments of a tool are an object whatever they are. No schema means an object without properties. */
export function isObjectRoot(schema: JsonSchema = {}): boolean {
  const root = openRoot(schema);
  if (ALTERNATIVES.some((keyword) => root[keyword] !== undefined)) return false;
  return root['type'] === undefined || isObjectType(root['type']);
}

const isObjectType = (type: unknown): boolean =>
  type === 'object' ||
  type === 'OBJECT' ||
  (Array.isArray(type) && type.includes('object') && type.every((name) => name === 'object' || name === 'null'));

/** A root that is only a reference, as generators write it, is what it refers to. */
function openRoot(schema: JsonSchema): JsonSchema {
  const { $ref: ref, ...rest } = schema;
  if (typeof ref !== 'string') return schema;
  const target = resolveRef(ref, schema);
  return isObject(target) && target !== schema && target['$ref'] === undefined ? { ...target, ...rest } : schema;
}

/** The schema of an object with type, so that everybody knows it for one; the same when it says so itself. */
export function asObjectRoot(schema: JsonSchema): JsonSchema {
  const root = openRoot(schema);
  return root['type'] === 'object' || root['type'] === 'OBJECT' ? root : { ...root, type: 'object' };
}

const INPUT = '#/properties/input';

/** Any value as the one property of an object. Definitions stay at the root, where references look for them. */
export function wrapRoot(schema: JsonSchema): JsonSchema {
  const { $schema, $defs, definitions, ...inner } = schema;
  return {
    ...($schema !== undefined && { $schema }),
    type: 'object',
    properties: { input: moveRefs(inner) },
    required: ['input'],
    ...($defs !== undefined && { $defs: moveRefs($defs) }),
    ...(definitions !== undefined && { definitions: moveRefs(definitions) }),
  };
}

const toDefinition = (ref: string): boolean => /^#\/(\$defs|definitions)\//.test(ref);

/** References into the schema itself point one level deeper now. */
function moveRefs(value: unknown, depth = 0): unknown {
  if (depth > MAX_JSON_DEPTH || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => moveRefs(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      key === '$ref' && typeof item === 'string' && item.startsWith('#') && !toDefinition(item)
        ? [key, `${INPUT}${item.slice(1)}`]
        : [key, moveRefs(item, depth + 1)],
    ),
  );
}
