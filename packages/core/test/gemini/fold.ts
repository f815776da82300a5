import type { Json, Part } from '../../../../test/sdk/gemini.ts';

/** The fragments of a stream as one response, read without our decoder: parts in their order, of every other field the last. */
export function fold(payloads: readonly Json[]): Json {
  const candidates = new Map<number, Json>();
  const whole: Json = {};
  for (const payload of payloads) {
    const { candidates: list = [], ...rest } = payload as { candidates?: Json[] } & Json;
    Object.assign(whole, rest);
    for (const [place, candidate] of list.entries()) {
      const index = Number(candidate['index'] ?? place);
      const before = candidates.get(index) ?? { content: { role: 'model', parts: [] }, index };
      candidates.set(index, add(before, candidate));
    }
  }
  return { ...whole, ...(candidates.size > 0 && { candidates: [...candidates.values()] }) };
}

function add(before: Json, { content, logprobsResult, ...rest }: Json): Json {
  const { parts: said = [], ...fields } = (content ?? {}) as { parts?: Part[] } & Json;
  const { parts, ...old } = before['content'] as { parts: Part[] } & Json;
  return {
    ...before,
    ...rest,
    ...(logprobsResult !== undefined && { logprobsResult: grow(before['logprobsResult'], logprobsResult) }),
    content: { ...old, ...fields, role: 'model', parts: [...parts, ...said] },
  };
}

/** Each fragment brings the logprobs of its own tokens. */
const grow = (before: unknown, after: unknown): unknown =>
  Object.fromEntries(
    Object.entries(after as Json).map(([key, value]) => {
      const list = (before as Json | undefined)?.[key];
      return [key, Array.isArray(value) && Array.isArray(list) ? [...list, ...value] : value];
    }),
  );
