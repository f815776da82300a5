type Schema = Record<string, unknown>;

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Deeper than any tool needs, and no deeper than the stack allows. */
const MAX_DEPTH = 8;

/** Arguments that fit a schema: its required fields, filled from the question where a text is wanted. */
export function argumentsFor(schema: Schema, question: string): Record<string, unknown> {
  const value = valueFor({ ...schema, type: 'object' }, '', question, 0);
  return isSchema(value) ? value : {};
}

function valueFor(schema: Schema, name: string, question: string, depth: number): unknown {
  if (depth > MAX_DEPTH) return null;
  if (schema['const'] !== undefined) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  if (schema['default'] !== undefined) return schema['default'];
  const [first] = [schema['anyOf'], schema['oneOf'], schema['allOf']].find(Array.isArray) ?? [];
  if (isSchema(first)) return valueFor(first, name, question, depth + 1);
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
  switch (String(type).toLowerCase()) {
    case 'object':
      return objectFor(schema, question, depth);
    case 'array':
      return isSchema(schema['items']) && schema['minItems'] ? [valueFor(schema['items'], name, question, depth + 1)] : [];
    case 'number':
    case 'integer':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1;
    case 'boolean':
      return false;
    case 'null':
      return null;
    default:
      return textFor(name, question);
  }
}

function objectFor({ properties, required }: Schema, question: string, depth: number): Schema {
  if (!isSchema(properties)) return {};
  const names = Array.isArray(required) ? required.map(String) : [];
  const wanted = Object.entries(properties).filter(([name]) => names.includes(name));
  return Object.fromEntries(
    wanted.map(([name, schema]) => [name, valueFor(isSchema(schema) ? schema : {}, name, question, depth + 1)]),
  );
}

/** A path where the field wants one and the question names one; else the question. */
function textFor(name: string, question: string): string {
  if (/path|file|dir/i.test(name)) return /(?:\/[\w.@-]+)+/.exec(question)?.[0] ?? '.';
  return question.slice(0, 200);
}
