/** The items of OpenAI Responses as clients send and list them. */

import { randomBytes } from 'node:crypto';
import { createCursorNotFound } from './errors.ts';
import type { Turn } from './turns.ts';

/** A JSON object. */
export type Json = Record<string, unknown>;

/** Whether a value is a JSON object. */
export const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The input of a request as items. Anything that is not an item is left for the codec to reject. */
export function readInput(input: unknown): unknown[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: input }] }];
  return Array.isArray(input) ? input : [];
}

/** The id that an item refers to; undefined for an item with content. An item with nothing but an id is a reference, too. */
export function readReference(item: unknown): string | undefined {
  if (!isJson(item) || typeof item['id'] !== 'string') return undefined;
  const { type } = item;
  const isBare = (type === undefined || type === null) && item['role'] === undefined;
  return type === 'item_reference' || isBare ? item['id'] : undefined;
}

/** The ids under which items are kept: their own, or new ones. Empty for references. */
export const nameItems = (items: readonly unknown[]): string[] =>
  items.map((item) => {
    if (!isJson(item) || readReference(item) !== undefined) return '';
    return typeof item['id'] === 'string' && item['id'] !== '' ? item['id'] : createId(findPrefix(item));
  });

/** A new id, such as `resp_…`, that nobody can guess. */
export const createId = (prefix: string): string => `${prefix}_${randomBytes(24).toString('hex')}`;

const findPrefix = ({ type }: Json): string => (typeof type === 'string' ? PREFIXES[type] : 'msg') ?? 'item';

const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  compaction: 'cmp',
};

/** The items of one turn, in order: the input, then the output. */
export function readItems({ input, body }: Pick<Turn, 'input' | 'body'>): unknown[] {
  return [...parseList(input), ...readOutput(body)];
}

/** The output items of a response object. */
function readOutput(body: string): unknown[] {
  const response = body === '' ? undefined : parse(body);
  const output = isJson(response) ? response['output'] : undefined;
  return Array.isArray(output) ? output : [];
}

const parseList = (text: string): unknown[] => {
  const value = parse(text);
  return Array.isArray(value) ? value : [];
};

/** Parses JSON. Undefined for anything else, such as a damaged file. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The turns of a conversation, the first one first. */
export function listTurns(last: Turn | undefined): Turn[] {
  const turns: Turn[] = [];
  for (let turn = last; turn; turn = turn.parent) turns.push(turn);
  return turns.reverse();
}

/** An item with the id under which it is kept. */
export interface NamedItem {
  id: string;
  item: unknown;
}

/** The items of some turns with their ids. */
export const listItems = (turns: readonly Turn[]): NamedItem[] =>
  turns.flatMap((turn) => readItems(turn).map((item, i) => ({ id: turn.ids[i] ?? '', item })));

/** An item as the API lists it: with id, type and status, and content as parts. */
export function toListed({ id, item }: NamedItem): unknown {
  if (!isJson(item)) return item;
  const { type, content, role } = item;
  const isMessage = type === 'message' || ((type === undefined || type === null) && typeof role === 'string');
  const named = id === '' ? item : { ...item, id };
  if (!isMessage) return named;
  const kind = role === 'assistant' ? 'output_text' : 'input_text';
  const parts =
    typeof content === 'string' ? [{ type: kind, text: content, ...(role === 'assistant' && { annotations: [] }) }] : content;
  return { ...named, type: 'message', status: item['status'] ?? 'completed', content: parts };
}

/**
 * One page of a list, as `limit`, `order` and `after` of the query select it. Deleted items are not shown, but a list
 * continues after them: clients delete what they have listed.
 */
export function paginate(items: readonly NamedItem[], query: URLSearchParams, deleted?: ReadonlySet<string>): Json {
  const ordered = query.get('order') === 'asc' ? items : items.toReversed();
  const after = query.get('after');
  const at = after === null ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== null && (at < 0 || after === '')) throw createCursorNotFound(after);
  const rest = ordered.slice(at + 1).filter(({ id }) => !deleted?.has(id));
  const limit = Math.min(MAX_PAGE, Math.max(1, Number.parseInt(query.get('limit') ?? '', 10) || DEFAULT_PAGE));
  const page = rest.slice(0, limit);
  return {
    object: 'list',
    data: page.map(toListed),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: limit < rest.length,
  };
}

const DEFAULT_PAGE = 20;

const MAX_PAGE = 100;
