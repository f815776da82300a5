/** Imports the configuration of claude-code-router (config.json). */

import type { ProtocolId } from '@sluice/core';
import { findProxyFault } from '../config/network.ts';
import { isLoopback } from '../providers/base-url.ts';
import type { Draft, DraftProvider, DraftTarget } from './draft.ts';
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
  const fallback = root.section('fallback');
  if (router) new RouteReader(ids, draft, fallback).read(router);
  fallback?.finish({}, 'is not a route that was carried over');
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
  CLAUDE_PATH: 'use "sluice run" and "sluice env" for clients',
  REWRITE_SYSTEM_PROMPT: 'system prompts are passed on as they are',
  LOG_FILE: 'logs go to standard output; log.level sets how much',
  forceUseImageAgent: 'images are sent to the model of the route; no tool describes them',
};

/** Names that the program reads, then those of its documentation. */
const NAMES = {
  name: ['name', 'NAME'],
  address: ['api_base_url', 'baseurl', 'baseUrl', 'HOST'],
  key: ['api_key', 'apikey', 'apiKey', 'APIKEY'],
  proxy: ['HTTPS_PROXY', 'https_proxy', 'httpsProxy', 'PROXY_URL'],
} as const satisfies Record<string, readonly string[]>;

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
  const found = root.firstText(NAMES.proxy);
  if (!found) return undefined;
  const { key, text } = found;
  const variable = readVariable(text);
  if (variable !== undefined) return draft.reference(variable);
  if (findProxyFault(text) !== undefined) {
    root.note(key, 'dropped', 'must be the http:// or https:// URL of a proxy');
    return undefined;
  }
  return text.includes('@') ? draft.secret(text, 'SLUICE_PROXY', root.at(key)) : draft.plain(text, root.at(key));
}

function readProvider(entry: Section, { draft, proxy, ids }: Context): void {
  const name = entry.firstText(NAMES.name)?.text;
  const address = entry.firstText(NAMES.address);
  if (name === undefined || address === undefined) {
    entry.note('', 'dropped', 'a provider needs name and api_base_url');
    return;
  }
  const transformers = listTransformers(entry);
  const login = transformers.find(({ name: one }) => LOGINS.has(one));
  if (login) {
    entry.note('', 'dropped', `the login of transformer "${login.name}" is not supported`);
    return;
  }
  const place = readAddress(address, entry, draft, transformers);
  if (!place) return;
  const { base, protocol } = place;
  const row = findByAddress(base, protocol);
  const settings: DraftProvider = {
    ...(row === undefined ? { protocol, base_url: base } : { extends: row }),
    ...readKey(entry, row === undefined ? `${name}_API_KEY` : findKeyVariable(row), draft),
    ...(proxy !== undefined && { proxy }),
  };
  if (row === undefined && isBare(base))
    entry.note(address.key, 'changed', 'has no path before the endpoint, where Sluice adds that of the protocol, such as /v1');
  ids.set(name, draft.provider(name, settings, entry.at('api_key')));
  for (const key of ['models', 'MODELS']) entry.list(key); // any model of a provider can be requested
  for (const one of transformers) noteTransformer(one, draft);
  entry.finish();
}

const isBare = (base: string): boolean => URL.canParse(base) && new URL(base).pathname === '/';

function readKey(entry: Section, suggestion: string, draft: Draft): { api_key?: string } {
  const found = entry.firstText(NAMES.key);
  if (!found) return {};
  const variable = readVariable(found.text);
  return {
    api_key: variable === undefined ? draft.secret(found.text, suggestion, entry.at(found.key)) : draft.reference(variable),
  };
}

interface Place {
  base: string;
  protocol: ProtocolId;
}

/** The source sends requests to the address itself; its end, or else a transformer, shows the protocol. */
function readAddress(
  { key, text }: { key: string; text: string },
  entry: Section,
  draft: Draft,
  transformers: readonly Transformer[],
): Place | undefined {
  const implied = transformers.flatMap(({ name }) => (Object.hasOwn(PROTOCOLS, name) ? (PROTOCOLS[name] ?? []) : []))[0];
  const variable = readVariable(text);
  if (variable !== undefined) {
    entry.note(key, 'changed', `must be a base URL here, without the endpoint: set ${variable} to such a one`);
    return { base: draft.reference(variable), protocol: implied ?? 'openai-chat' };
  }
  const { base, protocol } = splitEndpoint(text);
  if (text.includes('$')) {
    entry.note(key, 'dropped', 'has a reference to a variable inside; write the address in full');
    return undefined;
  }
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol) || /[?#@]/.test(base)) {
    entry.note(key, 'dropped', 'must be an http:// or https:// URL without user, query and fragment');
    return undefined;
  }
  if (protocol === undefined && key === 'api_base_url')
    entry.note(key, 'changed', 'does not end with a known endpoint; it is the base URL here, and the endpoint is added');
  return { base, protocol: protocol ?? implied ?? 'openai-chat' };
}

