/** Mutations of tool call arguments of OpenAI Chat. */

import { type Mutation, mutations, type Row } from '../mutation.ts';
import { isDocument, type Json, parseRoundTrip } from '../payloads.ts';
import { type CallPlace, editCalls, readArguments, withFunction } from './wire.ts';

/** Puts everything into the first delta of a call; the others get empty arguments. */
const whole =
  (change: (entry: Json, place: CallPlace) => Json): Row['apply'] =>
  (stream) =>
    editCalls(stream, (entry, place) => (place.at === 0 ? change(entry, place) : withFunction(entry, { arguments: '' })));

const ARGUMENTS = mutations('calls', ['openai-chat'], {
  'chat/arguments-in-opener': {
    title: 'The whole call in one delta, followed by empty ones',
    apply: whole((entry, { call }) => withFunction(entry, { arguments: call.arguments })),
  },
  'chat/arguments-object': {
    title: 'Arguments are an object',
    rule: 'chat/tool-args-object',
    apply: (stream) =>
      editCalls(stream, (entry, { call, at }) => {
        const value = parseRoundTrip(call.arguments);
        if (value === undefined) return entry;
        return withFunction(entry, { arguments: at === 0 ? value : null });
      }),
  },
  'chat/arguments-object-repeated': {
    title: 'Every delta has the arguments as an object',
    rule: 'chat/tool-args-object',
    apply: (stream) =>
      editCalls(stream, (entry, { call }) => {
        const value = parseRoundTrip(call.arguments);
        return value === undefined ? entry : withFunction(entry, { arguments: value });
      }),
  },
  'chat/arguments-null': {
    title: 'The first delta of a call has arguments null',
    rule: 'chat/tool-args-null',
    apply: (stream) =>
      editCalls(stream, (entry, { at }) =>
        at === 0 && readArguments(entry) === '' ? withFunction(entry, { arguments: null }) : entry,
      ),
  },
  'chat/arguments-cumulative': {
    title: 'Every piece repeats the arguments sent so far',
    rule: 'chat/tool-args-cumulative',
    apply: (stream) =>
      editCalls(stream, (entry, place) =>
        hasPieces(place) ? withFunction(entry, { arguments: place.before + readArguments(entry) }) : entry,
      ),
  },
  'chat/arguments-leading-empty-object': {
    title: 'The first delta of a call has arguments "{}", the real ones follow',
    rule: 'chat/tool-args-leading-empty-object',
    apply: (stream) =>
      editCalls(stream, (entry, place) => {
        const isOpener = place.at === 0 && readArguments(entry) === '' && isDocument(place.call.arguments);
        return isOpener ? withFunction(entry, { arguments: '{}' }) : entry;
      }),
  },
  'chat/arguments-sent-again': {
    title: 'The whole call is sent again at its end',
    rule: 'chat/tool-args-sent-again',
    apply: (stream) =>
      editCalls(stream, (entry, place) => {
        if (!place.isLast || !hasPieces(place)) return entry;
        const { id, name, arguments: text } = place.call;
        return [entry, { index: entry['index'], id, type: 'function', function: { name, arguments: text } }];
      }),
  },
  'chat/arguments-in-halves': {
    title: 'Every piece of the arguments is split in two, at any UTF-16 code unit',
    apply: (stream, random) =>
      editCalls(stream, (entry) => {
        const text = readArguments(entry);
        if (text.length < 2) return entry;
        const at = 1 + Math.floor(random() * (text.length - 1));
        const rest = { index: entry['index'], function: { arguments: text.slice(at) } };
        return [withFunction(entry, { arguments: text.slice(0, at) }), rest];
      }),
  },
  'chat/arguments-empty-at-the-end': {
    title: 'An empty piece follows the last one',
    apply: (stream) =>
      editCalls(stream, (entry, { isLast }) =>
        isLast ? [entry, { index: entry['index'], function: { arguments: '' } }] : entry,
      ),
  },
});

/** More than one piece, none of which is a document by itself. */
const hasPieces = ({ call }: CallPlace): boolean =>
  call.deltas > 2 && call.arguments.startsWith('{') && isDocument(call.arguments);

/** Mutations of tool call arguments. */
export const CHAT_ARGUMENT_MUTATIONS: readonly Mutation[] = ARGUMENTS;
