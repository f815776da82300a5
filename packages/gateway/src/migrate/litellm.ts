/** Imports the configuration of the LiteLLM proxy (config.yaml). */

import { findFamily } from '../providers/families.ts';
import { findRow } from '../providers/lookup.ts';
import type { Draft, DraftProvider, DraftStrategy, DraftTarget } from './draft.ts';
import { ImportError, type Reasons, type Section } from './section.ts';
import { findKeyVariable, findVendor, splitEndpoint } from './vendors.ts';

/** Builds a configuration from a parsed config.yaml. */
export function importLitellm(root: Section, draft: Draft): void {
  if (!root.has('model_list') && !root.has('general_settings') && !root.has('litellm_settings') && !root.has('router_settings'))
    throw new ImportError('this is not a LiteLLM configuration: it has no "model_list"');
  const credentials = readCredentials(root);
  const groups = new Map<string, DraftTarget[]>();
  for (const entry of root.sections('model_list')) readDeployment(entry, { draft, credentials, groups });
  for (const values of credentials.values()) values.finish();
  const settings = root.section('litellm_settings');
  const router = root.section('router_settings');
  const strategy = readStrategy(router, groups);
  writeModels(draft, groups, strategy, readFallbacks([settings, router], groups, draft));
  readAliases(router, groups, draft);
  if (router) readLimits(router, draft, { timeout: 'timeout' });
  if (settings) readLimits(settings, draft, { timeout: 'request_timeout' });
  if (settings) readSettings(settings, draft);
  router?.finish(ROUTER_REASONS);
  settings?.finish(SETTINGS_REASONS);
  const general = root.section('general_settings');
  if (general) readGeneral(general, draft);
  root.finish(ROOT_REASONS);
}

const ROOT_REASONS: Reasons = {
  environment_variables: 'set these variables in the environment of the gateway; their values were not copied',
  include: 'files are not included; import each of them',
  mcp_servers: 'Sluice is not an MCP gateway',
  guardrails: 'Sluice has no guardrails',
  vector_store_registry: 'Sluice has no vector stores',
};

interface Context {
  draft: Draft;
  credentials: ReadonlyMap<string, Section>;
  /** Targets by model name. */
  groups: Map<string, DraftTarget[]>;
}

/** The entries of `credential_list` by name. */
function readCredentials(root: Section): Map<string, Section> {
  const credentials = new Map<string, Section>();
  for (const entry of root.sections('credential_list')) {
    const name = entry.text('credential_name');
    const values = entry.section('credential_values');
    if (name !== undefined && values) credentials.set(name, values);
  }
  return credentials;
}

function readDeployment(entry: Section, context: Context): void {
  const { draft, groups } = context;
  const name = entry.text('model_name');
  const params = entry.section('litellm_params');
  const model = params?.text('model');
  if (name === undefined || !params || model === undefined) {
    entry.note('', 'dropped', 'a deployment needs model_name and litellm_params.model');
    return;
  }
  const place = findPlace(model, params);
  if (typeof place === 'string') {
    params.note('model', 'dropped', place);
    return;
  }
  const target = readTarget(name, place, params, context);
  if (target === undefined) return;
  const info = entry.section('model_info');
  readPrices(target, [params, info], draft);
  const weight = readWeight(params, entry);
  info?.finish({}, 'facts about models are known or not needed');
  params.finish(PARAM_REASONS, 'defaults for requests are not supported; let clients send them');
  entry.finish();
  groups.set(name, [...(groups.get(name) ?? []), { target, ...(weight !== undefined && { weight }) }]);
}

const PARAM_REASONS: Reasons = {
  stream_timeout: 'set first_event_timeout or idle_timeout of the provider',
  max_retries: 'retries are set for all providers: limits.retries_per_provider',
  num_retries: 'retries are set for all providers: limits.retries_per_provider',
  max_budget: 'providers have no budgets; budgets belong to keys and tags',
  budget_duration: 'providers have no budgets; budgets belong to keys and tags',
  drop_params: 'fields that a target does not support are always dropped, with a note',
  tags: 'targets are not chosen by tags; use rules',
  mock_response: 'use the demo provider for tests',
  region_name: 'targets are not chosen by region',
  max_parallel_requests: 'concurrency is limited for client keys, not for providers',
};

/** Where a deployment sends requests: a known provider or a server of its own, and the model there. */
interface Place {
  row: string | undefined;
  protocol: string;
  model: string;
}

