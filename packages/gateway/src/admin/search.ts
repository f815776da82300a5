/** Search for text in captured exchanges. Bodies of streams are read first: a text may be spread over many events. */

import { z } from 'zod';
import type { Capture } from '../capture/capture.ts';
import type { Captures } from '../capture/captures.ts';
import { type ExchangeRow, type Filter, matchesFilter, type Store } from '../store/index.ts';
import { readConversation } from './conversation.ts';
import { Problem } from './problem.ts';

/** What was searched. */
export const SEARCHED = z.strictObject({
  captures: z.int().describe('Captured exchanges that were read.'),
  bytes: z.int(),
  is_complete: z.boolean().describe('False when a limit ended the search before the oldest capture.'),
  oldest_at: z.string().nullable().describe('The time of the oldest capture that was read.'),
});

/** A page of exchanges whose captures have all of the texts. */
export interface SearchQuery {
  readonly texts: readonly string[];
  readonly filter: Filter;
  readonly cursor: string | undefined;
  readonly limit: number;
  /** Whether the client has left. */
  readonly isAbandoned: () => boolean;
}

interface SearchContext {
  readonly captures: Pick<Captures, 'get' | 'listIds'>;
  readonly store: Pick<Store, 'get'>;
  readonly now: () => number;
}

interface SearchResult {
  readonly exchanges: ExchangeRow[];
  readonly next: string | null;
  readonly searched: z.infer<typeof SEARCHED>;
}

/** The most that one search reads; the next page continues where it stopped. */
export const SEARCH_LIMITS = { captures: 2000, bytes: 64_000_000, ms: 3000 };

const MAX_SEARCHES = 2;

let running = 0;

/** Searches the newest captures first. */
export async function searchCaptures(query: SearchQuery, context: SearchContext): Promise<SearchResult> {
  if (running >= MAX_SEARCHES)
    throw new Problem(503, 'other searches for text are in progress; retry', { headers: { 'retry-after': '1' } });
  running++;
  try {
    return await search(query, context);
  } finally {
    running--;
  }
}

async function search(query: SearchQuery, { captures, store, now }: SearchContext): Promise<SearchResult> {
  const { filter, cursor, limit, isAbandoned } = query;
  const texts = query.texts.map((text) => text.toLowerCase());
  const start = now();
  const exchanges: ExchangeRow[] = [];
  const searched = { captures: 0, bytes: 0, is_complete: true, oldest_at: null as string | null };
  let last = cursor ?? null;
  for (const id of captures.listIds()) {
    if (cursor !== undefined && id >= cursor) continue;
    if (isExhausted(searched, now() - start) || exchanges.length >= limit || isAbandoned())
      return { exchanges, next: last, searched: { ...searched, is_complete: false } };
    last = id;
    // Rows are cheaper to read than captures.
    const row = (await store.get(id))?.exchange;
    if (!row || !matchesFilter(filter, row)) continue;
    const capture = await captures.get(id);
    if (!capture) continue;
    searched.captures++;
    searched.bytes += measure(capture);
    searched.oldest_at = capture.at;
    if (await hasTexts(capture, texts)) exchanges.push(row);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { exchanges, next: null, searched };
}

const isExhausted = ({ captures, bytes }: { captures: number; bytes: number }, ms: number): boolean =>
  captures >= SEARCH_LIMITS.captures || bytes >= SEARCH_LIMITS.bytes || ms >= SEARCH_LIMITS.ms;

const measure = ({ request, response }: Capture): number => request.body.length + (response?.body.length ?? 0);

async function hasTexts(capture: Capture, texts: readonly string[]): Promise<boolean> {
  const { request, response, error, tools } = await readConversation(capture);
  const parts = [
    ...[...request, ...response].map(({ name = '', text }) => `${name}\n${text}`),
    ...tools.map(({ name, description }) => `${name}\n${description}`),
    error ?? '',
    // Without a conversation, such as an embedding, the bodies are searched as they are.
    ...(request.length > 0 ? [] : [decode(capture.request.body), decode(capture.response?.body)]),
  ].map((part) => part.toLowerCase());
  return texts.every((text) => parts.some((part) => part.includes(text)));
}

const decode = (body: Uint8Array | undefined): string => (body ? Buffer.from(body).toString() : '');
