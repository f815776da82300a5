/** Mutations of the envelope, finish reason and usage of Gemini. */

import { type Mutation, mutations, type WireStream } from '../mutation.ts';
import { edit, insertAtRandom, isObject, type Json, objects, rewrite, within, without } from '../payloads.ts';
import { chunkLike, editCandidates, readParts } from './wire.ts';

const ONLY = ['gemini'] as const;

const snakeKey = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * Converts the protocol's keys to snake case; arguments of a call and results of a tool are data and stay as they are.
 */
function toSnakeCase(value: unknown, key = ''): unknown {
  if (key === 'args' || key === 'response') return value;
  if (Array.isArray(value)) return value.map((item: unknown) => toSnakeCase(item));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [snakeKey(name), toSnakeCase(inner, name)]));
}

const ENVELOPE = mutations('envelope', ONLY, {
  'gemini/response-wrapper': {
    title: 'Every chunk is wrapped in {"response": …}',
    rule: 'gemini/response-wrapper',
    apply: (stream) => edit(stream, (chunk) => ({ response: chunk, traceId: '1f' })),
  },
  'gemini/snake-case': {
    title: 'Keys are spelled with underscores',
    rule: 'gemini/snake-case',
    apply: (stream) => edit(stream, (chunk) => toSnakeCase(chunk) as Json), // an object in, an object out
  },
  'gemini/envelope-missing': {
    title: 'Chunks have neither an id nor a model',
    // Ids of calls that have none are derived from the response id.
    loses: ['id', 'model', 'call_ids'],
    apply: (stream) => edit(stream, (chunk) => without(chunk, 'responseId', 'modelVersion', 'createTime')),
  },
  'gemini/no-candidate-index': {
    title: 'The only candidate has no index',
    apply: (stream) =>
      editCandidates(stream, (candidate) => (Number(candidate['index'] ?? 0) === 0 ? without(candidate, 'index') : candidate)),
  },
  'gemini/no-role': {
    title: 'The content has no role',
    apply: (stream) => editCandidates(stream, (candidate) => within(candidate, 'content', (content) => without(content, 'role'))),
  },
  'gemini/foreign-payloads': {
    title: 'Unrelated payloads between the chunks',
    rule: 'gemini/unknown-payload',
    apply: (stream, random) => insertAtRandom(stream, random, () => ({ type: 'ping' })),
  },
  'gemini/foreign-payload-first': {
    title: 'An unrelated payload before the first chunk',
    rule: 'gemini/unknown-payload',
    apply: (stream) => rewrite(stream, (chunks) => [{ status: 'queued' }, ...chunks]),
  },
  'gemini/empty-chunks': {
    title: 'Chunks without candidates',
    apply: (stream, random) =>
      insertAtRandom(stream, random, (chunk) => {
        const { modelVersion, responseId } = chunk;
        return {
          candidates: [],
          ...(modelVersion !== undefined && { modelVersion }),
          ...(responseId !== undefined && { responseId }),
          promptFeedback: {},
        };
      }),
  },
});

/** The numbers of finish reasons in the enum of Vertex AI. */
const NUMBERS: Record<string, number> = {
  STOP: 1,
  MAX_TOKENS: 2,
  SAFETY: 3,
  RECITATION: 4,
  OTHER: 5,
  BLOCKLIST: 6,
  PROHIBITED_CONTENT: 7,
  SPII: 8,
  MALFORMED_FUNCTION_CALL: 9,
};

const readFinish = (chunk: Json): unknown => objects(chunk['candidates'])[0]?.['finishReason'];

const isSole = (chunks: readonly Json[]): boolean => chunks.every(({ candidates }) => objects(candidates).length <= 1);

/** Moves the finish reason to a chunk without content. */
const apart = (stream: WireStream): WireStream =>
  rewrite(stream, (chunks) =>
    chunks.flatMap((chunk) => {
      const [candidate, another] = objects(chunk['candidates']);
      if (!candidate || another || candidate['finishReason'] === undefined || readParts(candidate).length === 0) return [chunk];
      return [chunkLike(chunk, readParts(candidate)), { ...chunk, candidates: [without(candidate, 'content')] }];
    }),
  );

