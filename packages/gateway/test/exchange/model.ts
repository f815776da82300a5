/**
 * The model of the life of an exchange: what it may hold and until when, and what its client, its upstreams and the ledger must agree on in
 * the end. Pure functions over what was seen; they name what is wrong.
 */
import type { CanonicalUsage } from '@sluice/core';
import type { Services } from '../../src/exchange/types.ts';
import type { AttemptRow, ExchangeDetail, ExchangeRow } from '../../src/store/index.ts';
import type { Reply } from '../gateway/http.ts';
import type { Settings } from './schedule.ts';
import type { Account } from './upstreams.ts';
import { type ReadReply, readReply, type SentRequest, type Visit } from './visitors.ts';

// ---- what an exchange holds

/** What can be counted of a gateway and its surroundings. */
export interface Held {
  readonly services: Services;
  /** Requests that upstreams are serving. */
  readonly sockets: number;
  /** Captures that have not ended. */
  readonly captures: number;
  readonly openRows: number;
}

/**
 * What exchanges take, and give back when they end, however they end: a slot from the headers of the request on, a row and a capture from its
 * body on, a place at the gate and money when it is admitted, the entry of its idempotency key until its response is known, and a request
 * to an upstream as long as that is wanted.
 */
const RESOURCES = {
  slots: ({ services }) => services.streams.count,
  'requests at the gate': ({ services }) => services.gate.held.requests,
  'reserved micros': ({ services }) => services.gate.held.micros,
  'pending bytes': ({ services }) => services.pending.total,
  'running idempotency keys': ({ services }) => services.idempotency?.running ?? 0,
  'open rows': ({ openRows }) => openRows,
  'upstream requests': ({ sockets }) => sockets,
  captures: ({ captures }) => captures,
} as const satisfies Record<string, (held: Held) => number>;

/** What is still held. */
export const listHeld = (held: Held): string[] =>
  Object.entries(RESOURCES).flatMap(([name, count]) => (count(held) > 0 ? [`${count(held)} ${name} are still held`] : []));

/** At any time: who holds money or a place at the gate has a slot, and no key has more requests upstream than it may have. */
export function findExcess(
  { services }: Pick<Held, 'services'>,
  { concurrency = Number.POSITIVE_INFINITY, limitsMs }: Settings,
): string[] {
  const { requests, micros } = services.gate.held;
  // Requests that wait for a reply of the server are at the gate, and are refused later.
  const mayWait = limitsMs !== undefined;
  return [
    ...(requests > services.streams.count ? [`${requests} requests at the gate, with ${services.streams.count} slots`] : []),
    ...(requests > concurrency && !mayWait ? [`${requests} requests at the gate, where ${concurrency} are allowed`] : []),
    ...(requests === 0 && micros > 0 ? [`${micros} micros are reserved for no request`] : []),
  ];
}

// ---- what a client receives

/** Who has the client: the claim of a response is that of one upstream, or of those that continued it, in their order. */
interface Part {
  source: string;
  words: number[];
}

/** Words of upstreams: the upstream, the message, the number of the request to it, the number of the word. */
const WORD = /([ab]\d+\.\d+)-(\d)[_ ]*/y;

/** The parts of a text that upstreams sent; undefined when it has something that none of them sent. */
export function readParts(text: string): Part[] | undefined {
  const parts: Part[] = [];
  WORD.lastIndex = 0;
  while (WORD.lastIndex < text.length) {
    const [, source = '', word] = WORD.exec(text) ?? [];
    if (word === undefined) return undefined;
    const last = parts.at(-1);
    if (last?.source === source) last.words.push(Number(word));
    else parts.push({ source, words: [Number(word)] });
  }
  return parts;
}

/** What is wrong with the text of a response. */
function findTextProblems(text: string, isComplete: boolean, message: number, isContinued: boolean): string[] {
  const parts = readParts(text);
  if (!parts) return [`has text that no upstream sent: ${text.slice(0, 200)}`];
  const sources = parts.map(({ source }) => source);
  const shown = sources.join(', ');
  const problems: string[] = [];
  if (sources.some((source) => source.slice(1).split('.')[0] !== String(message)))
    problems.push(`has text of another request: ${shown}`);
  if (new Set(sources).size < sources.length || (sources.length > 1 && !isContinued)) problems.push(`mixes responses: ${shown}`);
  for (const { source, words } of parts)
    if (words.some((word, index) => word !== index + 1)) problems.push(`has words ${words.join(' ')} of ${source}`);
  if (isComplete && parts.at(-1)?.words.length !== 6) problems.push('is complete without the whole text of an upstream');
  return problems;
}

