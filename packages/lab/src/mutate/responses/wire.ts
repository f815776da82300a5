/** The events of OpenAI Responses as mutations see them: types and output items. */

import type { Row, WireStream } from '../mutation.ts';
import { edit, isObject, type Json, rewrite, toText, within, withinEach } from '../payloads.ts';

/** The type of the event that starts an item. */
export const ADDED = 'response.output_item.added';

/** The type of the event that ends an item. */
export const ITEM_DONE = 'response.output_item.done';

const ARGUMENTS = 'response.function_call_arguments';

/** The type of the event with a piece of arguments. */
export const ARGUMENTS_DELTA = `${ARGUMENTS}.delta`;

/** The type of the event with the whole arguments. */
export const ARGUMENTS_DONE = `${ARGUMENTS}.done`;

/** The type of the event with a piece of text. */
export const TEXT_DELTA = 'response.output_text.delta';

/** The type of an event. */
export const readType = (event: Json): string => toText(event['type']);

/** Whether an event ends the response. */
export const isTerminal = (event: Json): boolean => /^response\.(completed|incomplete|failed)$/.test(readType(event));

/** The item of an event. */
export const readItem = (event: Json): Json => (isObject(event['item']) ? event['item'] : {});

/** The response of an event. */
export const readResponse = (event: Json): Json => (isObject(event['response']) ? event['response'] : {});

/** Changes the events of some types. */
export const onEvents =
  (types: string | RegExp, change: (event: Json, events: readonly Json[]) => Json | Json[]): Row['apply'] =>
  (stream) =>
    edit(stream, (event, _, events) => {
      const isOne = typeof types === 'string' ? readType(event) === types : types.test(readType(event));
      return isOne ? change(event, events) : event;
    });

/** Leaves out the events of some types. */
export const leaveOut = (types: RegExp): Row['apply'] => onEvents(types, () => []);

/** The events of one output item, in order. */
export interface Item {
  readonly index: number;
  readonly type: string;
  readonly events: readonly Json[];
  readonly added: Json;
  readonly done: Json;
}

/** The items of a stream in which each is added once and done once and none overlap; empty for any other stream. */
export function collectItems(events: readonly Json[]): Item[] {
  const indexes = [...new Set(events.map(({ output_index: index }) => index).filter((index) => typeof index === 'number'))];
  const items = indexes.flatMap((index) => {
    const own = events.filter(({ output_index: other }) => other === index);
    const [added, done] = [
      own.filter((event) => readType(event) === ADDED),
      own.filter((event) => readType(event) === ITEM_DONE),
    ];
    const [first, last] = [added[0], done[0]];
    if (!first || !last || added.length > 1 || done.length > 1 || own[0] !== first || own.at(-1) !== last) return [];
    return [{ index, type: toText(readItem(first)['type']), events: own, added: first, done: last }];
  });
  return items.length === indexes.length && isSequential(events, items) ? items : [];
}

const isSequential = (events: readonly Json[], items: readonly Item[]): boolean =>
  items.every(({ added, done, events: own }) => events.indexOf(done) - events.indexOf(added) + 1 === own.length);

/** Replaces the events of items of some types; undefined keeps an item. */
export const onItems =
  (types: readonly string[], change: (item: Item, items: readonly Item[]) => readonly Json[] | undefined): Row['apply'] =>
  (stream) =>
    editItems(stream, (item, items) => (types.includes(item.type) ? change(item, items) : undefined));

/** Replaces the events of items; undefined keeps an item. */
export function editItems(
  stream: WireStream,
  change: (item: Item, items: readonly Item[]) => readonly Json[] | undefined,
): WireStream {
  return rewrite(stream, (events) => {
    const items = collectItems(events);
    const changed = items.map((item) => change(item, items));
    if (changed.every((list) => list === undefined)) return events;
    const whole = new Map(items.map((item, at) => [item.added, changed[at] ?? item.events]));
    const inside = new Set(items.flatMap(({ events: own }) => own));
    return events.flatMap((event) => whole.get(event) ?? (inside.has(event) ? [] : [event]));
  });
}

/** Changes items wherever they are complete: when added, when done, in the final response. */
export const everyItem =
  (type: string, change: (item: Json, isDone: boolean) => Json): Row['apply'] =>
  (stream) =>
    edit(stream, (event) => {
      const changeOne = (item: Json): Json => (item['type'] === type ? change(item, readType(event) !== ADDED) : item);
      return within(within(event, 'item', changeOne), 'response', (response) => withinEach(response, 'output', changeOne));
    });
