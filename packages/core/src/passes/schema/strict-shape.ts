import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import { MAX_JSON_DEPTH } from '../../json/limits.ts';
import { childrenOf } from './children.ts';

/** Whether every object is closed and requires all its properties: a schema written for OpenAI's strict mode, which is its own judge. */
export function isStrictShape(schema: JsonObject, depth = 0): boolean {
  if (depth > MAX_JSON_DEPTH || !isClosed(schema)) return false;
  for (const child of childrenOf(schema)) if (!isStrictShape(child, depth + 1)) return false;
  return true;
}

function isClosed({ type, properties, required, additionalProperties: others }: JsonObject): boolean {
  if (type !== 'object' && !isObject(properties)) return true;
  const names = isObject(properties) ? Object.keys(properties) : [];
  const isRequired = new Set(Array.isArray(required) ? required : []);
  return others === false && names.every((name) => isRequired.has(name));
}
