/** Takes requests to the gate: which limits apply to them, and what they can use and cost. */

import type { HeaderBag } from '@sluice/core';
import type { Maybe } from '../admission/backend.ts';
import { Demand, type DemandTarget } from '../admission/demand.ts';
import type { Admission, Rules } from '../admission/gate.ts';
import type { Work } from '../admission/work.ts';
import { type Destination, findCountedPath, type PassedRequest } from '../exchange/destination.ts';
import { type MeasuredRequest, measureModelRequest, measurePassed } from '../exchange/measure.ts';
import type { ExchangeRecord } from '../exchange/record.ts';
import type { Candidate, Services } from '../exchange/types.ts';
import { readHeaderText } from '../http/header-text.ts';
import { ANYBODY, type Caller } from '../keys/caller.ts';
import { cleanElement, MAX_TAGS } from '../store/index.ts';
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
  const work = measureModelRequest(route.type, read, route.client);
  return services.gate.admit({
    id,
    rules,
    demand: work === 'free' ? undefined : buildDemand(incoming, record, read.model, work),
  });
}

/** Admits a request that repeats a kept response, which costs nothing. Throws or rejects with the refusal. */
export function admitRepeated(incoming: Incoming, record: ExchangeRecord, services: Services): Maybe<Admission> | undefined {
  const rules = findRules(incoming, record, services);
  return rules && services.gate.admit({ id: incoming.id, rules, demand: undefined });
}

/** A request that has been read. */
interface ReadRequest extends MeasuredRequest {
  model: string;
}

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
  { directory: { prices }, headers }: Incoming,
  record: ExchangeRecord,
  passed: PassedRequest,
  destination: Destination,
): Demand | string | undefined {
  const { method, route } = passed;
  if (!CHARGED_METHODS.has(method)) return undefined;
  const { endpoint, model, body, fields } = destination;
  const path = findCountedPath(passed, destination);
  const work =
    path === undefined ? undefined : measurePassed({ path, body, type: headers['content-type'] ?? '', fields }, route.client);
  if (model === undefined || !work) return `${method} ${route.path.split('?', 1)[0]}`;
  const target: DemandTarget = { provider: endpoint.provider.id, model, maxOutput: undefined, isConverted: false };
  return new Demand({ work, targets: [target], prices, at: readTime(record) });
}

const CHARGED_METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

function findRules(
  { caller = ANYBODY, headers, directory: { budgets } }: Incoming,
  record: ExchangeRecord,
  { gate }: Services,
): Rules | undefined {
  // Tags matter only where they have budgets.
  const tags = budgets.length === 0 ? caller.tags : readTags(headers, caller);
  return gate.findRules({ caller, tags, budgets, at: record.receivedAt });
}

function buildDemand({ route, directory }: Incoming, record: ExchangeRecord, model: string, work: Work): Demand {
  const { client } = route;
  return new Demand({
    work,
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
  maxToolUses: profile.max_tool_uses,
  isConverted: provider.protocol !== client,
});

/** `team=a, project=b`, after the tags of the key. A client cannot choose another value for what its key sets. */
export function readTags(headers: HeaderBag, { tags }: Pick<Caller, 'tags'> = ANYBODY): readonly string[] {
  const header = headers['x-sluice-tags'];
  if (header === undefined) return tags;
  const names = new Set(tags.map(readTagName));
  const own = readHeaderText(header)
    .split(',', MAX_HEADER_TAGS)
    // As the ledger has them, from which budgets are read after a restart.
    .map((tag) => cleanElement(tag.trim()));
  return [...new Set([...tags, ...own.filter((tag) => tag !== '' && !names.has(readTagName(tag)))])];
}

/** `team` of `team=a`; the whole of a tag without a value. */
const readTagName = (tag: string): string => tag.split('=', 1)[0] ?? tag;

const MAX_HEADER_TAGS = MAX_TAGS / 2;
