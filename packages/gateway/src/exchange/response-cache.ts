/** Sends the response to an equal chat request again, in any protocol, whole or as a stream. docs/cache.md is the guide. */

import {
  type CanonicalRequest,
  type CanonicalResponse,
  CodecError,
  type Exchange,
  type Provider,
  type Sealing,
} from '@sluice/core';
import { CODECS, decodeRequest, type ResponseOptions } from '@sluice/core/engine';
import { encodeResponse, encodeResponseStream } from '@sluice/core/internal';
import type { CacheOptions } from '../config/options.ts';
import type { Clock } from '../http/clock.ts';
import { matches, splitPattern } from '../providers/wildcard.ts';
import type { NoteRow } from '../store/index.ts';
import { POLICIES } from './endpoint.ts';
import type { ModelRequest } from './model-request.ts';
import { digestRequest } from './request-digest.ts';
import type { Candidate, Directory } from './types.ts';

/** `bypass`: the request, or its client, does not allow a cached response. */
export type CacheStatus = 'hit' | 'miss' | 'bypass';

/** What the cache does for one request. */
export interface Caching {
  readonly status: CacheStatus;
  readonly hit: CacheHit | undefined;
  /** Whether the response is saved, so that all of it has to be kept. */
  readonly saves: boolean;
  /** Saves a response that was sent. `rules`: the rules of its protocol that it breaks. */
  save(exchange: Exchange | undefined, source: ResponseSource, rules?: readonly string[]): void;
}

/** Which upstream made a response, and how its opaque state is sealed for clients. */
interface ResponseSource {
  readonly candidate: Candidate;
  readonly sealing: Sealing | undefined;
}

/** A response of the cache, for the client of this request. */
export interface CacheHit {
  encode(): unknown;
  encodeStream(): Uint8Array;
  /** What the ledger says about it. */
  readonly note: NoteRow;
}

interface Entry {
  /** The canonical response as JSON. */
  readonly text: string;
  readonly provider: Provider;
  /** The provider's name of the model. */
  readonly model: string;
  readonly sealing: Sealing | undefined;
  readonly requestId: string;
  /** When the response was sent, for protocols that name it: Unix seconds. */
  readonly seconds: number;
  readonly savedAt: number;
}

/** Responses in memory, the least recently used first. */
export class ResponseCache {
  readonly #options: CacheOptions;
  readonly #clock: Clock;
  readonly #patterns: readonly ReturnType<typeof splitPattern>[];
  readonly #entries = new Map<string, Entry>();
  /** Numbers of configurations: a response belongs to the one that it was made with. */
  readonly #versions = new WeakMap<Directory, number>();
  #lastVersion = 0;
  #bytes = 0;

  constructor(options: CacheOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#patterns = options.models.map(splitPattern);
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Looks for the response to an equal request. Undefined for models that are not cached. */
  begin(request: ModelRequest, candidates: readonly Candidate[]): Caching | undefined {
    const names = [request.target.model, ...candidates.map(nameTarget)];
    if (!names.some((name) => this.#patterns.some((pattern) => matches(pattern, name)))) return undefined;
    if (request.state?.mayReuse === false) return BYPASS;
    const control = request.wire.headers['cache-control'] ?? '';
    const canonical = decode(request);
    if (!canonical || !isCacheable(canonical) || NO_STORE.test(control)) return BYPASS;
    const digest = this.#digest(request, canonical, candidates);
    const isRefresh = NO_CACHE.test(control);
    const entry = isRefresh ? undefined : this.#find(digest);
    return {
      status: isRefresh ? 'bypass' : entry ? 'hit' : 'miss',
      hit: entry && createHit(entry, request, canonical),
      saves: !entry,
      save: (exchange, { candidate, sealing }, rules = []) => {
        const response = rules.length === 0 ? exchange?.canonicalResponse : undefined;
        if (entry || !response || !isComplete(response)) return;
        const seconds = Math.floor(Date.now() / 1000);
        const [text, provider] = [JSON.stringify(response), describe(candidate)];
        this.#add(digest, { text, provider, model: candidate.model, sealing, requestId: request.id, seconds });
      },
    };
  }

  #digest({ caller, wire, directory }: ModelRequest, canonical: CanonicalRequest, candidates: readonly Candidate[]): string {
    const owner = this.#options.scope === 'key' ? (caller?.id ?? '') : '';
    // Strategies change their order from request to request.
    const targets = [...new Set(candidates.map(nameTarget))].sort();
    const betas = BETA_HEADERS.map((name) => wire.headers[name] ?? '');
    return digestRequest(canonical, [this.#findVersion(directory), owner, targets, betas]);
  }

  #findVersion(directory: Directory): number {
    const known = this.#versions.get(directory) ?? ++this.#lastVersion;
    this.#versions.set(directory, known);
    return known;
  }

  #find(digest: string): Entry | undefined {
    const entry = this.#entries.get(digest);
    if (!entry) return undefined;
    this.#remove(digest);
    if (entry.savedAt + this.#options.ttlMs <= this.#clock.now()) return undefined;
    this.#insert(digest, entry);
    return entry;
  }

  #add(digest: string, response: Omit<Entry, 'savedAt'>): void {
    const { maxBytes } = this.#options;
    const entry = { ...response, savedAt: this.#clock.now() };
    this.#remove(digest);
    if (measure(entry) > maxBytes * MAX_RESPONSE_SHARE) return;
    this.#insert(digest, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= maxBytes) break;
      this.#remove(oldest);
    }
  }

  #insert(digest: string, entry: Entry): void {
    this.#entries.set(digest, entry);
    this.#bytes += measure(entry);
  }

  #remove(digest: string): void {
    const entry = this.#entries.get(digest);
    if (!entry) return;
    this.#entries.delete(digest);
    this.#bytes -= measure(entry);
  }
}

