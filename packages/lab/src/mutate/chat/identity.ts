/** Mutations of the ids, indexes and names of tool calls of OpenAI Chat. */

import { type Mutation, mutations, type Row } from '../mutation.ts';
import { type Json, without } from '../payloads.ts';
import { type CallPlace, editCalls, readArguments, readName, type WholeCall, withFunction, withoutFunction } from './wire.ts';

/** Changes later deltas of a call; by the standard they have neither id nor name. */
const later =
  (change: (entry: Json, place: CallPlace) => Json): Row['apply'] =>
  (stream) =>
    editCalls(stream, (entry, place) => (place.at > 0 ? change(entry, place) : entry));

const opener =
  (change: (entry: Json, place: CallPlace) => Json | Json[]): Row['apply'] =>
  (stream) =>
    editCalls(stream, (entry, place) => (place.at === 0 ? change(entry, place) : entry));

const every =
  (change: (entry: Json, place: CallPlace) => Json | Json[]): Row['apply'] =>
  (stream) =>
    editCalls(stream, change);

/** Changes only calls that follow each other: without useful indexes, no other calls can be told apart. */
const sequential =
  (change: (entry: Json, place: CallPlace) => Json | Json[]): Row['apply'] =>
  (stream) =>
    editCalls(stream, (entry, place) => (place.call.isSequential ? change(entry, place) : entry));

const hasSiblings = ({ siblings }: WholeCall): boolean => siblings.length > 1;

/**
 * Calls identified only by their names need different names and non-empty arguments: nothing else marks where one ends.
 */
const areDistinct = ({ siblings }: WholeCall): boolean =>
  siblings.every((call, at) => call.arguments !== '' && call.name !== siblings[at + 1]?.name);

/** Splits a name so that the second piece looks neither like the whole name repeated nor like an empty name. */
function splitName(name: string): [string, string] | undefined {
  for (let at = Math.floor(name.length / 2); at > 0; at--) {
    const [head, tail] = [name.slice(0, at), name.slice(at)];
    if (!tail.startsWith(head) && !BLANKS.has(tail) && !BLANKS.has(head) && head.trim() !== '' && tail.trim() !== '')
      return [head, tail];
  }
  return undefined;
}

const BLANKS = new Set(['null', 'None', 'undefined']);

/** How servers identify the call that a delta belongs to. */
const IDS = mutations('calls', ['openai-chat'], {
  'chat/ids-blank': {
    title: 'Later deltas of a call carry id ""',
    rule: 'chat/tool-id-empty',
    apply: later((entry) => ({ ...entry, id: '' })),
  },
  'chat/ids-null': {
    title: 'Later deltas of a call carry id, type and name null',
    rule: 'chat/tool-id-empty',
    apply: later((entry) => ({ ...withFunction(entry, { name: null }), id: null, type: null })),
  },
  'chat/ids-the-word-null': {
    title: 'Later deltas of a call carry the string "null" as id',
    rule: 'chat/tool-id-empty',
    apply: later((entry) => ({ ...entry, id: 'null' })),
  },
  'chat/ids-repeated': {
    title: 'Every delta of a call carries its id',
    apply: later((entry, { call }) => ({ ...entry, id: call.id })),
  },
  'chat/ids-and-names-repeated': {
    title: 'Every delta of a call carries id, type and name',
    rule: 'chat/tool-name-repeated',
    apply: later((entry, { call }) => ({ ...withFunction(entry, { name: call.name }), id: call.id, type: 'function' })),
  },
  'chat/ids-new-on-every-delta': {
    title: 'Every delta of a call carries a different id; only the first is correct',
    apply: later((entry, { call, at }) => ({ ...entry, id: `${call.id}-${at}` })),
  },
  'chat/ids-never': {
    title: 'Calls have an index and no id',
    loses: ['call_ids'],
    rule: 'chat/tool-id-missing',
    apply: every((entry) => without(entry, 'id')),
  },
  'chat/ids-all-blank': {
    title: 'Every id is ""',
    loses: ['call_ids'],
    rule: 'chat/tool-id-missing',
    apply: every((entry) => ({ ...entry, id: '' })),
  },
  'chat/ids-numbers': {
    title: 'Ids are numbers',
    loses: ['call_ids'],
    rule: 'chat/tool-id-number',
    apply: opener((entry, { call }) => ({ ...entry, id: 40 + call.position })),
  },
  'chat/ids-equal': {
    title: 'All calls share one id',
    loses: ['call_ids'],
    rule: 'chat/tool-id-duplicate',
    apply: opener((entry, { call }) => (hasSiblings(call) ? { ...entry, id: call.siblings[0]?.id } : entry)),
  },
  'chat/ids-late': {
    title: 'A delta with only an index opens the call, id and name follow',
    apply: opener((entry) => [{ index: entry['index'] }, entry]),
  },
  'chat/ids-after-the-name': {
    title: 'The id comes in the second delta, with the name again',
    apply: opener((entry) => [without(withFunction(entry, { arguments: '' }), 'id'), entry]),
  },
  'chat/ids-after-the-arguments': {
    title: 'The id comes with the last delta of the call',
    apply: every((entry, { call, at, isLast }) => {
      if (call.deltas < 2 || (at > 0 && !isLast)) return entry;
      return isLast ? { ...entry, id: call.id } : without(entry, 'id');
    }),
  },
});

