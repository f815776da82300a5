/** Mutations of the output items and content parts of OpenAI Responses. */

import { type Mutation, mutations, type Row } from '../mutation.ts';
import { edit, type Json, objects, rewrite, toText, without } from '../payloads.ts';
import {
  ADDED,
  collectItems,
  editItems,
  ITEM_DONE,
  type Item,
  isTerminal,
  leaveOut,
  onEvents,
  onItems,
  readItem,
  readResponse,
  readType,
  TEXT_DELTA,
} from './wire.ts';

const ONLY = ['openai-responses'] as const;

/** Items whose content is sent in deltas. */
const STREAMED = ['message', 'reasoning', 'function_call', 'custom_tool_call'];

/** Gives every event with an item id another id. */
const rotate: Row['apply'] = (stream) =>
  edit(stream, (event, at) => {
    const isAboutItem = 'item_id' in event || typeof readItem(event)['id'] === 'string';
    if (!isAboutItem) return event;
    const item = readItem(event);
    return {
      ...event,
      ...('item_id' in event && { item_id: `${event['item_id']}_${at}` }),
      ...('item' in event && { item: 'id' in item ? { ...item, id: `${item['id']}_${at}` } : item }),
    };
  });

/** Numbers the parts of an item from 1. */
const shiftParts: Row['apply'] = (stream) =>
  edit(stream, (event) =>
    typeof event['content_index'] === 'number' ? { ...event, content_index: event['content_index'] + 1 } : event,
  );

/** Counts the index of the only part of an item up with every delta and every done event, as vLLM did. */
const countParts: Row['apply'] = onItems(['message', 'reasoning'], ({ events }) => {
  const isPlaced = (event: Json): boolean => typeof event['content_index'] === 'number';
  const parts = events.filter((event) => readType(event) === 'response.content_part.added');
  const [first] = parts;
  const deltas = events.filter((event) => isPlaced(event) && /\.delta$/.test(readType(event)));
  if (parts.length !== 1 || first?.['content_index'] !== 0 || deltas.length === 0) return undefined;
  let index = 0;
  return events.map((event) =>
    isPlaced(event) && /\.(delta|done)$/.test(readType(event)) ? { ...event, content_index: ++index } : event,
  );
});

/** Sends the complete text of reasoning as that of a message. */
const reasoningAsText: Row['apply'] = onEvents(/^response\.reasoning_(summary_)?text\.done$/, (event) => ({
  ...without(event, 'summary_index'),
  type: 'response.output_text.done',
  content_index: 0,
  logprobs: [],
}));

/** Leaves out the events of the last item, which is then only in the final response. */
const onlyInOutput: Row['apply'] = (stream) =>
  rewrite(stream, (events) => {
    const items = collectItems(events);
    const last = items.at(-1);
    const final = events.find(isTerminal);
    const listed = final ? objects(readResponse(final)['output']) : [];
    const isListed = last && items.length > 1 && STREAMED.includes(last.type) && listed.length === items.length;
    return isListed ? events.filter(({ output_index: index }) => index !== last.index) : events;
  });

/** Leaves out `output_item.done`, where the final response has the items. */
const notDone =
  (isOne: (type: string) => boolean): Row['apply'] =>
  (stream) =>
    edit(stream, (event, _, events) => {
      const isListed = events.some((final) => isTerminal(final) && objects(readResponse(final)['output']).length > 0);
      return readType(event) === ITEM_DONE && isListed && isOne(toText(readItem(event)['type'])) ? [] : event;
    });

const ITEMS = mutations('content', ONLY, {
  'responses/item-ids-rotate': {
    title: 'Every event has a different item_id',
    rule: 'responses/item-id-rotates',
    apply: rotate,
  },
  'responses/no-item-ids': {
    title: 'Events have an output_index but no item_id',
    apply: onEvents(/./, (event) => without(event, 'item_id')),
  },
  'responses/no-output-index': {
    title: 'Events have no output_index',
    rule: 'responses/output-index-missing',
    apply: onEvents(/./, (event) => without(event, 'output_index')),
  },
  'responses/output-index-zero': {
    title: 'Every item has output_index 0',
    rule: 'responses/output-index-reused',
    apply: (stream) =>
      editItems(stream, (item, items) =>
        items.length > 1 ? item.events.map((event) => ({ ...event, output_index: 0 })) : undefined,
      ),
  },
  'responses/output-index-gaps': {
    title: 'Output indexes have gaps',
    apply: (stream) =>
      edit(stream, (event) =>
        typeof event['output_index'] === 'number' ? { ...event, output_index: event['output_index'] * 2 + 1 } : event,
      ),
  },
  'responses/not-added': {
    title: 'Items are used without output_item.added',
    rule: 'responses/item-not-added',
    apply: onItems(STREAMED, ({ events, added }) => events.filter((event) => event !== added)),
  },
  'responses/added-late': {
    title: 'Messages are added after their first delta',
    rule: 'responses/item-added-late',
    apply: onItems(['message'], ({ events, added }) => {
      const at = events.findIndex((event) => readType(event) === TEXT_DELTA);
      if (at < 0) return undefined;
      return [...events.slice(1, at + 1), added, ...events.slice(at + 1)];
    }),
  },
  'responses/not-done': {
    title: 'No output_item.done for messages, reasoning and calls',
    // OpenAI encrypts reasoning again for the final response, so its ciphertext differs but is equally valid. The
    // decoder holds text back until the calls before it are done, so it may come after calls that follow it.
    loses: ['signatures', 'blocks'],
    rule: 'responses/item-not-done',
    apply: notDone((type) => STREAMED.includes(type)),
  },
  'responses/server-items-not-done': {
    title: 'No output_item.done for server-side tools',
    // A compaction is only a ciphertext, which differs in the final response.
    apply: notDone((type) => !STREAMED.includes(type) && type !== 'compaction'),
  },
  'responses/only-done': {
    title: 'Items come only in output_item.done',
    loses: ['logprobs'],
    rule: 'responses/item-not-added',
    apply: onItems(STREAMED, ({ done }) => [done]),
  },
  'responses/only-in-output': {
    title: 'The last item comes only in the final response',
    rule: 'responses/item-only-in-output',
    apply: onlyInOutput,
  },
  'responses/done-elsewhere': {
    title: 'output_item.done has another output_index',
    rule: 'responses/output-index-differs',
    apply: onEvents(ITEM_DONE, (event) => ({ ...event, output_index: Number(event['output_index']) + 100 })),
  },
  'responses/done-twice': {
    title: 'Every item is done twice',
    rule: 'responses/item-repeated',
    apply: onEvents(ITEM_DONE, (event) => [event, { ...event }]),
  },
  'responses/added-twice': {
    title: 'Every item is added twice',
    rule: 'responses/item-repeated',
    apply: onEvents(ADDED, (event) => [event, { ...event }]),
  },
});