/** How much of the memory one response may take. */
const MAX_RESPONSE_SHARE = 1 / 8;

/** Keys and objects of an entry. */
const ENTRY_BYTES = 512;

const measure = ({ text }: Entry): number => 2 * text.length + ENTRY_BYTES;

const NO_STORE = /(?:^|[\s,])no-store(?:$|[\s,])/i;

const NO_CACHE = /(?:^|[\s,])no-cache(?:$|[\s,])/i;

/** Headers that switch features of a model. */
const BETA_HEADERS = ['anthropic-beta', 'openai-beta'];

const BYPASS: Caching = { status: 'bypass', hit: undefined, saves: false, save: () => undefined };

/** Undefined for a request that cannot be decoded: the upstream judges it. */
function decode({ client, wire: { body, path, headers } }: ModelRequest): CanonicalRequest | undefined {
  try {
    return decodeRequest(body, { from: client, path, headers });
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

/** Requests that depend on state of a server, or whose tools the provider runs, have another response every time. */
const isCacheable = ({ state, store, audio_output: audio, tools = [] }: CanonicalRequest): boolean =>
  state === undefined && store !== true && audio === undefined && tools.every(({ kind = 'function' }) => CLIENT_TOOLS.has(kind));

const CLIENT_TOOLS: ReadonlySet<string> = new Set(['function', 'custom']);

/** Whether a response is as the model wanted it: not cut off, filtered or paused. */
const isComplete = ({ stop_reason: stop, choices = [], error }: CanonicalResponse): boolean =>
  error === undefined && [stop, ...choices.map(({ stop_reason }) => stop_reason)].every((reason) => COMPLETE.has(reason));

const COMPLETE: ReadonlySet<unknown> = new Set(['end_turn', 'stop_sequence', 'tool_use']);

/** The provider as the encoder of a response needs it, without its key. */
const describe = ({ provider: { id, protocol, base_url } }: Candidate): Provider => ({ id, protocol, base_url });

function createHit(
  { text, provider, model, sealing, requestId, seconds }: Entry,
  { client, wire, state, directory }: ModelRequest,
  request: CanonicalRequest,
): CacheHit {
  const saved: CanonicalResponse = JSON.parse(text);
  const now = (): number => seconds;
  const from = CODECS[provider.protocol];
  const isSame = provider.protocol === client.id;
  // A server of the client's protocol writes these fields itself.
  const envelope = isSame ? undefined : state?.convertedEnvelope;
  const isRenamed = directory.modelInAnswer === 'requested' && request.model !== model;
  const response = isSame && isRenamed ? { ...saved, model: request.model } : saved;
  const policy = POLICIES[isSame ? 'answered' : directory.modelInAnswer];
  // What such a server has sent does not depend on the request, where its protocol leaves nothing out.
  const known = isSame && !client.isUnrequested ? undefined : request;
  const options: ResponseOptions = {
    from,
    to: client,
    provider,
    request: known,
    now,
    policy,
    isRenamed: false,
    sealing,
    envelope,
  };
  const message = `repeats the response of request ${requestId}; not sent upstream`;
  return {
    encode: () => encodeResponse(response, options),
    encodeStream: () => encodeResponseStream(response, { ...options, framing: client.framing?.(wire.path) ?? 'sse' }),
    note: { code: 'CACHED', feature: 'cache', message },
  };
}

const nameTarget = ({ provider, model }: Candidate): string => `${provider.id}/${model}`;
