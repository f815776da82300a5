/** Mutations of the content, reasoning and roles of OpenAI Chat. */

import { type Mutation, mutations, type WireStream } from '../mutation.ts';
import { edit, isObject, type Json, objects, rewrite, without } from '../payloads.ts';
import type { Random } from '../random.ts';
import { chunkLike, editChoices, editDeltas } from './wire.ts';

const REASONING = 'reasoning_content';

/** Fields of a delta that are appended to. */
const TEXTS = ['content', 'refusal', REASONING, 'reasoning'];

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** Replaces the reasoning field by the fields of `rename`. */
function renameReasoning(stream: WireStream, rename: (text: string) => Json): WireStream {
  return editDeltas(stream, (delta) => {
    const text = delta[REASONING];
    return isText(text) && !('reasoning' in delta) ? { ...without(delta, REASONING), ...rename(text) } : delta;
  });
}

/** The text of a chunk whose only content is one text of one delta. */
function soleText(chunk: Json): { key: string; text: string; choice: Json } | undefined {
  const [choice, another] = objects(chunk['choices']);
  const delta = choice?.['delta'];
  if (another || !choice || !isObject(delta) || choice['finish_reason'] !== null || choice['logprobs'] || chunk['usage'])
    return undefined;
  const [key, second] = Object.keys(delta);
  const text = delta[key ?? ''];
  return key !== undefined && second === undefined && TEXTS.includes(key) && isText(text) ? { key, text, choice } : undefined;
}

/** Splits every text in two, between any two UTF-16 code units. */
function halve(stream: WireStream, random: Random): WireStream {
  return edit(stream, (chunk) => {
    const sole = soleText(chunk);
    if (!sole || sole.text.length < 2) return chunk;
    const at = 1 + Math.floor(random() * (sole.text.length - 1));
    return [sole.text.slice(0, at), sole.text.slice(at)].map((text) => chunkLike(chunk, sole.choice, { [sole.key]: text }));
  });
}

/** Joins neighbouring texts of the same field. */
function merge(stream: WireStream): WireStream {
  return rewrite(stream, (chunks) => {
    const merged: Json[] = [];
    for (const chunk of chunks) {
      const [now, before] = [soleText(chunk), merged.length > 0 ? soleText(merged.at(-1) ?? {}) : undefined];
      const isSame = now && before && now.key === before.key && now.choice['index'] === before.choice['index'];
      if (isSame) merged.push(chunkLike(merged.pop() ?? chunk, now.choice, { [now.key]: before.text + now.text }));
      else merged.push(chunk);
    }
    return merged;
  });
}

const finishes = (choice: Json): boolean => typeof choice['finish_reason'] === 'string';

const OTHER_CONTENT = ['tool_calls', 'function_call', 'refusal', 'reasoning', REASONING, 'reasoning_details', 'audio', 'images'];

/** The text of a stream that has one choice and nothing but text. */
function textOnly(chunks: readonly Json[]): string | undefined {
  const choices = chunks.flatMap((chunk) => objects(chunk['choices']));
  const deltas = choices.map(({ delta }) => (isObject(delta) ? delta : {}));
  const isOther = (delta: Json): boolean => OTHER_CONTENT.some((key) => delta[key]) || isObject(delta['content']);
  if (choices.some(({ index, logprobs, message }) => index !== 0 || logprobs || message) || deltas.some(isOther))
    return undefined;
  const text = deltas.map(({ content }) => (isText(content) ? content : '')).join('');
  return text === '' ? undefined : text;
}

/**
 * Puts the whole message on the chunk with the finish reason, beside the deltas or in place of them, like servers that
 * only pretend to stream.
 */
function wholeMessage(stream: WireStream, hasDeltas: boolean, object = 'chat.completion'): WireStream {
  return rewrite(stream, (chunks) => {
    const content = textOnly(chunks);
    if (content === undefined) return chunks;
    const message = { role: 'assistant', content };
    return chunks.flatMap((chunk) => {
      const [choice] = objects(chunk['choices']);
      const isEnd = choice !== undefined && finishes(choice);
      if (isEnd && (!hasDeltas || isBlank(choice['delta'])))
        return [{ ...chunk, object, choices: [{ ...without(choice, 'delta'), message }] }];
      if (hasDeltas) return [chunk];
      return chunk['usage'] ? [{ ...chunk, choices: [] }] : [];
    });
  });
}

const isBlank = (delta: unknown): boolean => isObject(delta) && Object.keys(delta).length === 0;

