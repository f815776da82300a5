/** Mutations of the finish reason and the envelope of OpenAI Chat. */

import { type Mutation, mutations, type WireStream } from '../mutation.ts';
import { edit, hasDone, insertAtRandom, isObject, type Json, objects, rewrite, without } from '../payloads.ts';
import { chunkLike, editChoices } from './wire.ts';

const ONLY = ['openai-chat'] as const;

const readFinish = (choice: Json): string | undefined => {
  const { finish_reason: reason } = choice;
  return typeof reason === 'string' ? reason : undefined;
};

/** Replaces finish reasons. */
const finishAs = (words: Readonly<Record<string, string>>) => (stream: WireStream) =>
  editChoices(stream, (choice) => {
    const word = words[readFinish(choice) ?? ''];
    return word === undefined ? choice : { ...choice, finish_reason: word };
  });

/**
 * Whether the finish reasons only mark the end: other ones would be lost without them, or with another one before them.
 */
const isOrdinary = (chunks: readonly Json[]): boolean => {
  const reasons = chunks.flatMap(({ choices }) => objects(choices).flatMap((choice) => readFinish(choice) ?? []));
  return reasons.length > 0 && reasons.every((reason) => reason === 'stop' || reason === 'tool_calls');
};

/** Adds the finish reason to the chunk before it, too. */
function early(stream: WireStream): WireStream {
  return edit(stream, (chunk, at, chunks) => {
    const [next] = objects(chunks[at + 1]?.['choices']);
    const [choice, another] = objects(chunk['choices']);
    const reason = next && readFinish(next);
    if (!choice || another || reason === undefined || next?.['index'] !== choice['index'] || readFinish(choice)) return chunk;
    return { ...chunk, choices: [{ ...choice, finish_reason: reason }] };
  });
}

const FINISH = mutations('finish', ONLY, {
  'chat/finish-empty': {
    title: 'finish_reason is "" on all chunks but the last',
    rule: 'chat/finish-empty',
    apply: (stream) =>
      editChoices(stream, (choice) => (readFinish(choice) === undefined ? { ...choice, finish_reason: '' } : choice)),
  },
  'chat/finish-absent': {
    title: 'finish_reason is omitted where it would be null',
    apply: (stream) =>
      editChoices(stream, (choice) => (readFinish(choice) === undefined ? without(choice, 'finish_reason') : choice)),
  },
  'chat/finish-stop-with-calls': {
    title: 'finish_reason is "stop" although there are calls',
    rule: 'chat/finish-stop-with-calls',
    apply: finishAs({ tool_calls: 'stop' }),
  },
  'chat/finish-other-words': {
    title: 'finish_reason has a value of another protocol',
    rule: 'chat/finish-nonstandard',
    apply: finishAs({ stop: 'eos', tool_calls: 'tool_use', length: 'max_tokens', content_filter: 'sensitive' }),
  },
  'chat/finish-function-call': {
    title: 'finish_reason is the deprecated "function_call"',
    apply: finishAs({ tool_calls: 'function_call' }),
  },
  'chat/finish-twice': {
    title: 'finish_reason is on two chunks',
    rule: 'chat/finish-repeated',
    apply: (stream) =>
      edit(stream, (chunk) => {
        const [choice, another] = objects(chunk['choices']);
        const reason = choice && !another && readFinish(choice);
        if (!reason) return chunk;
        const { choices, ...rest } = chunkLike(chunk, choice, {});
        return [chunk, { ...rest, choices: objects(choices).map((again) => ({ ...again, finish_reason: reason })) }];
      }),
  },
  'chat/finish-on-the-last-content': {
    title: 'finish_reason is also on the chunk before the last',
    rule: 'chat/finish-repeated',
    apply: early,
  },
  'chat/finish-before-content': {
    title: 'finish_reason comes before the last piece of the text',
    rule: 'chat/content-after-finish',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        const end = chunks.findIndex(({ choices }) => objects(choices).some((choice) => readFinish(choice) !== undefined));
        const [before, finish] = [chunks[end - 1], chunks[end]];
        const [choice, another] = objects(before?.['choices']);
        const delta = choice?.['delta'];
        const isText = isObject(delta) && typeof delta['content'] === 'string' && delta['content'] !== '';
        const [last] = objects(finish?.['choices']);
        const isEmpty = isObject(last?.['delta']) && !last['delta']['content'] && last['index'] === choice?.['index'];
        if (!before || !finish || !isText || !isEmpty || another || !isOrdinary(chunks)) return chunks;
        return [...chunks.slice(0, end - 1), finish, before, ...chunks.slice(end + 1)];
      }),
  },
  'chat/finish-then-null': {
    title: 'A chunk without finish_reason follows the one with it',
    apply: (stream) =>
      edit(stream, (chunk) => {
        const [choice, another] = objects(chunk['choices']);
        return choice && !another && readFinish(choice) ? [chunk, chunkLike(chunk, choice, { content: '' })] : chunk;
      }),
  },
  'chat/finish-on-every-chunk': {
    title: 'finish_reason is "stop" on every chunk',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        if (!isOrdinary(chunks)) return chunks;
        return chunks.map((chunk) => ({
          ...chunk,
          choices: objects(chunk['choices']).map((choice) => ({ ...choice, finish_reason: readFinish(choice) ?? 'stop' })),
        }));
      }),
  },
  'chat/finish-missing': {
    title: 'No finish_reason, but [DONE]',
    rule: 'chat/finish-missing',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        if (!isOrdinary(chunks) || !hasDone(stream)) return chunks;
        return chunks.map((chunk) => ({
          ...chunk,
          choices: objects(chunk['choices']).map((choice) => ({ ...choice, finish_reason: null })),
        }));
      }),
  },
});

