/** Takes requests to the gate: which limits apply to them, and what they can use and cost. */

import type { HeaderBag, InterfaceType } from '@sluice/core';
import type { Maybe } from '../admission/backend.ts';
import { Demand, type DemandTarget } from '../admission/demand.ts';
import type { Admission, Rules } from '../admission/gate.ts';
import { type Destination, isCounted, type PassedRequest } from '../exchange/destination.ts';
import type { ExchangeRecord } from '../exchange/record.ts';
import type { Candidate, Services } from '../exchange/types.ts';
import { ANYBODY, type Caller } from '../keys/caller.ts';
import { isRecord } from '../routing/prompt-blocks.ts';
import type { Incoming } from './handle.ts';

/** Admits a request for a model; undefined when it has no limits. Throws or rejects with the refusal. */
export function admitModelRequest(
  incoming: Incoming,
  record: ExchangeRecord,
  read: ReadRequest,
  services: Services,
): Maybe<Admission> | undefined {
  const rules = findRules(incoming, record, services);
  if (!rules) return undefined;
  const { id, route } = incoming;
  const generates = GENERATES[route.type];
  return services.gate.admit({
    id,
    rules,
    demand: generates === 'free' ? undefined : buildDemand(incoming, record, read, generates),
  });
}

/** A request that has been read. */
interface ReadRequest {
  model: string;
  /** The parsed body, and its size. */
  body: unknown;
  bytes: number;
}

/** Whether responses of an endpoint contain generated tokens; `free`: it is not charged. */
const GENERATES = {
  CHAT: true,
  COUNT_TOKENS: 'free',
  EMBEDDINGS: false,
  RERANK: false,
  AUDIO: true,
  IMAGES: true,
  PASSTHROUGH: true,
  MODELS: 'free',
  MODEL_INFO: 'free',
} as const satisfies Record<InterfaceType, boolean | 'free'>;

/** Admits a request that is only forwarded; undefined when it has no limits. Throws or rejects with the refusal. */
export function admitPassed(
  incoming: Incoming,
  record: ExchangeRecord,
  { passed, destination }: { passed: PassedRequest; destination: Destination },
  services: Services,
): Maybe<Admission> | undefined {
  const rules = findRules(incoming, record, services);
  return (
    rules && services.gate.admit({ id: incoming.id, rules, demand: findPassedDemand(incoming, record, passed, destination) })
  );
}

/** Reading and deleting is not charged. What is done after the response, as in a batch, cannot be counted. */
function findPassedDemand(
  { directory: { prices } }: Incoming,
  record: ExchangeRecord,
  passed: PassedRequest,
  destination: Destination,
): Demand | string | undefined {
  const { method, route } = passed;
  if (!CHARGED_METHODS.has(method)) return undefined;
  const { endpoint, model, body } = destination;
  if (model === undefined || !isCounted(passed, destination)) return `${method} ${route.path.split('?', 1)[0]}`;
  const target: DemandTarget = { provider: endpoint.provider.id, model, maxOutput: undefined, isConverted: false };
  return new Demand({ bytes: body.length, output: UNLIMITED_OUTPUT, targets: [target], prices, at: readTime(record) });
}

const CHARGED_METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

const UNLIMITED_OUTPUT = { tokens: undefined, choices: 1 } as const;

function findRules(
  { caller = ANYBODY, headers, directory: { budgets } }: Incoming,
  record: ExchangeRecord,
  { gate }: Services,
): Rules | undefined {
  // Tags matter only where they have budgets.
  const tags = budgets.length === 0 ? caller.tags : readTags(headers, caller);
  return gate.findRules({ caller, tags, budgets, at: record.receivedAt });
}

function buildDemand(
  { route, directory }: Incoming,
  record: ExchangeRecord,
  { model, body, bytes }: ReadRequest,
  generates: boolean,
): Demand {
  const { client } = route;
  const limit = isRecord(body) ? client.readOutputLimit?.(body) : undefined;
  return new Demand({
    bytes,
    output: generates ? (limit ?? UNLIMITED_OUTPUT) : 'none',
    targets: directory.resolve(model, client.id).map((candidate) => toTarget(candidate, client.id)),
    prices: directory.prices,
    at: readTime(record),
  });
}

const readTime = ({ receivedAt }: ExchangeRecord): number => receivedAt || Date.now();

const toTarget = ({ provider, model, profile }: Candidate, client: string): DemandTarget => ({
  provider: provider.id,
  model,
  maxOutput: profile.max_output_tokens < Number.MAX_SAFE_INTEGER ? profile.max_output_tokens : undefined,
  isConverted: provider.protocol !== client,
});

/** `team=a, project=b`, after the tags of the key. A client cannot choose another value for what its key sets. */
export function readTags(headers: HeaderBag, { tags }: Pick<Caller, 'tags'> = ANYBODY): readonly string[] {
  const header = headers['x-sluice-tags'];
  if (header === undefined) return tags;
  const names = new Set(tags.map(readTagName));
  const own = header.split(',', MAX_TAGS).map((tag) => tag.trim());
  return [...new Set([...tags, ...own.filter((tag) => tag !== '' && !names.has(readTagName(tag)))])];
}

/** `team` of `team=a`; the whole of a tag without a value. */
const readTagName = (tag: string): string => tag.split('=', 1)[0] ?? tag;

const MAX_TAGS = 16;