/** What must be true of the gateway's end when a client has read a response. */
export interface Seen {
  readonly request: SentRequest;
  readonly reply: Reply;
  /** Undefined for an error. */
  readonly read: ReadReply | undefined;
}

/** The responses on a connection, each with its request. */
export const listSeen = ({ sent, replies }: Visit): Seen[] =>
  replies.flatMap((reply, index) => {
    const request = sent[index];
    return request ? [{ request, reply, read: reply.status === 200 ? readReply(request, reply) : undefined }] : [];
  });

/** Exactly one response for each request, in their order, unless one side has ended the connection. */
export function findVisitProblems(visit: Visit, settings: Settings): string[] {
  const { sent, replies, leaving, isDisturbed, client } = visit;
  const problems = listSeen(visit).flatMap((seen) =>
    findReplyProblems(seen, settings).map((problem) => `${nameOf(seen)} ${problem}`),
  );
  if (replies.length > sent.length) problems.push(`${sent.length} requests had ${replies.length} responses`);
  const last = replies.at(-1);
  if (last?.isWhole && last.rest.length > 0)
    problems.push(`the responses are followed by ${JSON.stringify(String(last.rest).slice(0, 100))}`);
  if (leaving) return problems;
  // A client that leaves may have all of the content, and not the end of the connection.
  if (!isDisturbed && last && !last.isWhole && listSeen(visit).at(-1)?.read?.complete)
    problems.push('the last response is complete, but its bytes are not');
  const whole = replies.filter(({ isWhole }) => isWhole).length;
  const wanted = sent.filter(({ plan }) => !plan.isPartial).length;
  const mayEnd = client.isClosed && (isDisturbed || last?.headers['connection'] === 'close');
  if (whole < wanted && !mayEnd)
    problems.push(
      `${wanted} requests had ${whole} whole responses on a connection that ${client.isClosed ? 'was closed' : 'is open'}`,
    );
  return problems;
}

const nameOf = ({ request }: Seen): string => `the response to request ${request.number}`;

function findReplyProblems({ request, reply, read }: Seen, { isContinued }: Settings): string[] {
  // No response here is too large to be shared, and none is forgotten.
  if (reply.status === 409) return [`has status 409: ${String(reply.body).slice(0, 200)}`];
  if (!read) return [];
  const problems = findTextProblems(read.text, read.complete, request.message, isContinued);
  if (read.ends > 1) problems.push(`ends ${read.ends} times`);
  return problems;
}

// ---- the ledger

/** What the ledger is compared with. */
export interface Observed {
  readonly settings: Settings;
  readonly seen: readonly Seen[];
  readonly accounts: readonly Account[];
  /** Rows may have been closed by the gateway that followed the one that was killed. */
  readonly mayCrash: boolean;
}

/** What the tokens cost at 0.15 and 0.61 dollars a million, in millionths, computed by other means than those of the gateway. */
const computeCost = ({ input_tokens: input, output_tokens: output }: CanonicalUsage): number =>
  Math.floor((15 * input + 61 * output + 50) / 100);

export const PRICE = { input: '0.15', output: '0.61' } as const;

/** What is wrong in the ledger. */
export function findLedgerProblems(details: readonly ExchangeDetail[], observed: Observed): string[] {
  const byId = new Map(observed.accounts.map((account) => [account.id, account]));
  const used = new Set<string>();
  return [
    ...findMissingRows(details, observed),
    ...details.flatMap((detail) =>
      findRowProblems(detail, { ...observed, byId, used }).map((problem) => `row of ${nameRow(detail)}: ${problem}`),
    ),
    ...findUncounted(details, observed),
  ];
}

const nameRow = ({ exchange }: ExchangeDetail): string => exchange.tags.join(' ') || exchange.id;

