/** `sluice route`: shows which targets a request would be sent to, and why, without sending it. */

import type { CanonicalRequest, ProtocolId } from '@sluice/core';
import { CODECS, decodeRequest } from '@sluice/core/engine';
import { oneLine } from '@sluice/lab/text';
import { createDefaultSource, findConfig } from '../../config/load.ts';
import { ConfigError, formatPath } from '../../config/problems.ts';
import { explainUnknownModel, type GatewayState, type Rule, resolveConfig } from '../../config/resolve.ts';
import { SecretRegistry } from '../../config/secrets.ts';
import { loadWhole } from '../../config/shared.ts';
import { findSession } from '../../exchange/record.ts';
import type { Candidate, Directory } from '../../exchange/types.ts';
import { findPrice } from '../../routing/router.ts';
import { createDirectory } from '../../server/directory.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { readFileBytes } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatColumns, formatJsonLine } from '../../terminal/text.ts';
import { DemoTransport } from '../../upstream/demo.ts';
import { findGateway, requireGateway } from '../find-gateway.ts';
import { AdminClient, ApiError } from '../ledger/admin-client.ts';
import { GatewaySource, type PausedModel } from '../ledger/gateway-source.ts';

interface Options {
  request: string | undefined;
  from: string | undefined;
  header: string | undefined;
  tag: string | undefined;
  config: string | undefined;
  url: string | undefined;
  key: string | undefined;
  explain: boolean;
  json: boolean;
}

/** Shows the targets of a model, in the order in which they would be tried. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (words.length > 1) throw new UsageError('name one model');
  const body = options.request === undefined ? undefined : await readRequest(options.request, io);
  const requested = words[0] ?? readModel(body);
  if (requested === undefined) throw new UsageError('name a MODEL, or a request with one by --request');
  const state = await readState(options.config, io);
  const client = chooseProtocol(options.from, body);
  const headers = readHeader(options.header);
  const directory = createDirectory(state, new DemoTransport(0));
  const tags = options.tag === undefined ? [] : [options.tag];
  const decode = () => decodeBody(client, body);
  const rule = directory.rules?.find({ model: requested, headers, tags, decode });
  const model = rule?.use ?? requested;
  const paused = await readPaused(options, io);
  const candidates = explainCandidates(directory.resolve(model, client), directory, paused);
  const session = findSession(headers, body) !== undefined;
  const route: Route = { requested, rule: rule ?? null, model, affinityMs: state.affinityMs, session, candidates };
  await io.stdout.write(
    options.json ? (formatJsonLine(describeRoute(route))?.join('') ?? '') : formatRoute(route, options.explain, io),
  );
  if (candidates.length > 0) return EXIT.ok;
  const { red } = chooseColors(io.stderr, io.env);
  await io.stderr.write(`${red('sluice:')} ${oneLine(explainUnknownModel(model, state))}\n`);
  return EXIT.failed;
}

async function readRequest(file: string, io: CliIo): Promise<unknown> {
  const text = (await readFileBytes(file, io)).toString();
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${oneLine(file)} is not JSON; --request needs the body of a request`, { cause: error });
  }
}

function readModel(body: unknown): string | undefined {
  const model = typeof body === 'object' && body !== null && 'model' in body ? body.model : undefined;
  return typeof model === 'string' ? model : undefined;
}

async function readState(config: string | undefined, io: CliIo): Promise<GatewayState> {
  const file = config ?? findConfig(io.folder);
  try {
    const source =
      file === undefined ? createDefaultSource() : await loadWhole(file, (await readFileBytes(file, io)).toString(), io.env);
    const unset = source.missing.filter(({ path }) => PROVIDER_SECRET.test(path.join('.')));
    for (const { path, message } of unset)
      await io.stderr.write(`sluice: ${oneLine(formatPath(path))}: ${oneLine(message)}; the route does not depend on it\n`);
    const missing = source.missing.filter((problem) => !unset.includes(problem));
    return resolveConfig({ ...source, missing }, { env: io.env, secrets: new SecretRegistry() });
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** Secrets that are needed for sending only. */
const PROVIDER_SECRET = /^providers\..*\.(api_keys?(\.\d+)?|headers\.[^.]+)$/;