const ENVELOPE = mutations('envelope', ONLY, {
  'chat/id-missing': {
    title: 'Chunks have no id',
    loses: ['id'],
    rule: 'chat/id-missing',
    apply: (stream) => edit(stream, (chunk) => without(chunk, 'id')),
  },
  'chat/envelope-missing': {
    title: 'Chunks have choices and nothing else',
    loses: ['id', 'model'],
    rule: 'chat/id-missing',
    apply: (stream) =>
      edit(stream, (chunk) => without(chunk, 'id', 'object', 'created', 'model', 'system_fingerprint', 'service_tier')),
  },
  'chat/id-varies': {
    title: 'Every chunk has a different id',
    rule: 'chat/id-varies',
    apply: (stream) =>
      edit(stream, (chunk, at, chunks) => {
        const first = chunks.findIndex(({ id }) => id);
        return at > first && chunk['id'] ? { ...chunk, id: `${chunk['id']}-${at}` } : chunk;
      }),
  },
  'chat/object-missing': {
    title: 'Chunks have no "object" field',
    apply: (stream) => edit(stream, (chunk) => without(chunk, 'object')),
  },
  'chat/choice-index-missing': {
    title: 'The only choice has no index',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        const isOne = chunks.every(({ choices }) => objects(choices).every(({ index }) => index === 0));
        if (!isOne) return chunks;
        return chunks.map((chunk) => ({
          ...chunk,
          choices: objects(chunk['choices']).map((choice) => without(choice, 'index')),
        }));
      }),
  },
  'chat/empty-choices': {
    title: 'Chunks with empty choices as keep-alives',
    apply: (stream, random) => insertAtRandom(stream, random, (chunk) => ({ ...without(chunk, 'usage'), choices: [] })),
  },
  'chat/foreign-ping': {
    title: 'Anthropic ping events',
    rule: 'chat/choices-missing',
    apply: (stream, random) => insertAtRandom(stream, random, () => ({ type: 'ping' })),
  },
  'chat/filter-results-first': {
    title: 'A chunk with filter results and a blank envelope comes first',
    apply: (stream) => ({
      ...stream,
      frames: [
        { data: '{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}' },
        ...stream.frames,
      ],
    }),
  },
  'chat/filter-offsets-last': {
    title: 'A choice without a delta after finish_reason, in a blank envelope',
    rule: 'chat/delta-missing',
    apply: (stream) =>
      rewrite(stream, (chunks) => [
        ...chunks,
        {
          id: '',
          object: '',
          created: 0,
          model: '',
          choices: [{ index: 0, finish_reason: null, content_filter_offsets: { check_offset: 0 } }],
        },
      ]),
  },
});

/** Mutations of the finish reason and the envelope. */
export const CHAT_END_MUTATIONS: readonly Mutation[] = [...FINISH, ...ENVELOPE];