/** The place, or why there is none. */
function findPlace(model: string, params: Section): Place | string {
  const [prefix = '', ...rest] = model.split('/');
  const given = params.text('custom_llm_provider');
  const vendor = given ?? (rest.length > 0 && findVendor(prefix) ? prefix : undefined);
  const name = vendor === prefix && rest.length > 0 ? rest.join('/') : model;
  if (vendor === undefined) {
    const family = rest.length === 0 ? findFamily(model) : undefined;
    if (family) return { row: family, protocol: '', model };
    if (model === '*') return '"*" sends each request to the provider that it names; Sluice does this for provider/model anyway';
    return rest.length > 0
      ? `provider "${prefix}" is not supported`
      : 'the provider of this model is unknown; write provider/model in the source';
  }
  const found = findVendor(vendor);
  if (!found) return `provider "${vendor}" is not supported`;
  if (!found.row) return { row: undefined, protocol: 'openai-chat', model: name };
  const isResponses = name.startsWith('responses/') && findRow(`${found.row}-responses`) !== undefined;
  return isResponses
    ? { row: `${found.row}-responses`, protocol: 'openai-responses', model: name.slice('responses/'.length) }
    : { row: found.row, protocol: '', model: name };
}

function readTarget(name: string, { row, protocol, model }: Place, params: Section, context: Context): string | undefined {
  const { draft, credentials } = context;
  const credential = params.text('litellm_credential_name');
  const shared = credential === undefined ? undefined : credentials.get(credential);
  if (credential !== undefined && !shared)
    params.note('litellm_credential_name', 'dropped', 'is not in credential_list of this file; set api_key of the provider');
  const base = readBase(params, draft) ?? (shared && readBase(shared, draft));
  if (row === undefined && base === undefined) {
    params.note('model', 'dropped', 'a server of this kind needs api_base');
    return undefined;
  }
  const isOwn = row === 'openai' && base !== undefined;
  const id = isOwn || row === undefined ? nameServer(base ?? 'env:server') : row;
  const key = readKey(params, id, draft) ?? (shared && readKey(shared, id, draft));
  const settings: DraftProvider = {
    ...(isOwn || row === undefined ? { protocol: protocol || 'openai-chat' } : { extends: row }),
    ...(base !== undefined && { base_url: base }),
    ...(key !== undefined && { api_key: key }),
    ...readRest(params, id, draft),
  };
  const plain = draft.plain(model, params.at('model'));
  const stars = (text: string): number => text.split('*').length - 1;
  if (plain === undefined) return undefined;
  if (plain === '') {
    params.note('model', 'dropped', 'has no model after the provider');
    return undefined;
  }
  if (stars(name) > 1 || stars(plain) > Math.min(1, stars(name))) {
    params.note('model', 'dropped', 'a name may have one *, and its target one only if the name has one');
    return undefined;
  }
  if (/[^/]\*/.test(name) && /(^|\/)\*/.test(plain))
    params.note('model', 'changed', 'the whole name of the requested model is sent, not only the part that matches *');
  return `${draft.provider(id, settings, params.at('api_key'))}/${plain}`;
}

/** The name of a server without a name, by its host. */
const nameServer = (base: string): string =>
  base.startsWith('env:') ? base.slice('env:'.length).toLowerCase() : new URL(base).hostname;