/** The protocol of a request body, which decides how it is read. */
function chooseProtocol(name: string | undefined, body: unknown): ProtocolId {
  const found = Object.values(CODECS).find(({ id }) => id === name);
  if (name !== undefined && !found) throw new UsageError(`--from must be one of ${Object.keys(CODECS).join(', ')}`);
  if (found) return found.id;
  const fields: Readonly<Record<string, unknown>> = typeof body === 'object' && body !== null ? { ...body } : {};
  return BODY_FIELDS.find(([field]) => fields[field] !== undefined)?.[1] ?? 'openai-chat';
}

/** Fields that only one protocol has. */
const BODY_FIELDS: readonly (readonly [string, ProtocolId])[] = [
  ['contents', 'gemini'],
  ['input', 'openai-responses'],
  ['system', 'anthropic-messages'],
  ['thinking', 'anthropic-messages'],
];

function decodeBody(client: ProtocolId, body: unknown): CanonicalRequest | undefined {
  if (body === undefined) return undefined;
  try {
    return decodeRequest(body, { from: CODECS[client] });
  } catch (error) {
    throw new UsageError(`the request is not valid for ${client}: ${oneLine(String(error))}; name its protocol with --from`, {
      cause: error,
    });
  }
}

function readHeader(text: string | undefined): Record<string, string> {
  if (text === undefined) return {};
  const colon = text.indexOf(':');
  if (colon < 1) throw new UsageError('--header must be "name: value"');
  return { [text.slice(0, colon).trim().toLowerCase()]: text.slice(colon + 1).trim() };
}

/** Pauses of a running gateway; undefined when none runs or it does not permit its admin API. */
async function readPaused({ key, ...options }: Options, io: CliIo): Promise<readonly PausedModel[] | undefined> {
  // Standard input was read already, and has no gateway.
  if (options.config === '-' && options.url === undefined) return undefined;
  const found = await findGateway(options, io);
  if (found.kind === 'none') return undefined;
  if (found.kind === 'named') await requireGateway(found);
  try {
    return await new GatewaySource(new AdminClient(found.url, key ?? (io.env['SLUICE_ADMIN_KEY'] || undefined))).listPaused();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    await io.stderr.write(`sluice: health is unknown: ${oneLine(error.message)}\n`);
    return undefined;
  }
}

/** Where a request goes, and why. */
interface Route {
  readonly requested: string;
  readonly rule: Rule | null;
  /** The model that is used: that of the rule, or the requested one. */
  readonly model: string;
  readonly affinityMs: number | null;
  /** Whether the request names its session. */
  readonly session: boolean;
  readonly candidates: readonly ExplainedCandidate[];
}

interface ExplainedCandidate {
  readonly candidate: Candidate;
  readonly health: 'up' | 'paused' | 'unknown';
  readonly pausedMs: number | null;
  /** Its share of the requests of its tier, by weights. */
  readonly share: number;
  /** US dollars per million tokens, three parts input and one part output; null when it is unknown. */
  readonly price: number | null;
  readonly reason: string;
}

function explainCandidates(
  candidates: readonly Candidate[],
  { prices }: Directory,
  paused: readonly PausedModel[] | undefined,
): ExplainedCandidate[] {
  const explained = candidates.map((candidate) => {
    const { tier, provider, model, label, weight } = candidate;
    const peers = candidates.filter((other) => other.tier === tier);
    const pause = paused?.find((entry) => entry.provider === provider.id && entry.model === model && isEndpoint(label, entry));
    const found = findPrice(candidate, prices);
    return {
      candidate,
      health: paused === undefined ? ('unknown' as const) : pause ? ('paused' as const) : ('up' as const),
      pausedMs: pause?.remaining_ms ?? null,
      share: weight / peers.reduce((sum, peer) => sum + peer.weight, 0),
      price: found === undefined ? null : found / PRICE_PARTS / 1e6,
      peers: peers.length,
    };
  });
  const sorted = explained.sort((a, b) => a.candidate.tier - b.candidate.tier || compareInTier(a, b));
  return sorted.map(({ peers, ...entry }) => ({ ...entry, reason: explainPlace(entry, peers) }));
}