/** Mutations of the content, reasoning and roles. */
export const CHAT_CONTENT_MUTATIONS: readonly Mutation[] = mutations('content', ['openai-chat'], {
  'chat/role-everywhere': {
    title: 'The role on every delta',
    apply: (stream) => editDeltas(stream, (delta) => ({ ...delta, role: 'assistant' })),
  },
  'chat/role-blank': {
    title: 'The role is "" on later deltas',
    rule: 'chat/role-blank',
    apply: (stream) => editDeltas(stream, (delta) => ('role' in delta ? delta : { ...delta, role: '' })),
  },
  'chat/role-null': {
    title: 'The role is null on later deltas',
    apply: (stream) => editDeltas(stream, (delta) => ('role' in delta ? delta : { ...delta, role: null })),
  },
  'chat/role-missing': { title: 'No role', apply: (stream) => editDeltas(stream, (delta) => without(delta, 'role')) },
  'chat/content-empty-everywhere': {
    title: 'content is "" on all deltas without text',
    apply: (stream) => editDeltas(stream, (delta) => ('content' in delta ? delta : { ...delta, content: '' })),
  },
  'chat/content-null-everywhere': {
    title: 'content is null on all deltas without text',
    apply: (stream) => editDeltas(stream, (delta) => (isText(delta['content']) ? delta : { ...delta, content: null })),
  },
  'chat/every-field': {
    title: 'Every field of the struct is sent, most of them null',
    apply: (stream) =>
      editDeltas(stream, (delta) => ({
        role: null,
        content: null,
        refusal: null,
        function_call: null,
        tool_calls: null,
        audio: null,
        ...delta,
      })),
  },
  'chat/content-parts': {
    title: 'content is a list of parts',
    rule: 'chat/content-parts',
    apply: (stream) =>
      editDeltas(stream, (delta) =>
        isText(delta['content']) ? { ...delta, content: [{ type: 'text', text: delta['content'] }] } : delta,
      ),
  },
  'chat/content-one-part': {
    title: 'content is one part, not a list',
    rule: 'chat/content-parts',
    apply: (stream) =>
      editDeltas(stream, (delta) =>
        isText(delta['content']) ? { ...delta, content: { type: 'text', text: delta['content'] } } : delta,
      ),
  },
  'chat/texts-in-halves': { title: 'Every text is split in two, at any UTF-16 code unit', apply: halve },
  'chat/texts-merged': { title: 'Adjacent texts are merged into one chunk', apply: merge },
  'chat/reasoning': {
    title: 'Reasoning in the field reasoning',
    apply: (stream) => renameReasoning(stream, (reasoning) => ({ reasoning })),
  },
  'chat/reasoning-text': {
    title: 'Reasoning in the field reasoning_text',
    apply: (stream) => renameReasoning(stream, (text) => ({ reasoning_text: text })),
  },
  'chat/reasoning-twice': {
    title: 'Reasoning in two fields at once',
    rule: 'chat/reasoning-twice',
    apply: (stream) => renameReasoning(stream, (text) => ({ reasoning: text, [REASONING]: text })),
  },
  'chat/reasoning-parts': {
    title: 'Reasoning as a part of content',
    rule: 'chat/content-parts',
    apply: (stream) =>
      editDeltas(stream, (delta) => {
        const text = delta[REASONING];
        if (!isText(text) || delta['content']) return delta;
        return { ...without(delta, REASONING), content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] };
      }),
  },
  'chat/delta-null': {
    title: 'delta is null on the chunk with finish_reason',
    rule: 'chat/delta-missing',
    apply: (stream) =>
      editChoices(stream, (choice) => (finishes(choice) && isBlank(choice['delta']) ? { ...choice, delta: null } : choice)),
  },
  'chat/delta-missing': {
    title: 'No delta on the chunk with finish_reason',
    rule: 'chat/delta-missing',
    apply: (stream) =>
      editChoices(stream, (choice) => (finishes(choice) && isBlank(choice['delta']) ? without(choice, 'delta') : choice)),
  },
  'chat/message-at-the-end': {
    title: 'The whole message is repeated next to finish_reason',
    rule: 'chat/message-instead-of-delta',
    apply: (stream) => wholeMessage(stream, true),
  },
  'chat/message-in-a-chunk': {
    title: 'A chunk has the whole message and no delta',
    rule: 'chat/message-instead-of-delta',
    apply: (stream) => wholeMessage(stream, false, 'chat.completion.chunk'),
  },
  'chat/text-completion': {
    title: 'The text is in choices[].text, as in legacy completions',
    rule: 'chat/text-completion',
    apply: (stream) =>
      rewrite(stream, (chunks) => {
        if (textOnly(chunks) === undefined) return chunks;
        return chunks.map((chunk) => ({
          ...chunk,
          object: 'text_completion',
          choices: objects(chunk['choices']).map(({ delta, ...choice }) => ({
            ...choice,
            text: (isObject(delta) && delta['content']) || '',
          })),
        }));
      }),
  },
  'chat/message-only': {
    title: 'The whole message is next to finish_reason, without a delta',
    apply: (stream) => wholeMessage(stream, false),
  },
});
