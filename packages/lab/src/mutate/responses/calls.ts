/** Mutations of the function calls of OpenAI Responses. */

import { type Mutation, mutations, type Row } from '../mutation.ts';
import {
  accumulateTexts,
  edit,
  isDocument,
  type Json,
  objects,
  parseRoundTrip,
  rewrite,
  toText,
  within,
  without,
} from '../payloads.ts';
import {
  ARGUMENTS_DELTA,
  ARGUMENTS_DONE,
  collectItems,
  everyItem,
  type Item,
  isTerminal,
  leaveOut,
  onEvents,
  onItems,
  readItem,
  readResponse,
  readType,
} from './wire.ts';

const ONLY = ['openai-responses'] as const;

const CALL = 'function_call';

const isDelta = (event: Json): boolean => readType(event) === ARGUMENTS_DELTA;

const readArguments = ({ done }: Item): string => toText(readItem(done)['arguments']);

/** Changes the argument deltas of calls with complete, non-empty arguments. */
const onPieces =
  (change: (deltas: readonly Json[], text: string) => readonly Json[]): Row['apply'] =>
  (stream, random) =>
    onItems([CALL], (item) => {
      const deltas = item.events.filter(isDelta);
      const [first] = deltas;
      if (!first || !isDocument(readArguments(item))) return undefined;
      const changed = change(deltas, readArguments(item));
      return item.events.flatMap((event) => (event === first ? [...changed] : isDelta(event) ? [] : [event]));
    })(stream, random);

const deltaLike = (event: Json, delta: string): Json => ({ ...event, delta });

/** Sends arguments as an object everywhere, in calls whose text JSON.stringify would write the same way again. */
const asObject: Row['apply'] = (stream) =>
  rewrite(stream, (events) => {
    const change = (item: Json): Json => {
      const value = item['type'] === CALL ? parseRoundTrip(toText(item['arguments'])) : undefined;
      return value ? { ...item, arguments: value } : item;
    };
    return events
      .filter((event) => !isDelta(event) || !parseRoundTrip(findWhole(event, events)))
      .map((event) => {
        const value = readType(event) === ARGUMENTS_DONE ? parseRoundTrip(toText(event['arguments'])) : undefined;
        if (value) return { ...event, arguments: value };
        const changed = within(event, 'item', change);
        return within(changed, 'response', (response) => {
          const output = objects(response['output']);
          return output.some((item) => change(item) !== item) ? { ...response, output: output.map(change) } : response;
        });
      });
  });

/** The arguments in the done event of the same item. */
const findWhole = (event: Json, events: readonly Json[]): string =>
  toText(
    events.find((other) => readType(other) === ARGUMENTS_DONE && other['output_index'] === event['output_index'])?.['arguments'],
  );

/** Puts all calls of the response into the arguments of one undeclared call. */
const wrap: Row['apply'] = (stream) =>
  rewrite(stream, (events) => {
    const items = collectItems(events);
    const calls = items.filter(({ type }) => type === CALL);
    const [first] = calls;
    const isLast = calls.length > 1 && items.slice(-calls.length).every(({ type }) => type === CALL);
    const uses = calls.map((call) => ({
      recipient_name: `functions.${readItem(call.done)['name']}`,
      parameters: parseRoundTrip(readArguments(call)),
    }));
    if (!first || !isLast || uses.some(({ parameters }) => !parameters)) return events;
    const text = JSON.stringify({ tool_uses: uses });
    const named = (item: Json, args: string): Json => ({ ...item, name: 'multi_tool_use.parallel', arguments: args });
    const place = { output_index: first.index, item_id: readItem(first.done)['id'] };
    const whole = named(readItem(first.done), text);
    const wrapper = [
      { ...first.added, item: named(readItem(first.added), '') },
      { type: ARGUMENTS_DELTA, ...place, delta: text },
      { type: ARGUMENTS_DONE, ...place, arguments: text },
      { ...first.done, item: whole },
    ];
    const inside = new Set(calls.flatMap(({ events: own }) => own));
    return events.flatMap((event) => {
      if (event === first.added) return wrapper;
      if (inside.has(event)) return [];
      if (!isTerminal(event)) return [event];
      const kept = objects(readResponse(event)['output']).filter(({ type }) => type !== CALL);
      return [within(event, 'response', (response) => ({ ...response, output: [...kept, whole] }))];
    });
  });

/**
 * Applies a mutation only to streams whose items do not overlap: overlapping calls that open late would change their
 * order.
 */
const oneByOne =
  (apply: Row['apply']): Row['apply'] =>
  (stream, random) => {
    let areSequential = false;
    rewrite(stream, (events) => {
      areSequential = collectItems(events).length > 0;
      return events;
    });
    return areSequential ? apply(stream, random) : stream;
  };