const INDEXES = mutations('calls', ['openai-chat'], {
  'chat/index-missing': {
    title: 'Deltas have no index',
    rule: 'chat/tool-index-missing',
    apply: sequential((entry) => without(entry, 'index')),
  },
  'chat/index-missing-ids-repeated': {
    title: 'Deltas have no index, but each has the id of its call',
    rule: 'chat/tool-index-missing',
    apply: every((entry, { call }) => ({ ...without(entry, 'index'), id: call.id })),
  },
  'chat/index-only-first': {
    title: 'Only the first delta of a call has an index',
    apply: (stream) =>
      editCalls(stream, (entry, { call, at }) => (call.isSequential && at > 0 ? without(entry, 'index') : entry)),
  },
  'chat/index-text': {
    title: 'Indexes are strings',
    rule: 'chat/tool-index-string',
    apply: every((entry) => ({ ...entry, index: String(entry['index']) })),
  },
  'chat/index-negative': {
    title: 'Indexes are negative',
    rule: 'chat/tool-index-wild',
    // Calls are sorted by index, so their order stays the same.
    apply: every((entry, { call }) => ({ ...entry, index: call.position - call.siblings.length })),
  },
  'chat/index-gaps': {
    title: 'Indexes have gaps and begin above 0',
    apply: every((entry) => ({ ...entry, index: Number(entry['index']) * 3 + 1 })),
  },
  'chat/index-drifts': {
    title: 'Every piece of the arguments has a different index',
    apply: (stream) =>
      editCalls(stream, (entry, { call, at, before }) => {
        const isPiece = at > 0 && readArguments(entry).trim() !== '' && !isWhole(before);
        return isPiece && call.isSequential ? { ...entry, index: 1000 * (call.position + 1) + at } : entry;
      }),
  },
  'chat/index-zero': {
    title: 'Every call has index 0 and its own id',
    rule: 'chat/tool-index-reused',
    apply: sequential((entry, { call }) => (hasSiblings(call) ? { ...entry, index: 0 } : entry)),
  },
  'chat/index-zero-no-ids': {
    title: 'Every call has index 0 and no id; only the name separates them',
    loses: ['call_ids'],
    rule: 'chat/tool-index-reused',
    apply: sequential((entry, { call }) =>
      hasSiblings(call) && areDistinct(call) ? { ...without(entry, 'id'), index: 0 } : entry,
    ),
  },
});

const isWhole = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const NAMES = mutations('calls', ['openai-chat'], {
  'chat/names-repeated': {
    title: 'Every delta of a call carries its name',
    rule: 'chat/tool-name-repeated',
    apply: later((entry, { call }) => withFunction(entry, { name: call.name })),
  },
  'chat/names-blank': {
    title: 'Later deltas of a call carry name ""',
    rule: 'chat/tool-name-empty',
    apply: later((entry) => withFunction(entry, { name: '' })),
  },
  'chat/names-null': {
    title: 'Later deltas of a call carry name null',
    rule: 'chat/tool-name-empty',
    apply: later((entry) => withFunction(entry, { name: null })),
  },
  'chat/names-the-word-null': {
    title: 'Later deltas of a call carry the string "null" as name',
    rule: 'chat/tool-name-empty',
    apply: later((entry) => withFunction(entry, { name: 'null' })),
  },
  'chat/names-split': {
    title: 'The name comes in two pieces',
    rule: 'chat/tool-name-fragmented',
    apply: opener((entry) => {
      const [head, tail] = splitName(readName(entry)) ?? [];
      if (head === undefined) return entry;
      return [withFunction(entry, { name: head, arguments: '' }), without(withFunction(entry, { name: tail }), 'id', 'type')];
    }),
  },
  'chat/names-growing': {
    title: 'The name comes as growing snapshots',
    rule: 'chat/tool-name-fragmented',
    apply: opener((entry) => {
      const head = readName(entry).slice(0, 1);
      if (head === readName(entry) || head.trim() === '') return entry;
      return [withFunction(entry, { name: head, arguments: '' }), without(entry, 'id', 'type')];
    }),
  },
  'chat/names-split-by-arguments': {
    title: 'A piece of the name comes with the last piece of the arguments',
    rule: 'chat/tool-name-late',
    apply: every((entry, { call, at, isLast }) => {
      const [head, tail] = splitName(call.name) ?? [];
      const isOpenAtEnd = call.deltas > 2 && call.last.endsWith('}') && isWhole(call.arguments);
      if (head === undefined || !isOpenAtEnd || (at > 0 && !isLast)) return entry;
      return withFunction(entry, { name: isLast ? tail : head });
    }),
  },
  'chat/names-after-the-arguments': {
    title: 'The name comes with the last delta of the call',
    apply: every((entry, { call, at, isLast }) => {
      if (call.deltas < 2 || (at > 0 && !isLast)) return entry;
      return isLast ? withFunction(entry, { name: call.name }) : withoutFunction(entry, 'name');
    }),
  },
  'chat/names-never': {
    title: 'Calls have no name',
    loses: ['call_names'],
    rule: 'chat/tool-name-missing',
    apply: every((entry) => withoutFunction(entry, 'name')),
  },
});

/** Mutations of the ids, indexes and names of tool calls. */
export const CHAT_IDENTITY_MUTATIONS: readonly Mutation[] = [...IDS, ...INDEXES, ...NAMES];
