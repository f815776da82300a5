import type { ProtocolId } from '@sluice/core';
import { CODECS, choosePassRequest } from '@sluice/core/engine';
import { chooseProtocol, DEMO_MODELS } from '@sluice/lab/demo';
import { type ConfiguredProvider, DEMO_ID, listEndpoints, unlock } from '../config/providers.ts';
import { explainUnknownModel, type GatewayState, type ModelTarget } from '../config/resolve.ts';
import { sharesEndpoints } from '../exchange/known-endpoints.ts';
import type { Candidate, Directory, ProviderEndpoint } from '../exchange/types.ts';
import { UNLIMITED } from '../keys/caller.ts';
import { Gatekeeper } from '../keys/gatekeeper.ts';
import type { KeyBook } from '../keys/key-book.ts';
import { createPriceTable } from '../prices/table.ts';
import { isLoopback } from '../providers/base-url.ts';
import { findRow, PROVIDER_IDS } from '../providers/lookup.ts';
import { placeEndpoint } from '../routing/endpoints.ts';
import { RuleTable } from '../routing/rules.ts';
import type { Transport } from '../upstream/dialer.ts';
import { memo } from '../upstream/memo.ts';

/** Resolves models by a configuration. `demo`: the built-in model. `book`: the keys of the store. */
export function createDirectory(state: GatewayState, demo: Transport, book?: KeyBook): Directory {
  const createEndpoint = (configured: ConfiguredProvider): ProviderEndpoint => {
    const { origin, times, network, passthrough } = configured;
    return { provider: unlock(configured), origin, times, network, passthrough };
  };
  const createCandidate = (target: ModelTarget, configured: ConfiguredProvider, client: ProtocolId): Candidate => {
    const { model, isConfigured, tier, sharing, weight } = target;
    const place = placeEndpoint(target.provider, configured);
    const endpoint = configured.isDemo
      ? createDemoEndpoint(configured, chooseProtocol(model, client), demo)
      : createEndpoint(configured);
    const { protocol, profile } = endpoint.provider;
    const codec = CODECS[protocol];
    const known = codec.profileFor(configured.profileId, model);
    return {
      ...endpoint,
      model,
      key: `${endpoint.provider.id}/${model}${place.suffix}`,
      label: `${endpoint.provider.id}/${model}${place.title}`,
      tier,
      sharing,
      weight: weight / place.count,
      isShared: false,
      endpointId: place.count > 1 ? endpoint.provider.id + place.suffix : undefined,
      profile: Object.freeze({ ...known, ...profile }),
      passRequest: choosePassRequest(codec, { id: configured.profileId, ...(profile && { profile }) }, model),
      repair: configured.repair,
      drains: configured.drains,
      onMalformed: configured.onMalformed,
      isConfigured,
    };
  };
  return {
    resolve: rememberTargets((model, client) =>
      markShared(
        (state.resolveModel(model, client) ?? []).flatMap((target) =>
          listEndpoints(target.provider).map((configured) => createCandidate(target, configured, client)),
        ),
      ),
    ),
    rules: state.rules.length > 0 ? new RuleTable(state.rules, (id) => state.providers.has(id)) : undefined,
    affinityMs: state.affinityMs,
    modelInAnswer: state.modelInAnswer,
    providersFor: (protocol) => {
      const rank = ({ provider, passthrough }: ConfiguredProvider): number =>
        (passthrough === 'off' ? 2 : 0) + (provider.protocol === protocol ? 0 : 1);
      return [...state.providers.values()]
        .filter(({ provider, isDemo }) => sharesEndpoints(provider.protocol, protocol) && !isDemo)
        .toSorted((a, b) => rank(a) - rank(b))
        .map(createEndpoint);
    },
    ...listClientModels(state, createEndpoint),
    prices: createPriceTable(state),
    recovery: state.recovery,
    budgets: state.budgets,
    proxies: state.trustedProxies,
    gatekeeper: new Gatekeeper(
      state.keys.map(({ key, caller }) => ({ key: key.reveal(), caller })),
      book,
    ),
    metricsGatekeeper: new Gatekeeper(state.metricsKey ? [{ key: state.metricsKey.reveal(), caller: METRICS_CALLER }] : []),
    whyUnknown: (model) => explainUnknownModel(model, state),
    privateHosts: listPrivateHosts(state),
  };
}

/** The holder of the metrics key, which is no client. */
const METRICS_CALLER = { id: 'metrics', name: 'metrics', tags: [], policy: UNLIMITED };

/** Marks candidates that have others in their tier. */
function markShared(candidates: readonly Candidate[]): readonly Candidate[] {
  if (candidates.length < 2) return candidates;
  return candidates.map((candidate) => ({
    ...candidate,
    isShared: candidates.some((other) => other !== candidate && other.tier === candidate.tier),
  }));
}

/** Names resolved for one client protocol. Clients can invent any number of names. */
const NAME_LIMITS = { entries: 1000, bytes: 256 * 1024 };

/** A state does not change, so every name is resolved once for each client protocol. */
function rememberTargets(resolve: Directory['resolve']): Directory['resolve'] {
  const byProtocol = new Map<ProtocolId, (model: string) => readonly Candidate[]>();
  return (model, client) => {
    const known = byProtocol.get(client) ?? memo(NAME_LIMITS, (name: string) => resolve(name, client));
    byProtocol.set(client, known);
    return known(model);
  };
}

/** Configured models are the only ones that clients can list. */
function listClientModels(
  { models, providers }: GatewayState,
  createEndpoint: (of: ConfiguredProvider) => ProviderEndpoint,
): Pick<Directory, 'models' | 'unlisted'> {
  if (models.length > 0) return { models, unlisted: [] };
  const real = [...providers.values()].filter(({ isDemo }) => !isDemo);
  return { models: real.length > 0 ? [] : DEMO_MODELS.map((name) => `${DEMO_ID}/${name}`), unlisted: real.map(createEndpoint) };
}

/** Hosts that only the operator knows: neither a vendor's nor this machine. */
function listPrivateHosts({ providers }: GatewayState): string[] {
  const endpoints = [...providers.values()].filter(({ isDemo }) => !isDemo).flatMap(listEndpoints);
  const hosts = endpoints.map(({ origin }) => new URL(origin).hostname);
  return [...new Set(hosts)].filter((host) => !isLoopback(host) && !VENDOR_HOSTS.has(host));
}

const VENDOR_HOSTS: ReadonlySet<string> = new Set(
  PROVIDER_IDS.flatMap((id) => {
    const address = findRow(id)?.base_url;
    return address === undefined ? [] : [new URL(address).hostname];
  }),
);

/** The demo model has no host: only the path of its configured address is used. */
function createDemoEndpoint(
  { id, origin, times, network, passthrough }: ConfiguredProvider,
  protocol: ProtocolId,
  transport: Transport,
): ProviderEndpoint & Pick<Candidate, 'transport'> {
  // Instructions after the prompt keep their role, because the demo reads the last user text.
  const profile = { mid_system: true };
  return { provider: { id, protocol, base_url: origin, profile }, origin, times, network, passthrough, transport };
}
