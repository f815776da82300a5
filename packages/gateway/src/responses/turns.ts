/** Turns: what was said in one exchange, as it is kept. */

import { createHash } from 'node:crypto';
import { isJson, type Json, parse, readItems, readReference } from './items.ts';
import type { Stored } from './store.ts';

/** What was said in one exchange. It points to what was said before, so that a long conversation is kept once. */
export interface Turn {
  readonly key: string;
  readonly parent: Turn | undefined;
  /** The input items as JSON, as the client sent them. */
  readonly input: string;
  /** The response object as JSON, without `fields`; empty for items that were added without a response. */
  readonly body: string;
  /** Large fields of the response object. The store replaces them by equal ones that it has. */
  fields: readonly SharedField[];
  /** Ids of the items: the input, then the output. Empty for an item that only refers to another. */
  readonly ids: readonly string[];
  /** Bytes of each item as JSON, in the order of `ids`. */
  readonly sizes: readonly number[];
  /** The ids of other items that items refer to, by their place in `ids`. */
  readonly references: ReadonlyMap<number, string>;
  /** The provider and account that keep the response as well; empty when none does. */
  readonly holder: string;
  /** The provider and account of the same protocol that made the response; empty for others. */
  readonly maker: string;
  /** Bytes of this turn alone, without `fields`. */
  readonly bytes: number;
  /** Bytes and items of the conversation up to here. */
  readonly totalBytes: number;
  readonly totalItems: number;
  /** Entries of the store that point here. */
  readonly owners: Stored[];
  /** Turns in the store that point here. */
  children: number;
}

/**
 * A large field of response objects, such as `tools`. Responses repeat what their requests had, so most turns of a
 * conversation have the same: 100 kB of tools would be kept with every turn.
 */
export interface SharedField {
  readonly name: string;
  readonly text: string;
  /** Of the name and the text. */
  readonly digest: string;
}

/** What a new turn is made of. Without `sizes` and `references`, they are read from the texts. */
export type NewTurn = Pick<Turn, 'key' | 'parent' | 'input' | 'body' | 'ids' | 'holder'> &
  Partial<Pick<Turn, 'maker' | 'fields'> & ItemFacts>;

/** What is known of the items of a turn without parsing them. */
export type ItemFacts = Pick<Turn, 'sizes' | 'references'>;

/** Builds a turn. */
export function createTurn({ key, parent, input, body, ids, holder, maker = '', fields = [], ...facts }: NewTurn): Turn {
  const bytes = TURN_BYTES + ITEM_BYTES * ids.length + measure(input) + measure(body);
  const { sizes, references } = facts.sizes && facts.references ? facts : describeItems(readItems({ input, body }));
  return {
    ...{ key, parent, input, body, fields, ids, holder, maker, bytes },
    sizes: sizes ?? [],
    references: references ?? NO_REFERENCES,
    totalBytes: bytes + (parent?.totalBytes ?? 0),
    totalItems: ids.length + (parent?.totalItems ?? 0),
    owners: [],
    children: 0,
  };
}

/** The sizes of items, and what they refer to. */
export function describeItems(items: readonly unknown[]): ItemFacts & { text: string } {
  const texts = items.map((item) => JSON.stringify(item));
  const found = items.flatMap((item, place) => {
    const id = readReference(item);
    return id === undefined ? [] : [[place, id] as const];
  });
  return {
    text: `[${texts.join(',')}]`,
    sizes: texts.map(measure),
    references: found.length === 0 ? NO_REFERENCES : new Map(found),
  };
}

const NO_REFERENCES: ReadonlyMap<number, string> = new Map();

/** A response object as it is kept. */
export function splitResponse(response: Json): Pick<Turn, 'body' | 'fields'> {
  const fields: SharedField[] = [];
  const rest = Object.entries(response).filter(([name, value]) => {
    if (name === 'output') return true;
    const text = JSON.stringify(value) ?? '';
    if (text.length < SHARED_CHARACTERS) return true;
    fields.push(createField(name, text));
    return false;
  });
  return { body: JSON.stringify(Object.fromEntries(rest)), fields };
}

/** The response object of a turn. */
export function joinResponse({ body, fields }: Pick<Turn, 'body' | 'fields'>): unknown {
  const rest = parse(body);
  if (!isJson(rest) || fields.length === 0) return rest;
  return Object.fromEntries([...Object.entries(rest), ...fields.map(({ name, text }) => [name, parse(text)] as const)]);
}

/** Builds a field that turns share. */
export const createField = (name: string, text: string): SharedField => ({
  name,
  text,
  digest: createHash('sha256').update(`${name}\n`).update(text).digest('base64url'),
});

/** Memory of a field that turns share. */
export const measureField = ({ text }: SharedField): number => FIELD_BYTES + measure(text);

/** The memory of a text: most have one byte for each character; others have two. */
const measure = (text: string): number => Buffer.byteLength(text);

/** Memory of a turn, of an item and of a shared field beside their texts, roughly. */
const TURN_BYTES = 400;
const ITEM_BYTES = 240;
const FIELD_BYTES = 240;

/** Shorter fields stay where they are: the digest would take as much. */
const SHARED_CHARACTERS = 256;
