/** Imports the configuration of claude-code-router (config.json). */

import type { ProtocolId } from '@sluice/core';
import { findProxyFault } from '../config/network.ts';
import { isLoopback } from '../providers/base-url.ts';
import type { Draft, DraftProvider } from './draft.ts';
import { ImportError, type Reasons, type Section } from './section.ts';
import { findByAddress, findKeyVariable, splitEndpoint } from './vendors.ts';

/** Builds a configuration from a parsed config.json. */
export function importClaudeCodeRouter(root: Section, draft: Draft): void {
  const key = root.has('Providers') ? 'Providers' : 'providers';
  if (!root.has(key) && !root.has('Router'))
    throw new ImportError('this is not a configuration of claude-code-router: it has neither "Providers" nor "Router"');
  const proxy = readProxy(root, draft);
  const ids = new Map<string, string>();
  for (const entry of root.sections(key)) readProvider(entry, { draft, proxy, ids });
  const router = root.section('Router');
  if (router) readRouter(router, ids, draft);
  readFallbacks(root.section('fallback'), ids, draft);
  readAccess(root, draft);
  root.finish(ROOT_REASONS);
}

const ROOT_REASONS: Reasons = {
  LOG: 'logs go to standard output; log.level sets how much',
  LOG_LEVEL: 'logs go to standard output; log.level sets how much',
  CUSTOM_ROUTER_PATH: 'code for routing is not supported; use rules',
  NON_INTERACTIVE_MODE: 'not needed',
  StatusLine: 'Sluice has no status line',
  transformers: 'code for transformers is not supported; requests are converted by protocol and profile',
  Profiles: 'use "sluice run" and "sluice env" for clients',
};

interface Context {
  draft: Draft;
  proxy: string | undefined;
  /** Ids of providers by their names in the source. */
  ids: Map<string, string>;
}

/** `$NAME` or `${NAME}`. */
const readVariable = (text: string): string | undefined =>
  /^\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))$/.exec(text)?.slice(1).find(Boolean);

function readProxy(root: Section, draft: Draft): string | undefined {
  const text = root.text('PROXY_URL');
  if (text === undefined) return undefined;
  const variable = readVariable(text);
  if (variable !== undefined) return draft.reference(variable);
  if (findProxyFault(text) !== undefined) {
    root.note('PROXY_URL', 'dropped', 'must be the http:// or https:// URL of a proxy');
    return undefined;
  }
  return text.includes('@') ? draft.secret(text, 'SLUICE_PROXY', root.at('PROXY_URL')) : draft.plain(text, root.at('PROXY_URL'));
}

function readProvider(entry: Section, { draft, proxy, ids }: Context): void {
  const name = entry.text('name');
  const address = entry.text('api_base_url') ?? entry.text('baseurl');
  if (name === undefined || address === undefined) {
    entry.note('', 'dropped', 'a provider needs name and api_base_url');
    return;
  }
  const place = readAddress(address, entry, draft);
  if (!place) return;
  const { base, protocol } = place;
  const row = findByAddress(base, protocol);
  const literal = entry.text('api_key') ?? entry.text('apikey');
  const variable = literal === undefined ? undefined : readVariable(literal);
  const key =
    literal === undefined
      ? undefined
      : variable === undefined
        ? draft.secret(literal, row === undefined ? `${name}_API_KEY` : findKeyVariable(row), entry.at('api_key'))
        : draft.reference(variable);
  const settings: DraftProvider = {
    ...(row === undefined ? { protocol, base_url: base } : { extends: row }),
    ...(key !== undefined && { api_key: key }),
    ...(proxy !== undefined && { proxy }),
  };
  ids.set(name, draft.provider(name, settings, entry.at('api_key')));
  entry.list('models'); // any model of a provider can be requested
  readTransformers(entry, draft);
  entry.finish();
}

function readAddress(address: string, entry: Section, draft: Draft): { base: string; protocol: ProtocolId } | undefined {
  const variable = readVariable(address);
  if (variable !== undefined) return { base: draft.reference(variable), protocol: 'openai-chat' };
  const { base, protocol = 'openai-chat' } = splitEndpoint(address);
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol) || /[?#@]/.test(base)) {
    entry.note('api_base_url', 'dropped', 'must be an http:// or https:// URL without user, query and fragment');
    return undefined;
  }
  const plain = draft.plain(base, entry.at('api_base_url'));
  return plain === undefined ? undefined : { base: plain, protocol };
}

