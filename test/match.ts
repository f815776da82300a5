import type { AccumulatedMessage } from '../packages/core/src/index.ts';
import type { Expected } from './corpus.ts';

/** Where `actual` does not hold what `expected` lists: an empty list means a match. Listed keys only; lists element by element. */
export function differences(actual: unknown, expected: unknown, path = ''): string[] {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return [`${path}: ${show(actual)} is not ${show(expected)}`];
    return expected.flatMap((item, i) => differences(actual[i], item, `${path}/${i}`));
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return [`${path}: ${show(actual)} is not ${show(expected)}`];
    return Object.entries(expected).flatMap(([key, value]) =>
      differences((actual as Record<string, unknown>)[key], value, `${path}/${key}`),
    );
  }
  return Object.is(actual, expected) ? [] : [`${path}: ${show(actual)} is not ${show(expected)}`];
}

const show = (value: unknown): string => JSON.stringify(value)?.slice(0, 200) ?? 'undefined';

/** Extras that stand in a field of their own. */
const FIELD_OF: Record<string, (result: AccumulatedMessage) => unknown> = {
  incomplete: (result) => !result.complete,
  wire_finish_reason: (result) => result.wire_finish_reason,
  native_finish_reason: (result) => result.wire_finish_reason,
  invalid_arguments: (result) => result.invalid_arguments,
  role: (result) => result.role,
  response_id: (result) => result.id,
  model: (result) => result.model,
  tool_call_types: (result) => result.tool_calls.map(({ type }) => type),
  tool_call_fields: (result) => result.tool_calls,
};

/** Compares an assembled result with what a case expects, by the rules of the cases' README. */
export function checkCase(result: AccumulatedMessage, expected: Expected): string[] {
  const { text, reasoning, refusal, tool_calls: calls, finish_reason, usage, error, extras = {} } = expected;
  const found = differences(result, {
    text,
    finish_reason,
    ...(reasoning !== undefined && { reasoning }),
    ...(refusal !== undefined && { refusal }),
  });
  found.push(
    ...differences(
      result.tool_calls,
      calls.map(({ id, ...rest }) => (id === '<generated>' ? rest : { id, ...rest })),
      '/tool_calls',
    ),
  );
  const ids = result.tool_calls.map(({ id }) => id);
  if (new Set(ids).size !== ids.length || ids.includes('')) found.push(`/tool_calls: ids ${show(ids)} are not distinct`);
  if (usage !== undefined) found.push(...differences(result.wire_usage, usage, '/wire_usage'));
  found.push(...(error ? differences(result.error, error, '/error') : differences(result.error, null, '/error')));
  for (const [key, value] of Object.entries(extras)) {
    const actual = FIELD_OF[key] ? FIELD_OF[key](result) : result.extras[key];
    found.push(...differences(actual, value, `/extras/${key}`));
  }
  return found;
}