/** A transformer of a provider, or of one of its models. */
interface Transformer {
  readonly path: string;
  readonly name: string;
  readonly hasOptions: boolean;
}

/** Transformers adapt requests to providers, which codecs and profiles do here. */
function listTransformers(entry: Section): Transformer[] {
  const describe = (path: string, used: readonly unknown[]): Transformer[] =>
    used.map((one) => ({
      path,
      name: String(Array.isArray(one) ? one[0] : one),
      hasOptions: Array.isArray(one) && one.length > 1,
    }));
  const transformer = entry.section('transformer');
  const scoped = (transformer?.keys ?? []).flatMap((scope) => {
    const path = transformer?.at(scope) ?? '';
    if (scope === 'use') return describe(path, transformer?.list('use') ?? []);
    const section = transformer?.section(scope);
    const used = describe(path, section?.list('use') ?? []);
    section?.finish();
    return used;
  });
  return [...scoped, ...describe(entry.at('transformers'), entry.list('transformers'))];
}

function noteTransformer({ path, name, hasOptions }: Transformer, draft: Draft): void {
  if (ADAPTED.has(name) && !hasOptions) return;
  const reason =
    TRANSFORMER_REASONS[name] ?? (ADAPTED.has(name) ? 'its options are not supported' : 'code for transformers is not supported');
  draft.note(path, 'dropped', `transformer "${name}": ${reason}`);
}

/** Protocols by the transformers that speak them. */
const PROTOCOLS: Readonly<Record<string, ProtocolId>> = {
  Anthropic: 'anthropic-messages',
  gemini: 'gemini',
  'openai-responses': 'openai-responses',
};

/** Transformers that log in at a cloud, or with the account of another program. */
const LOGINS: ReadonlySet<string> = new Set(['vertex-gemini', 'vertex-claude', 'gemini-cli', 'qwen-cli', 'rovo-cli']);

/** Transformers whose work the codecs and profiles do. */
const ADAPTED: ReadonlySet<string> = new Set([
  'Anthropic',
  'anthropic',
  'deepseek',
  'gemini',
  'groq',
  'openai',
  'openai-responses',
  'openrouter',
  'vercel',
  'cerebras',
  'maxcompletiontokens',
  'reasoning',
  'cleancache',
  'enhancetool',
  'streamoptions',
]);

const TRANSFORMER_REASONS: Readonly<Record<string, string | undefined>> = {
  maxtoken: 'set max_output_tokens in the profile of the provider',
  tooluse: 'tools are passed on as they are',
  sampling: 'fields that a target does not support are dropped',
  customparams: 'fields of requests cannot be added; let clients send them',
  forcereasoning: 'let clients request thinking',
  openrouter: 'the choice of upstreams is a field of requests; let clients send it',
  reasoning: 'let clients choose whether to think',
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

/** Reads routes: `provider,model` becomes `provider/model`, and the fallbacks of a route follow it. */
class RouteReader {
  readonly #ids: ReadonlyMap<string, string>;
  readonly #draft: Draft;
  readonly #fallback: Section | undefined;

  constructor(ids: ReadonlyMap<string, string>, draft: Draft, fallback: Section | undefined) {
    this.#ids = ids;
    this.#draft = draft;
    this.#fallback = fallback;
  }

  read(router: Section): void {
    const threshold = router.number('longContextThreshold') ?? DEFAULT_THRESHOLD;
    const long = { input_tokens_above: Math.max(1, Math.trunc(threshold)) };
    for (const [name, when = long] of ROUTES) {
      const targets = this.#readTargets(router, name);
      if (targets.length > 0) this.#draft.rules.push({ name, when, use: this.#draft.pool(targets, 'order').target });
    }
    const targets = this.#readTargets(router, 'default');
    if (targets.length > 0) this.#draft.model('*', targets);
    router.finish({}, 'is not a route that Sluice knows; use rules');
  }

  /** The model of a route and its fallbacks; none when the route has no model. */
  #readTargets(router: Section, name: string): DraftTarget[] {
    const text = router.text(name);
    const first = text === undefined ? undefined : this.#readModel(text, router.at(name));
    if (first === undefined) return [];
    const others = this.#fallback?.texts(name).flatMap((one) => this.#readModel(one, this.#fallback?.at(name) ?? '') ?? []);
    return [...new Set([first, ...(others ?? [])])].map((target) => ({ target }));
  }

  #readModel(text: string, path: string): string | undefined {
    const comma = text.indexOf(',');
    const provider = this.#ids.get(text.slice(0, Math.max(0, comma)).trim());
    const model = text.slice(comma + 1).trim();
    if (provider === undefined || model === '' || model.includes('*')) {
      this.#draft.note(path, 'dropped', 'must be "provider,model" with a provider that was carried over');
      return undefined;
    }
    const plain = this.#draft.plain(model, path);
    return plain === undefined ? undefined : `${provider}/${plain}`;
  }
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