/** Every response that a client saw has one row, which says what the client saw. */
function findMissingRows(details: readonly ExchangeDetail[], observed: Observed): string[] {
  const { seen, mayCrash } = observed;
  const byRequest = new Map(details.map((detail) => [detail.exchange.request_id, detail]));
  const twice = details.length > byRequest.size ? ['two rows have the same request id'] : [];
  const found = seen.flatMap((one) => {
    const detail = byRequest.get(one.reply.headers['x-sluice-request-id'] ?? '');
    const problems = detail ? compareWithClient(detail, one, observed) : findUnrecorded(one, mayCrash);
    return problems.map((problem) => `${nameOf(one)} ${problem}`);
  });
  return [...twice, ...found];
}

/**
 * Requests that were not read or refused before they were admitted have no row. A kill may come before any content, and after an error
 * of the gateway itself, which is sent before it is recorded: nothing was used.
 */
const findUnrecorded = ({ request, reply, read }: Seen, mayCrash: boolean): string[] =>
  request.plan.isPartial ||
  [401, 503, 529].includes(reply.status) ||
  (mayCrash && (read ? read.text === '' : reply.headers['x-sluice-attempts'] === '0'))
    ? []
    : [`with status ${reply.status} has no row`];

function compareWithClient(
  { exchange, attempts }: ExchangeDetail,
  { reply, read, request }: Seen,
  { mayCrash, settings }: Observed,
): string[] {
  if (!exchange.tags.includes(`request=${request.number}`)) return ['has the row of another request'];
  const { ending, http_status: status, state, provider } = exchange;
  const sources = readParts(read?.text ?? '')?.map(({ source }) => (source.startsWith('a') ? 'one' : 'two')) ?? [];
  const isOfOne = !settings.isContinued && state === 'settled' && attempts.length > 0 && sources.length > 0;
  if (isOfOne && !sources.some((source) => source === provider))
    return [`has text of upstream ${sources.join(', ')}, and its row names ${provider}`];
  if (read?.complete) {
    if (state === 'crashed' && mayCrash) return ['was read to its end, and its row has crashed'];
    if (ending !== 'answered' || status !== 200) return [`was read to its end, and its row has ${ending} ${status}`];
    const answered = attempts.filter((attempt) => attempt.ending === 'answered').length;
    // Followers and hits of the cache have no attempts.
    return answered === 1 || attempts.length === 0 ? [] : [`was read to its end, and ${answered} of its attempts responded`];
  }
  if (state === 'crashed') return mayCrash ? [] : ['has a row that has crashed'];
  if (read === undefined && reply.isWhole && ending !== 'client_aborted' && status !== reply.status)
    return [`has status ${reply.status}, and its row ${status}`];
  // A response in the background ends after its client has left, or was told that the gateway stops.
  if (request.plan.isBackground) return [];
  return read && ending === 'answered' && reply.isWhole && !read.complete ? ['failed, and its row is answered'] : [];
}

interface RowContext extends Observed {
  byId: ReadonlyMap<string, Account>;
  /** Accounts that an attempt has. */
  used: Set<string>;
}

type Amounts = Pick<ExchangeRow, 'input_tokens' | 'output_tokens' | 'cost_micros'>;

function findRowProblems({ exchange, attempts }: ExchangeDetail, context: RowContext): string[] {
  const { settings, mayCrash } = context;
  const problems = attempts.flatMap((attempt) =>
    findAttemptProblems(attempt, context).map((problem) => `attempt ${attempt.number} ${problem}`),
  );
  if (exchange.state !== 'settled' && !(mayCrash && exchange.state === 'crashed')) problems.push(`is ${exchange.state}`);
  if (exchange.attempts !== attempts.length) problems.push(`counts ${exchange.attempts} of ${attempts.length} attempts`);
  if (attempts.length > settings.retries + 1) problems.push(`has ${attempts.length} attempts with ${settings.retries} retries`);
  if (attempts.filter(({ ending }) => ending === 'answered').length > 1) problems.push('has two attempts that responded');
  if (exchange.ending === 'answered' && attempts.length > 0 && !attempts.some(({ ending }) => ending === 'answered'))
    problems.push('is answered by no attempt');
  for (const column of ['input_tokens', 'output_tokens', 'cost_micros'] as const) {
    const sum = addUp(attempts, column);
    if (exchange[column] !== sum) problems.push(`has ${column} ${exchange[column]}, and its attempts ${sum}`);
  }
  return problems;
}