const PART_ADDED = /^response\.(content_part|reasoning_summary_part)\.added$/;

/** Starts a message before the reasoning before it is done. */
const overlap: Row['apply'] = (stream) =>
  editItems(stream, (item, items) => {
    const place = items.indexOf(item);
    const [before, after] = [items[place - 1], items[place + 1]];
    const lends = (one: Item | undefined, next: Item | undefined): boolean =>
      one?.type === 'reasoning' && next?.type === 'message' && next.events.some((event) => readType(event) === TEXT_DELTA);
    if (!lends(before, item) && !lends(item, after)) return undefined;
    const own = lends(item, after) ? item.events.filter((event) => event !== item.done) : [...item.events];
    const borrowed = lends(before, item) && before ? [before.done] : [];
    const at = 1 + own.findIndex((event) => readType(event) === TEXT_DELTA);
    return [...own.slice(0, at), ...borrowed, ...own.slice(at)];
  });

/** The field with the whole text in a done event. */
const WHOLE: Record<string, string> = { 'response.output_text.done': 'text', 'response.refusal.done': 'refusal' };

const PARTS = mutations('content', ONLY, {
  'responses/parts-not-added': {
    title: 'No content_part.added: parts begin with their first delta',
    rule: 'responses/part-not-added',
    apply: leaveOut(PART_ADDED),
  },
  'responses/parts-from-one': { title: 'content_index starts at 1', apply: shiftParts },
  'responses/parts-counted-up': {
    title: 'content_index counts up with every event',
    rule: 'responses/part-index-differs',
    apply: countParts,
  },
  'responses/reasoning-done-as-text': {
    title: 'The complete text of reasoning comes in output_text.done',
    rule: 'responses/text-of-another-kind',
    apply: reasoningAsText,
  },
  'responses/parts-not-done': {
    title: 'No content_part.done',
    apply: leaveOut(/^response\.(content_part|reasoning_summary_part)\.done$/),
  },
  'responses/texts-not-done': {
    title: 'No output_text.done',
    apply: leaveOut(/^response\.(output_text|refusal|reasoning_text|reasoning_summary_text)\.done$/),
  },
  'responses/texts-only-done': {
    title: 'Texts come only in output_text.done',
    rule: 'responses/deltas-missing',
    apply: (stream) =>
      edit(stream, (event, _, events) => {
        const type = readType(event);
        const hasDone = events.some(
          (other) => readType(other) === type.replace(/delta$/, 'done') && other['output_index'] === event['output_index'],
        );
        return /^response\.(output_text|refusal)\.delta$/.test(type) && hasDone && !event['logprobs']?.toString() ? [] : event;
      }),
  },
  'responses/last-delta-lost': {
    title: 'The last delta of a text is missing, output_text.done has the whole text',
    loses: ['logprobs'],
    rule: 'responses/done-longer',
    apply: (stream) =>
      edit(stream, (event, at, events) => {
        const next = events[at + 1];
        const isLast =
          readType(event) === TEXT_DELTA && next && WHOLE[readType(next)] === 'text' && toText(event['delta']) !== '';
        const hasMore =
          events.filter((other) => readType(other) === TEXT_DELTA && other['output_index'] === event['output_index']).length > 1;
        return isLast && hasMore ? [] : event;
      }),
  },
  'responses/done-differs': {
    title: 'The text of the done event differs from the deltas',
    rule: 'responses/done-differs',
    apply: (stream) =>
      edit(stream, (event, at, events) => {
        const before = events[at - 1];
        const isDone = readType(event) === 'response.output_text.done' && before && readType(before) === TEXT_DELTA;
        return isDone ? { ...event, text: `# ${toText(event['text'])}` } : event;
      }),
  },
  'responses/texts-in-halves': {
    title: 'Every delta is split in two, at any UTF-16 code unit',
    apply: (stream, random) =>
      edit(stream, (event) => {
        const text = toText(event['delta']);
        if (
          !/\.delta$/.test(readType(event)) ||
          /audio/.test(readType(event)) ||
          text.length < 2 ||
          objects(event['logprobs']).length > 0
        )
          return event;
        const at = 1 + Math.floor(random() * (text.length - 1));
        return [text.slice(0, at), text.slice(at)].map((delta): Json => ({ ...event, delta }));
      }),
  },
  'responses/overlap': {
    title: 'A message begins before the reasoning is done',
    rule: 'responses/items-overlap',
    apply: overlap,
  },
});

/** Mutations of output items and content parts. */
export const RESPONSES_ITEM_MUTATIONS: readonly Mutation[] = [...ITEMS, ...PARTS];