const hasContent = (part: Json): boolean =>
  part['text'] !== '' && (part['text'] !== undefined || part['functionCall'] !== undefined);

const FINISH = mutations('finish', ONLY, {
  'gemini/finish-apart': { title: 'finishReason in a chunk without content', apply: apart },
  'gemini/finish-on-every-chunk': {
    title: 'finishReason STOP on every chunk',
    rule: 'gemini/parts-after-finish',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        const isStop =
          isSole(chunks) && chunks.length > 1 && chunks.map(readFinish).findLast((reason) => reason !== undefined) === 'STOP';
        const hasMore = chunks
          .slice(1)
          .some(({ candidates }) => objects(candidates).some((candidate) => readParts(candidate).some(hasContent)));
        if (!isStop || !hasMore) return chunks;
        return chunks.map((chunk) => ({
          ...chunk,
          candidates: objects(chunk['candidates']).map((candidate) => ({ ...candidate, finishReason: 'STOP' })),
        }));
      }),
  },
  'gemini/finish-number': {
    title: 'finishReason is the number of its enum',
    rule: 'gemini/finish-reason-number',
    apply: (stream) =>
      editCandidates(stream, (candidate) => {
        const number = NUMBERS[String(candidate['finishReason'])];
        return number === undefined ? candidate : { ...candidate, finishReason: number };
      }),
  },
  'gemini/finish-unspecified': {
    title: 'finishReason FINISH_REASON_UNSPECIFIED on all chunks before the last',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        const last = chunks.findLastIndex((chunk) => readFinish(chunk) !== undefined);
        if (!isSole(chunks) || last < 1) return chunks;
        return chunks.map((chunk, at) =>
          at < last && readFinish(chunk) === undefined
            ? {
                ...chunk,
                candidates: objects(chunk['candidates']).map((candidate) => ({
                  ...candidate,
                  finishReason: 'FINISH_REASON_UNSPECIFIED',
                })),
              }
            : chunk,
        );
      }),
  },
  'gemini/finish-unknown': {
    title: 'finishReason is an undocumented value',
    loses: ['stop_details'],
    rule: 'gemini/unknown-finish-reason',
    apply: (stream) =>
      editCandidates(stream, (candidate) =>
        candidate['finishReason'] === 'STOP' ? { ...candidate, finishReason: 'DONE_FOR_NOW' } : candidate,
      ),
  },
});

const findUsage = (chunks: readonly Json[]): Json | undefined =>
  chunks.map(({ usageMetadata }) => usageMetadata).findLast(isObject);

/** Usage on every chunk replaces the one before, so only the last one has to be right. */
const USAGE = mutations('usage', ONLY, {
  'gemini/usage-only-last': {
    title: 'Usage on the last chunk only',
    apply: (stream) =>
      edit(stream, (chunk, at, chunks) => {
        const usage = findUsage(chunks);
        if (at < chunks.length - 1 || !usage) return without(chunk, 'usageMetadata');
        return chunk['usageMetadata'] === usage ? chunk : { ...chunk, usageMetadata: usage };
      }),
  },
  'gemini/usage-on-every-chunk': {
    title: 'Usage on every chunk, growing',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        const usage = findUsage(chunks);
        if (!usage) return chunks;
        const part = {
          promptTokenCount: usage['promptTokenCount'] ?? 0,
          candidatesTokenCount: 0,
          totalTokenCount: usage['promptTokenCount'] ?? 0,
        };
        return chunks.map((chunk, at) => ({ ...chunk, usageMetadata: at < chunks.length - 1 ? part : usage }));
      }),
  },
  'gemini/usage-apart': {
    title: 'Usage in a separate chunk at the end',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        const usage = findUsage(chunks);
        const last = chunks.at(-1);
        if (!usage || !last) return chunks;
        const { candidates, promptFeedback, ...rest } = last;
        return [...chunks.map((chunk) => without(chunk, 'usageMetadata')), { ...rest, usageMetadata: usage }];
      }),
  },
});

/** Mutations of the envelope, finish reason and usage. */
export const GEMINI_CHUNK_MUTATIONS: readonly Mutation[] = [...ENVELOPE, ...FINISH, ...USAGE];