/** Transformers adapt requests to providers, which codecs and profiles do here. */
function readTransformers(entry: Section, draft: Draft): void {
  const transformer = entry.section('transformer');
  for (const scope of transformer?.keys ?? []) {
    const path = transformer?.at(scope) ?? '';
    const used = scope === 'use' ? transformer?.list('use') : transformer?.section(scope)?.list('use');
    for (const one of used ?? []) {
      const name = Array.isArray(one) ? String(one[0]) : String(one);
      if (ADAPTED.has(name) && !Array.isArray(one)) continue;
      draft.note(
        path,
        'dropped',
        `transformer "${name}": ${TRANSFORMER_REASONS[name] ?? 'requests are converted by protocol and profile'}`,
      );
    }
  }
}

/** Transformers whose work the codecs and profiles do. */
const ADAPTED: ReadonlySet<string> = new Set([
  'Anthropic',
  'anthropic',
  'deepseek',
  'gemini',
  'groq',
  'openai',
  'openrouter',
  'reasoning',
  'cleancache',
  'enhancetool',
  'streamoptions',
]);

const TRANSFORMER_REASONS: Readonly<Record<string, string | undefined>> = {
  maxtoken: 'set max_output_tokens in the profile of the provider',
  tooluse: 'tools are passed on as they are',
  sampling: 'fields that a target does not support are dropped',
};

/** The routes, in the order in which the source tries them. */
const ROUTES = [
  ['image', { images: true }],
  ['longContext', undefined],
  ['background', { background: true }],
  ['webSearch', { web_search: true }],
  ['think', { thinking: true }],
] as const;

const DEFAULT_THRESHOLD = 60_000;

function readRouter(router: Section, ids: ReadonlyMap<string, string>, draft: Draft): void {
  const threshold = router.number('longContextThreshold') ?? DEFAULT_THRESHOLD;
  const long = { input_tokens_above: Math.max(1, Math.trunc(threshold)) };
  for (const [name, when = long] of ROUTES) {
    const use = readRoute(router, name, ids, draft);
    if (use !== undefined) draft.rules.push({ name, when, use });
  }
  const target = readRoute(router, 'default', ids, draft);
  if (target !== undefined) draft.model('*', [{ target }]);
  router.finish({}, 'is not a route that Sluice knows; use rules');
}

/** `provider,model` as `provider/model`. */
function readRoute(router: Section, name: string, ids: ReadonlyMap<string, string>, draft: Draft): string | undefined {
  const text = router.text(name);
  return text === undefined ? undefined : readModel(text, router.at(name), ids, draft);
}

function readModel(text: string, path: string, ids: ReadonlyMap<string, string>, draft: Draft): string | undefined {
  const comma = text.indexOf(',');
  const provider = ids.get(text.slice(0, Math.max(0, comma)).trim());
  const model = text.slice(comma + 1).trim();
  if (provider === undefined || model === '' || model.includes('*')) {
    draft.note(path, 'dropped', 'must be "provider,model" with a provider that was carried over');
    return undefined;
  }
  const plain = draft.plain(model, path);
  return plain === undefined ? undefined : `${provider}/${plain}`;
}

/** Fallbacks of the default route are tried after it; those of other routes have no place in rules. */
function readFallbacks(fallback: Section | undefined, ids: ReadonlyMap<string, string>, draft: Draft): void {
  if (!fallback) return;
  const others = fallback.texts('default').flatMap((text) => readModel(text, fallback.at('default'), ids, draft) ?? []);
  draft.appendTargets('*', others);
  fallback.finish({}, 'a rule leads to one model name; add a name with several targets to models, and use it in the rule');
}

function readAccess(root: Section, draft: Draft): void {
  const key = root.text('APIKEY');
  const variable = key === undefined ? undefined : readVariable(key);
  if (key !== undefined) {
    const reference =
      variable === undefined ? draft.secret(key, 'SLUICE_CLIENT_KEY', root.at('APIKEY')) : draft.reference(variable);
    draft.settings.set('auth', { keys: [{ name: 'claude-code-router', key: reference }] });
  }
  const host = root.text('HOST');
  const port = root.number('PORT');
  const isOpen = host !== undefined && key === undefined && !isLoopback(host);
  if (isOpen)
    root.note('HOST', 'changed', 'an address that others can reach needs client keys; the gateway listens on 127.0.0.1');
  const plain = host === undefined || isOpen ? undefined : draft.plain(host, root.at('HOST'));
  const isPort = port !== undefined && Number.isInteger(port) && port > 0 && port < 65_536;
  const listen = { ...(plain !== undefined && { host: plain }), ...(isPort && { port }) };
  if (Object.keys(listen).length > 0) draft.settings.set('listen', listen);
  const timeout = root.number('API_TIMEOUT_MS');
  if (timeout !== undefined && timeout > 0) draft.settings.set('limits', { total_timeout: `${Math.trunc(timeout)}ms` });
}