/** Three parts input, one part output; prices are in trillionths of a dollar per token. */
const PRICE_PARTS = 4;

const isEndpoint = (label: string, { endpoint }: PausedModel): boolean => endpoint === null || label.endsWith(`(${endpoint})`);

type Compared = Pick<ExplainedCandidate, 'candidate' | 'share' | 'price'>;

const compareInTier = (a: Compared, b: Compared): number =>
  a.candidate.sharing === 'cheapest'
    ? (a.price ?? Number.MAX_VALUE) - (b.price ?? Number.MAX_VALUE)
    : a.candidate.sharing === 'weighted'
      ? b.share - a.share
      : 0;

function explainPlace(
  { candidate: { tier, sharing }, health, pausedMs, share, price }: Omit<ExplainedCandidate, 'reason'>,
  peers: number,
) {
  const when = tier === 0 ? '' : ', when all before have failed';
  const pause = health === 'paused' ? `, paused: tried again in ${Math.ceil((pausedMs ?? 0) / 1000)} s` : '';
  if (peers === 1) return `${tier === 0 ? 'tried first' : 'tried when all before have failed'}${pause}`;
  const reasons = {
    weighted: `gets ${Math.round(share * 100)} % of the requests`,
    least_busy: 'the one with the fewest running requests is first',
    fastest: 'the one with the shortest time to the first token is first',
    cheapest: price === null ? 'last: its price is unknown' : 'by price, the lowest first',
  } as const satisfies Record<Candidate['sharing'], string>;
  return `${reasons[sharing]}${when}${pause}`;
}

const describeRoute = ({ requested, rule, model, affinityMs, session, candidates }: Route): object => ({
  requested,
  rule: rule?.name ?? null,
  model,
  affinity_ms: affinityMs,
  has_session: session,
  candidates: candidates.map(({ candidate, health, pausedMs, share, price, reason }) => ({
    target: candidate.label,
    provider: candidate.provider.id,
    model: candidate.model,
    protocol: candidate.provider.protocol,
    tier: candidate.tier,
    strategy: candidate.isShared ? candidate.sharing : 'order',
    share: candidate.sharing === 'weighted' ? Number(share.toFixed(4)) : null,
    price: price === null ? null : Number(price.toFixed(6)),
    health,
    paused_ms: pausedMs,
    reason,
  })),
});

function formatRoute(route: Route, isExplained: boolean, io: CliIo): string {
  const { requested, rule, model, candidates } = route;
  if (!isExplained) return candidates.map(({ candidate }) => `${oneLine(candidate.label)}\n`).join('');
  const { bold, dim } = chooseColors(io.stdout, io.env);
  const rows = candidates.map(({ candidate, health, price, reason }, i) => [
    `${i + 1}.`,
    oneLine(candidate.label),
    health === 'unknown' ? '' : health,
    price === null ? 'price unknown' : `$${price.toFixed(2)}`,
    reason,
  ]);
  return [
    `${bold(oneLine(requested))}: ${rule ? `rule "${rule.name}" uses ${oneLine(model)}` : 'no rule matches'}`,
    ...formatColumns(rows).map((line) => `  ${line}`),
    ...(rows.length > 0 ? [dim(`  ${explainAffinity(route)}`)] : []),
    '',
  ].join('\n');
}

function explainAffinity({ affinityMs, session, candidates }: Route): string {
  if (!candidates.some(({ candidate }) => candidate.isShared)) return 'affinity: not needed, no targets share requests';
  if (affinityMs === null) return 'affinity: off';
  const by = session ? 'by the session of the request' : 'by a session, or else by the beginning of the prompt';
  return `affinity: a conversation stays with its target for ${affinityMs / 1000} s, ${by}`;
}
