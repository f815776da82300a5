import { MUTATIONS } from './index.ts';
import type { Mutation, WireStream } from './mutation.ts';
import type { Random } from './random.ts';

const SHORT = {
  'no-index': 'chat/index-missing',
  'index-zero': 'chat/index-zero',
  'blank-ids': 'chat/ids-blank',
  'names-twice': 'chat/names-repeated',
  'object-arguments': 'chat/arguments-object',
  'cumulative-arguments': 'chat/arguments-cumulative',
  'no-done': 'chat/no-done',
  'error-mid-stream': 'failure/error-payload',
  cut: 'failure/cut',
} as const satisfies Record<string, string>;

/** Short names for the dialects that people ask about most. Every other one goes by its id. */
export const SHORT_NAMES: ReadonlyMap<string, string> = new Map(Object.entries(SHORT));

const BY_ID: ReadonlyMap<string, Mutation> = new Map(MUTATIONS.map((mutation) => [mutation.id, mutation]));

/** A dialect by its id or its short name. */
export const mutationNamed = (name: string): Mutation | undefined => BY_ID.get(SHORT_NAMES.get(name) ?? name);

/** A clean stream in these dialects, as far as they are of its protocol. */
export const spoken = (clean: WireStream, dialects: readonly Mutation[], random: Random): WireStream =>
  dialects
    .filter(({ protocols }) => protocols.includes(clean.protocol))
    .reduce((stream, dialect) => dialect.apply(stream, random), clean);