/** Leaves the names of calls out of all events but the last. They are handed out with it, so nothing may follow them. */
const nameInOutput: Row['apply'] = (stream, random) => {
  const nameless = onItems([CALL], (item, items) => {
    const isLast = items.slice(items.indexOf(item)).every(({ type }) => type === CALL);
    return isLast
      ? item.events.map((event) => within(without(event, 'name'), 'item', (call) => without(call, 'name')))
      : undefined;
  });
  const isListed = stream.frames.some(({ data }) => data.includes('"response.completed"') && data.includes(`"${CALL}"`));
  return isListed ? nameless(stream, random) : stream;
};

/** Mutations of function calls. */
export const RESPONSES_CALL_MUTATIONS: readonly Mutation[] = mutations('calls', ONLY, {
  'responses/arguments-only-done': {
    title: 'Arguments come only in function_call_arguments.done',
    rule: 'responses/deltas-missing',
    apply: (stream) => edit(stream, (event, _, events) => (isDelta(event) && isDocument(findWhole(event, events)) ? [] : event)),
  },
  'responses/arguments-not-done': {
    title: 'No function_call_arguments.done',
    apply: leaveOut(/^response\.function_call_arguments\.done$/),
  },
  'responses/arguments-in-added': {
    title: 'output_item.added contains the whole arguments, without deltas',
    apply: onItems([CALL], (item) => {
      if (!isDocument(readArguments(item))) return undefined;
      const added = { ...item.added, item: { ...readItem(item.added), arguments: readArguments(item) } };
      return item.events.flatMap((event) => (event === item.added ? [added] : isDelta(event) ? [] : [event]));
    }),
  },
  'responses/arguments-object': { title: 'Arguments are an object', rule: 'responses/arguments-object', apply: asObject },
  'responses/arguments-cumulative': {
    title: 'Every piece of the arguments repeats the previous ones',
    rule: 'responses/arguments-repeated',
    apply: (stream, random) =>
      onPieces((deltas) => {
        if (deltas.length < 2) return deltas;
        const texts = accumulateTexts(deltas.map((event) => toText(event['delta'])));
        return deltas.map((event, at) => deltaLike(event, texts[at] ?? ''));
      })(stream, random),
  },
  'responses/arguments-after-empty-object': {
    title: 'The first piece of the arguments is "{}"',
    rule: 'responses/arguments-repeated',
    apply: onPieces((deltas) => [...deltas.slice(0, 1).map((event) => deltaLike(event, '{}')), ...deltas]),
  },
  'responses/arguments-sent-again': {
    title: 'The whole arguments are sent again after the pieces',
    rule: 'responses/arguments-repeated',
    apply: onPieces((deltas, text) => [...deltas, ...deltas.slice(0, 1).map((event) => deltaLike(event, text))]),
  },
  'responses/call-ids-missing': {
    title: 'Calls have no call_id',
    loses: ['call_ids'],
    rule: 'responses/call-id-missing',
    apply: oneByOne(everyItem(CALL, (item) => without(item, 'call_id'))),
  },
  'responses/call-ids-late': {
    title: 'Calls get their call_id in output_item.done',
    apply: oneByOne(everyItem(CALL, (item, isDone) => (isDone ? item : without(item, 'call_id')))),
  },
  'responses/call-ids-differ': {
    title: 'Calls have another call_id in output_item.done and in the final response',
    rule: 'responses/call-id-differs',
    apply: everyItem(CALL, (item, isDone) => (isDone ? { ...item, call_id: `${item['call_id']}_done` } : item)),
  },
  'responses/call-ids-equal': {
    title: 'All calls share one call_id',
    loses: ['call_ids'],
    rule: 'responses/call-id-repeated',
    apply: oneByOne((stream, random) => {
      const ids = new Set<unknown>();
      everyItem(CALL, (item) => {
        ids.add(item['call_id']);
        return item;
      })(stream, random);
      return ids.size > 1 ? everyItem(CALL, (item) => ({ ...item, call_id: [...ids][0] }))(stream, random) : stream;
    }),
  },
  'responses/names-missing': {
    title: 'Calls have no name',
    // Calls without a name wait for the final response, so they come last.
    loses: ['call_names', 'call_order', 'blocks'],
    rule: 'responses/call-name-missing',
    apply: oneByOne((stream, random) =>
      onEvents(ARGUMENTS_DONE, (event) => without(event, 'name'))(
        everyItem(CALL, (item) => without(item, 'name'))(stream, random),
        random,
      ),
    ),
  },
  'responses/names-late': {
    title: 'Calls get their name in output_item.done',
    apply: oneByOne(everyItem(CALL, (item, isDone) => (isDone ? item : without(item, 'name')))),
  },
  'responses/names-in-output': {
    title: 'Calls at the end of the output get their name in the final response',
    rule: 'responses/call-name-late',
    apply: nameInOutput,
  },
  'responses/parallel-wrapper': {
    title: 'All calls are wrapped in multi_tool_use.parallel',
    loses: ['call_ids'],
    rule: 'responses/parallel-wrapper',
    apply: wrap,
  },
});
