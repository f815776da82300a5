/** Mutations of the usage of OpenAI Chat. */

import { type Mutation, mutations, type WireStream } from '../mutation.ts';
import { editFrames, hasDone, isObject, type Json, objects, rewrite, without } from '../payloads.ts';

const findUsage = (chunks: readonly Json[]): Json | undefined => chunks.map(({ usage }) => usage).findLast(isObject);

/** The counts as they could have been earlier in the stream: none is higher than the last. */
const scaleUsage = (usage: Json, share: number): Json =>
  Object.fromEntries(
    Object.entries(usage).map(([key, value]) => {
      if (isObject(value)) return [key, scaleUsage(value, share)];
      return [key, typeof value === 'number' && key !== 'prompt_tokens' ? Math.floor(value * share) : value];
    }),
  );

/** The usage, and the chunks without it; a chunk with nothing but usage is removed. */
function takeUsage(chunks: readonly Json[]): { rest: Json[]; usage: Json } | undefined {
  const usage = findUsage(chunks);
  const isOnly = (chunk: Json): boolean => isObject(chunk['usage']) && objects(chunk['choices']).length === 0;
  return usage && { usage, rest: chunks.filter((chunk) => !isOnly(chunk)).map((chunk) => without(chunk, 'usage')) };
}

/** Moves the usage to another place. */
const moveUsage = (place: (chunks: readonly Json[], usage: Json) => readonly Json[]) => (stream: WireStream) =>
  rewrite(stream, (chunks) => {
    const taken = takeUsage(chunks);
    return taken && taken.rest.length > 0 ? place(taken.rest, taken.usage) : chunks;
  });

const onLast = (chunks: readonly Json[], change: (chunk: Json) => Json): Json[] =>
  chunks.map((chunk, at) => (at === chunks.length - 1 ? change(chunk) : chunk));

/** Mutations of the usage. */
export const CHAT_USAGE_MUTATIONS: readonly Mutation[] = mutations('usage', ['openai-chat'], {
  'chat/usage-on-every-chunk': {
    title: 'Usage on every chunk, growing',
    apply: moveUsage((chunks, usage) =>
      chunks.map((chunk, at) => ({ ...chunk, usage: scaleUsage(usage, (at + 1) / chunks.length) })),
    ),
  },
  'chat/usage-with-the-finish': {
    title: 'Usage on the chunk with finish_reason',
    apply: moveUsage((chunks, usage) => onLast(chunks, (chunk) => ({ ...chunk, usage }))),
  },
  'chat/usage-twice': {
    title: 'Usage on the chunk with finish_reason and again after it',
    apply: moveUsage((chunks, usage) => [
      ...onLast(chunks, (chunk) => ({ ...chunk, usage })),
      ...chunks.slice(-1).map((chunk) => ({ ...chunk, choices: [], usage })),
    ]),
  },
  'chat/usage-zeros-first': {
    title: 'Usage of zeros on all chunks but the last',
    apply: moveUsage((chunks, usage) => [
      ...chunks.map((chunk) => ({ ...chunk, usage: zeros(usage) })),
      ...chunks.slice(-1).map((chunk) => ({ ...chunk, choices: [], usage })),
    ]),
  },
  'chat/usage-zeros-last': {
    title: 'Usage of zeros after the real one',
    apply: moveUsage((chunks, usage) => [
      ...chunks,
      ...chunks.slice(-1).flatMap((chunk) => [usage, zeros(usage)].map((one) => ({ ...chunk, choices: [], usage: one }))),
    ]),
  },
  'chat/usage-then-null': {
    title: 'A chunk with usage null after the one with usage',
    apply: moveUsage((chunks, usage) => [
      ...chunks,
      ...chunks.slice(-1).flatMap((chunk) => [usage, null].map((one) => ({ ...chunk, choices: [], usage: one }))),
    ]),
  },
  'chat/usage-null-choices': {
    title: 'choices is null on the chunk with usage',
    rule: 'chat/choices-missing',
    apply: moveUsage((chunks, usage) => [...chunks, ...chunks.slice(-1).map((chunk) => ({ ...chunk, choices: null, usage }))]),
  },
  'chat/usage-no-choices': {
    title: 'No choices on the chunk with usage',
    rule: 'chat/choices-missing',
    apply: moveUsage((chunks, usage) => [
      ...chunks,
      ...chunks.slice(-1).map((chunk) => ({ ...without(chunk, 'choices'), usage })),
    ]),
  },
  'chat/usage-in-x-groq': {
    title: 'Usage in x_groq and at the top level',
    apply: moveUsage((chunks, usage) => [
      ...onLast(chunks, (chunk) => ({ ...chunk, x_groq: { usage } })),
      ...chunks.slice(-1).map((chunk) => ({ ...chunk, choices: [], usage })),
    ]),
  },
  'chat/usage-after-done': {
    title: 'Usage after [DONE], which official clients ignore',
    loses: ['usage'],
    rule: 'sse/after-end',
    apply: (stream) => {
      const usage = stream.frames.findLast(({ data }) => data.startsWith('{') && isObject((JSON.parse(data) as Json)['usage']));
      const isAlone = usage && objects((JSON.parse(usage.data) as Json)['choices']).length === 0;
      if (!isAlone || !hasDone(stream)) return stream;
      return { ...stream, frames: [...editFrames(stream, (frame) => (frame === usage ? [] : frame)).frames, usage] };
    },
  },
});

const zeros = (usage: Json): Json =>
  Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [key, isObject(value) ? zeros(value) : typeof value === 'number' ? 0 : value]),
  );