function readBase(params: Section, draft: Draft): string | undefined {
  const key = params.has('api_base') ? 'api_base' : 'base_url';
  const text = params.text(key);
  if (text === undefined) return undefined;
  const variable = readVariable(text);
  if (variable !== undefined) return draft.reference(variable);
  const { base } = splitEndpoint(text);
  if (URL.canParse(base) && /^https?:$/.test(new URL(base).protocol) && !/[?#@]/.test(base))
    return draft.plain(base, params.at(key));
  params.note(key, 'dropped', 'must be an http:// or https:// URL without user, query and fragment');
  return undefined;
}

function readKey(params: Section, id: string, draft: Draft): string | undefined {
  const text = params.text('api_key');
  if (text === undefined) return undefined;
  const variable = readVariable(text);
  return variable === undefined ? draft.secret(text, findKeyVariable(id), params.at('api_key')) : draft.reference(variable);
}

/** `os.environ/NAME`. */
const readVariable = (text: string): string | undefined => /^os\.environ\/([A-Za-z_]\w*)$/.exec(text)?.[1];

function readRest(params: Section, id: string, draft: Draft): DraftProvider {
  const version = params.text('api_version');
  const organization = params.text('organization');
  const timeout = params.number('timeout');
  const headers = readHeaders(params, id, draft);
  const asText = (key: string, text: string): string | undefined => {
    const variable = readVariable(text);
    return variable === undefined ? draft.plain(text, params.at(key)) : draft.reference(variable);
  };
  const kept = {
    api_version: version === undefined ? undefined : asText('api_version', version),
    organization: organization === undefined ? undefined : asText('organization', organization),
    total_timeout: timeout !== undefined && timeout > 0 ? `${timeout}s` : undefined,
    headers,
  };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

function readHeaders(params: Section, id: string, draft: Draft): Record<string, string> | undefined {
  const section = params.section('extra_headers') ?? params.section('headers');
  if (!section) return undefined;
  const headers = section.keys.flatMap((name) => {
    const text = section.text(name);
    if (text === undefined) return [];
    const variable = readVariable(text);
    // Any header may carry a key, so no value is copied.
    return [[name, variable === undefined ? draft.secret(text, `${id}_${name}`, section.at(name)) : draft.reference(variable)]];
  });
  return headers.length === 0 ? undefined : Object.fromEntries(headers);
}

/** LiteLLM divides requests by weight, else by rpm, else by tpm. */
function readWeight(params: Section, entry: Section): number | undefined {
  const weight = params.number('weight');
  const rates = (['rpm', 'tpm'] as const).flatMap((key) =>
    [params, entry].flatMap((section) => {
      const rate = section.number(key);
      if (rate !== undefined)
        section.note(key, 'changed', 'providers have no rate limits; it only weighs the targets of a model');
      return rate === undefined ? [] : [key === 'rpm' ? rate : rate / 1000];
    }),
  );
  const chosen = weight ?? rates[0];
  return chosen !== undefined && chosen > 0 ? Math.min(1000, chosen) : undefined;
}

const COSTS = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cached_input: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
} as const;

function readPrices(target: string, sections: readonly (Section | undefined)[], draft: Draft): void {
  const price = new Map<string, number>();
  for (const [field, key] of Object.entries(COSTS))
    for (const section of sections) {
      const cost = section?.number(key);
      if (section === undefined || cost === undefined || price.has(field)) continue;
      const perMillion = Number((cost * 1e6).toFixed(6));
      if (perMillion >= 0 && perMillion <= MAX_PRICE) price.set(field, perMillion);
      else section.note(key, 'dropped', 'is not a price for a token: more than one dollar, or below 0');
    }
  if (price.has('input')) draft.prices.set(target, Object.fromEntries(price));
}

/** US dollars per million tokens. */
const MAX_PRICE = 1_000_000;

const STRATEGIES: Readonly<Record<string, DraftStrategy>> = {
  'simple-shuffle': 'weighted',
  'least-busy': 'least_busy',
  'latency-based-routing': 'fastest',
  'cost-based-routing': 'cheapest',
};

function readStrategy(router: Section | undefined, groups: ReadonlyMap<string, readonly DraftTarget[]>): DraftStrategy {
  const name = router?.text('routing_strategy') ?? 'simple-shuffle';
  if (Object.hasOwn(STRATEGIES, name)) return STRATEGIES[name] ?? 'weighted';
  if ([...groups.values()].some((targets) => targets.length > 1))
    router?.note('routing_strategy', 'changed', 'is not supported; requests are divided by weight');
  return 'weighted';
}

/** Fallbacks by model name. */
function readFallbacks(
  sections: readonly (Section | undefined)[],
  groups: ReadonlyMap<string, unknown>,
  draft: Draft,
): Map<string, string[]> {
  const fallbacks = new Map<string, string[]>();
  const add = (name: string, models: readonly string[], path: string): void => {
    const known = models.filter((model) => groups.has(model) && model !== name);
    const unknown = models.filter((model) => !groups.has(model));
    if (!groups.has(name)) draft.note(path, 'dropped', `"${name}" is not a model that was carried over`);
    else fallbacks.set(name, [...new Set([...(fallbacks.get(name) ?? []), ...known])]);
    if (unknown.length > 0) draft.note(path, 'dropped', `${unknown.join(', ')}: not a model that was carried over`);
  };
  for (const section of sections) {
    for (const entry of section?.sections('fallbacks') ?? [])
      for (const name of entry.keys) add(name, entry.texts(name), entry.at(name));
    const all = section?.texts('default_fallbacks') ?? [];
    if (section && all.length > 0) for (const name of groups.keys()) add(name, all, section.at('default_fallbacks'));
  }
  return fallbacks;
}

/** A fallback uses the deployments of a model, not its own fallbacks, so that no cycle arises. */
function writeModels(
  draft: Draft,
  groups: ReadonlyMap<string, readonly DraftTarget[]>,
  strategy: DraftStrategy,
  fallbacks: ReadonlyMap<string, readonly string[]>,
): void {
  const pools = new Map<string, DraftTarget>();
  const pool = (name: string): DraftTarget => {
    const made = pools.get(name) ?? draft.pool(groups.get(name) ?? [], strategy);
    pools.set(name, made);
    return made;
  };
  for (const [name, targets] of groups) {
    const others = (fallbacks.get(name) ?? []).filter((other) => isPossible(name, other, draft));
    if (others.length === 0) draft.model(name, targets, strategy);
    else draft.model(name, [name, ...others].map(pool));
  }
}

function isPossible(name: string, fallback: string, draft: Draft): boolean {
  if (!fallback.includes('*') || name.includes('*')) return true;
  draft.note('fallbacks', 'dropped', `"${name}" cannot fall back to the pattern "${fallback}"`);
  return false;
}

function readAliases(router: Section | undefined, groups: ReadonlyMap<string, unknown>, draft: Draft): void {
  const aliases = router?.section('model_group_alias');
  for (const alias of aliases?.keys ?? []) {
    const model = aliases?.isText(alias) ? aliases.text(alias) : aliases?.section(alias)?.text('model');
    if (model !== undefined && groups.has(model) && !model.includes('/') && !draft.hasModel(alias))
      draft.model(alias, [{ target: model }]);
    else aliases?.note(alias, 'dropped', 'is not the name of a model that was carried over');
  }
}

function readLimits(section: Section, draft: Draft, { timeout: key }: { timeout: string }): void {
  const limits = new Map(Object.entries((draft.settings.get('limits') ?? {}) as Record<string, unknown>)); // set below only
  const retries = section.number('num_retries');
  const timeout = section.number(key);
  if (retries !== undefined && retries >= 0) limits.set('retries_per_provider', Math.min(10, Math.trunc(retries)));
  if (timeout !== undefined && timeout > 0) limits.set('total_timeout', `${timeout}s`);
  if (limits.size > 0) draft.settings.set('limits', Object.fromEntries(limits));
}

const ROUTER_REASONS: Reasons = {
  allowed_fails: 'a target that fails five times in a row is paused; limits.pause sets how long',
  cooldown_time: 'a target that fails five times in a row is paused; limits.pause sets how long',
  context_window_fallbacks: 'requests do not fall back by their length; use rules with input_tokens_above',
  content_policy_fallbacks: 'requests do not fall back when a filter blocks them',
  enable_pre_call_checks: 'requests are not checked against the context length before they are sent',
  redis_host: 'limits and routing are kept in memory',
  redis_password: 'limits and routing are kept in memory',
  redis_port: 'limits and routing are kept in memory',
  redis_url: 'limits and routing are kept in memory',
};

const SETTINGS_REASONS: Reasons = {
  drop_params: 'fields that a target does not support are always dropped, with a note',
  callbacks: 'use /metrics, the log or the ledger',
  success_callback: 'use /metrics, the log or the ledger',
  failure_callback: 'use /metrics, the log or the ledger',
  json_logs: 'logs are always JSON',
  telemetry: 'Sluice has no telemetry',
  max_budget: 'budgets belong to keys and tags: budgets, or budget of a key',
  budget_duration: 'budgets belong to keys and tags: budgets, or budget of a key',
  context_window_fallbacks: 'requests do not fall back by their length; use rules with input_tokens_above',
  content_policy_fallbacks: 'requests do not fall back when a filter blocks them',
};

function readSettings(settings: Section, draft: Draft): void {
  const params = settings.section('cache_params');
  if (settings.flag('cache')) {
    const ttl = params?.number('ttl');
    draft.settings.set('cache', ttl !== undefined && ttl > 0 ? { ttl: `${ttl}s` } : {});
    settings.note(
      'cache',
      'changed',
      'responses are cached in memory, and for each client key separately; set scope: shared to share them',
    );
  }
  params?.finish({}, 'responses are cached in memory only');
  if (settings.flag('set_verbose')) draft.settings.set('log', { level: 'debug' });
}

function readGeneral(general: Section, draft: Draft): void {
  const master = general.text('master_key');
  if (master !== undefined) {
    const variable = readVariable(master);
    const key =
      variable === undefined ? draft.secret(master, 'LITELLM_MASTER_KEY', general.at('master_key')) : draft.reference(variable);
    draft.settings.set('auth', { keys: [{ name: 'litellm-master', key }] });
    general.note('master_key', 'changed', 'is a client key here; set admin.key to another key for the admin API');
  }
  general.finish({
    database_url: 'usage is in a folder (data); keys of the database cannot be read: create them with "sluice keys create"',
    store_model_in_db: 'models are in the file only; those in the database were not carried over',
    alerting: 'Sluice sends no alerts; use /metrics',
    alerting_threshold: 'Sluice sends no alerts; use /metrics',
  });
}
