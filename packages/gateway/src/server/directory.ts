import { CODECS, type ProtocolId, type Provider } from '@sluice/core';
import { type ConfiguredProvider, unlock } from '../config/provider.ts';
import { type GatewayState, whyUnknown } from '../config/resolve.ts';
import type { Candidate, Directory, Speaker } from '../exchange/services.ts';
import { isLoopback } from '../providers/base-url.ts';
import { PROVIDER_IDS, rowOf } from '../providers/lookup.ts';
import { Gatekeeper } from './auth.ts';

/** The configuration as exchanges see it. `demo`: where the built-in model listens. */
export function createDirectory(state: GatewayState, demo: string): Directory {
  const speaker = (configured: ConfiguredProvider, client: ProtocolId): Speaker => {
    const { isDemo, origin, times } = configured;
    return isDemo ? { provider: demoFor(client, demo), origin: demo, times } : { provider: unlock(configured), origin, times };
  };
  const candidate = (configured: ConfiguredProvider, model: string, client: ProtocolId): Candidate => {
    const speaking = speaker(configured, client);
    const { protocol, profile } = speaking.provider;
    const known = CODECS[protocol].profileFor(configured.profileId, model);
    return { ...speaking, model, profile: { ...known, ...profile }, repair: configured.repair };
  };
  return {
    resolve: (model, client) =>
      (state.resolveModel(model, client) ?? []).map((target) => candidate(target.provider, target.model, client)),
    speaker: (protocol) => {
      const found = [...state.providers.values()].find(({ provider, isDemo }) => provider.protocol === protocol && !isDemo);
      return found && speaker(found, protocol);
    },
    models: state.models.length > 0 ? state.models : [...state.providers.keys()].map((id) => `${id}/*`),
    gatekeeper: new Gatekeeper(state.keys.map((key) => key.reveal())),
    whyUnknown: (model) => whyUnknown(model, state),
    privateHosts: privateHosts(state),
  };
}

/** Addresses that only the operator knows: neither those of the vendors, nor this machine. */
function privateHosts({ providers }: GatewayState): string[] {
  const hosts = [...providers.values()].filter(({ isDemo }) => !isDemo).map(({ origin }) => new URL(origin).hostname);
  return [...new Set(hosts)].filter((host) => !isLoopback(host) && !VENDOR_HOSTS.has(host));
}

const VENDOR_HOSTS: ReadonlySet<string> = new Set(
  PROVIDER_IDS.flatMap((id) => {
    const address = rowOf(id)?.base_url;
    return address === undefined ? [] : [new URL(address).hostname];
  }),
);

/** The demo is asked in the client's own language: it speaks all four. */
const demoFor = (protocol: ProtocolId, base_url: string): Provider => ({ id: 'demo', protocol, base_url });