function addUp(attempts: readonly AttemptRow[], column: keyof Amounts): number | null {
  const known = attempts.flatMap((attempt) => attempt[column] ?? []);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

/** One attempt: what it says of its upstream is what the upstream says. */
function findAttemptProblems(attempt: AttemptRow, { byId, used, mayCrash }: RowContext): string[] {
  const { state, ending, provenance, upstream_request_id: id, http_status: status, possibly_billed: isPossible } = attempt;
  const tokens = readTokens(attempt);
  const problems: string[] = [];
  if (state !== 'settled' && !(mayCrash && state === 'crashed')) problems.push(`is ${state}`);
  if (tokens && attempt.cost_micros !== computeCost(tokens))
    problems.push(`costs ${attempt.cost_micros}, not ${computeCost(tokens)}`);
  if (id === null) {
    if (status !== null && state === 'settled') problems.push(`has status ${status} of an unknown response`);
    if (provenance === 'reported') problems.push('has reported tokens without a response');
    return problems;
  }
  const account = byId.get(id);
  if (!account) return [...problems, `has the unknown response ${id}`];
  if (used.has(id)) problems.push(`has ${id}, as another attempt has`);
  used.add(id);
  if (account.upstream !== attempt.provider) problems.push(`is of ${attempt.provider}, and ${account.upstream} responded`);
  if (status !== account.status) problems.push(`has status ${status}, and the upstream ${account.status}`);
  return [...problems, ...findUsageProblems(attempt, account, { tokens, ending, provenance, isPossible })];
}

const readTokens = ({ input_tokens: input, output_tokens: output }: Amounts): CanonicalUsage | undefined =>
  input === null || output === null ? undefined : { input_tokens: input, output_tokens: output };

interface Recorded {
  tokens: CanonicalUsage | undefined;
  ending: string | null;
  provenance: string | null;
  isPossible: boolean;
}

function findUsageProblems(
  { state }: AttemptRow,
  { usage, isWhole, hasContent }: Account,
  { tokens, ending, provenance, isPossible }: Recorded,
): string[] {
  const isExact = tokens?.input_tokens === usage.input_tokens && tokens.output_tokens === usage.output_tokens;
  if (ending === 'answered' && isWhole)
    return isExact && provenance === 'reported'
      ? []
      : [`used ${show(tokens)} (${provenance}), and the upstream reported ${show(usage)}`];
  // What was reported before the end can have fewer tokens of output.
  const isPart = tokens?.input_tokens === usage.input_tokens && tokens.output_tokens <= usage.output_tokens;
  if (provenance === 'reported' && !isPart) return [`reports ${show(tokens)}, and the upstream ${show(usage)}`];
  if (state === 'settled' && hasContent && !tokens && !isPossible && ABANDONED.has(ending))
    return [`was abandoned (${ending}) with content, and is neither charged nor possibly billed`];
  return [];
}

const show = (tokens: CanonicalUsage | undefined): string =>
  tokens ? `${tokens.input_tokens} and ${tokens.output_tokens} tokens` : 'no tokens';

/** Endings for which an upstream is paid that has begun to respond. */
const ABANDONED: ReadonlySet<string | null> = new Set(['client_aborted', 'client_stalled', 'hedge_lost', 'stopped', 'answered']);

/** Every request that an upstream received is an attempt. */
function findUncounted(details: readonly ExchangeDetail[], { accounts, mayCrash, settings }: Observed): string[] {
  // Without a budget, a request is sent while its row is written, which a kill can prevent.
  if (mayCrash && settings.budget === undefined) return [];
  const attempts = details.flatMap((detail) => detail.attempts);
  return (['one', 'two'] as const).flatMap((name) => {
    const served = accounts.filter(({ upstream }) => upstream === name).length;
    const recorded = attempts.filter(({ provider }) => provider === name).length;
    return served > recorded ? [`upstream ${name} received ${served} requests, and the ledger has ${recorded} attempts`] : [];
  });
}

/** What all rows have cost their key, with what was assumed. */
export const sumCosts = (details: readonly ExchangeDetail[]): number =>
  details.reduce((sum, { exchange }) => sum + (exchange.cost_micros ?? 0) + exchange.assumed_micros, 0);
