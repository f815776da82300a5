/** Imports the configuration of the LiteLLM proxy (config.yaml). */

import { findFamily } from '../providers/families.ts';
import { findRow } from '../providers/lookup.ts';
import type { Draft, DraftProvider, DraftStrategy, DraftTarget } from './draft.ts';
import { ImportError, type Reasons, Section } from './section.ts';
import { findKeyVariable, findVendor, splitEndpoint } from './vendors.ts';

/** Builds a configuration from a parsed config.yaml. */
export function importLitellm(root: Section, draft: Draft): void {
  if (!root.has('model_list') && !root.has('general_settings') && !root.has('litellm_settings') && !root.has('router_settings'))
    throw new ImportError('this is not a LiteLLM configuration: it has no "model_list"');
  const credentials = readCredentials(root);
  const groups = new Map<string, Deployment[]>();
  for (const entry of root.sections('model_list')) readDeployment(entry, { draft, credentials, groups });
  for (const values of credentials.values()) values.finish();
  const settings = root.section('litellm_settings');
  const router = root.section('router_settings');
  const strategy = readStrategy(router, groups);
  for (const [name, deployments] of groups) groups.set(name, weigh(deployments, strategy, draft));
  writeModels(draft, groups, strategy, new FallbackReader(groups, draft).read([router, settings]));
  readAliases(router, groups, draft);
  readLimits([router, settings], draft);
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
  /** Deployments by model name. */
  groups: Map<string, Deployment[]>;
}

/** A target with its place in the order of the deployments of one name, and what can be its weight there. */
interface Deployment extends DraftTarget {
  order: number;
  shares: Shares;
  /** The path of its parameters. */
  path: string;
}

/** LiteLLM divides requests by the first of these that a deployment of the name has. */
const SHARES = ['weight', 'rpm', 'tpm'] as const;

type Shares = Readonly<Partial<Record<(typeof SHARES)[number], number>>>;

/** The entries of `credential_list` by name. */
function readCredentials(root: Section): Map<string, Section> {
  const credentials = new Map<string, Section>();
  for (const entry of root.sections('credential_list')) {
    const name = entry.text('credential_name');
    const values = entry.section('credential_values');
    if (name !== undefined && values) credentials.set(name, values);
    else entry.note('', 'dropped', 'a credential needs credential_name and credential_values');
    entry.finish({ credential_info: 'only describes the credential' });
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
  const shares = readShares(params, entry);
  // LiteLLM uses deployments without an order only when none has one, or when all others are paused.
  const order = params.number('order') ?? info?.number('order') ?? Number.POSITIVE_INFINITY;
  info?.finish(INFO_REASONS, 'facts about models are known or not needed');
  params.finish(PARAM_REASONS, 'defaults for requests are not supported; let clients send them');
  entry.finish();
  groups.set(name, [...(groups.get(name) ?? []), { target, order, shares, path: params.path }]);
}

const OPEN_TO_ALL = 'the model is open to every client key; limit keys by models: "sluice keys create --models"';
const KEY_LIMITS = 'limits belong to client keys: rpm, tpm and concurrency';
const NO_CLOUD_LOGIN = 'only API keys are supported; set api_key of the provider';
const OWN_ROUTER = 'Sluice does not choose models by their subject; use rules';

const INFO_REASONS: Reasons = {
  access_groups: OPEN_TO_ALL,
  blocked: 'the model is not blocked here; remove it from models',
  team_id: OPEN_TO_ALL,
  team_public_model_name: OPEN_TO_ALL,
  max_input_tokens: 'the context length of known models is known; set it in the profile of the provider',
  max_output_tokens: 'set max_output_tokens in the profile of the provider',
};

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
  tag_regex: 'targets are not chosen by tags; use rules with header',
  itpm: KEY_LIMITS,
  otpm: KEY_LIMITS,
  default_api_key_rpm_limit: KEY_LIMITS,
  default_api_key_tpm_limit: KEY_LIMITS,
  azure_ad_token: NO_CLOUD_LOGIN,
  tenant_id: NO_CLOUD_LOGIN,
  client_id: NO_CLOUD_LOGIN,
  client_secret: NO_CLOUD_LOGIN,
  vertex_credentials: NO_CLOUD_LOGIN,
  configurable_clientside_auth_params: 'clients cannot change the address or key of a provider',
  use_in_pass_through: 'Sluice has no pass-through endpoints',
  cooldown_time: 'a target that fails five times in a row is paused; limits.pause sets how long',
  cache_control_injection_points: 'cache marks of clients are kept; none are added',
  input_cost_per_second: 'prices are for tokens',
  output_cost_per_second: 'prices are for tokens',
  auto_router_config: OWN_ROUTER,
  auto_router_config_path: OWN_ROUTER,
  auto_router_default_model: OWN_ROUTER,
  auto_router_embedding_model: OWN_ROUTER,
};

/** Where a deployment sends requests: a known provider or a server of its own, and the model there. */
interface Place {
  row: string | undefined;
  protocol: string;
  model: string;
  /** The address that LiteLLM uses for this provider, where it is another one than that of Sluice. */
  base?: string | undefined;
}

/** Keys of one region are not valid in the other. */
const ADDRESSES: Readonly<Record<string, string>> = { dashscope: 'https://dashscope.aliyuncs.com/compatible-mode/v1' };

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
    : { row: found.row, protocol: '', model: name, base: Object.hasOwn(ADDRESSES, vendor) ? ADDRESSES[vendor] : undefined };
}

function readTarget(name: string, place: Place, params: Section, context: Context): string | undefined {
  const { row, protocol, model } = place;
  const { draft, credentials } = context;
  const credential = params.text('litellm_credential_name');
  const shared = credential === undefined ? undefined : credentials.get(credential);
  if (credential !== undefined && !shared)
    params.note('litellm_credential_name', 'dropped', 'is not in credential_list of this file; set api_key of the provider');
  const base = readBase(params, draft) ?? (shared && readBase(shared, draft)) ?? place.base;
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

function readShares(params: Section, entry: Section): Shares {
  const readRate = (key: 'rpm' | 'tpm'): number | undefined => {
    const rates = [params, entry].flatMap((section) => {
      const rate = section.number(key);
      if (rate === undefined) return [];
      section.note(key, 'changed', 'providers have no rate limits; it only weighs the targets of a model');
      return [rate];
    });
    return rates[0];
  };
  const found = { weight: params.number('weight'), rpm: readRate('rpm'), tpm: readRate('tpm') };
  return Object.fromEntries(Object.entries(found).filter(([, share]) => share !== undefined));
}

/**
 * Gives the deployments of one name their weights. Where requests are divided by weight, deployments without a share get
 * none beside those that have one, and a share of 0 is how a deployment is drained.
 */
function weigh(deployments: readonly Deployment[], strategy: DraftStrategy, draft: Draft): Deployment[] {
  const orders = [...new Set(deployments.map(({ order }) => order))];
  return orders.flatMap((wanted) => {
    const tier = deployments.filter(({ order }) => order === wanted);
    return weighTier(tier, strategy, draft);
  });
}

function weighTier(tier: readonly Deployment[], strategy: DraftStrategy, draft: Draft): readonly Deployment[] {
  const by = SHARES.find((share) => tier.some(({ shares }) => shares[share] !== undefined));
  const largest = by === undefined ? 0 : Math.max(...tier.map(({ shares }) => shares[by] ?? 0));
  if (by === undefined || !(largest > 0)) return tier;
  const unit = by === 'tpm' ? TOKENS_PER_REQUEST : 1;
  const scale = Math.min(1 / unit, MAX_WEIGHT / largest);
  return tier.flatMap((one) => {
    const share = one.shares[by] ?? 0;
    if (share > 0) return [{ ...one, weight: Number((share * scale).toPrecision(6)) }];
    if (strategy !== 'weighted') return [one];
    const reason = one.shares[by] === undefined ? `no ${by} beside deployments that have one` : `${by} 0`;
    draft.note(`${one.path}.${by}`, 'dropped', `${reason} means that it gets no requests`);
    return [];
  });
}

const MAX_WEIGHT = 1000;

/** Makes weights from token rates about as large as those from request rates. */
const TOKENS_PER_REQUEST = 1000;

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

/** Reads fallbacks by model name. Those of the router win over those of the other settings, as in LiteLLM. */
class FallbackReader {
  readonly #groups: ReadonlyMap<string, unknown>;
  readonly #draft: Draft;
  readonly #fallbacks = new Map<string, string[]>();
  /** Fallbacks of models without their own: the entry `*`, or `default_fallbacks`, which comes later and wins. */
  #others: readonly string[] = [];

  constructor(groups: ReadonlyMap<string, unknown>, draft: Draft) {
    this.#groups = groups;
    this.#draft = draft;
  }

  read(sections: readonly (Section | undefined)[]): ReadonlyMap<string, readonly string[]> {
    for (const entry of this.#choose(sections, 'fallbacks')?.sections('fallbacks') ?? [])
      for (const name of entry.keys) this.#add(name, this.#readModels(entry, name), entry.at(name));
    const others = this.#choose(sections, 'default_fallbacks');
    if (others) this.#others = this.#filterKnown(this.#readModels(others, 'default_fallbacks'), others.at('default_fallbacks'));
    for (const name of this.#groups.keys()) if (!this.#fallbacks.has(name)) this.#set(name, this.#others);
    return this.#fallbacks;
  }

  /** The first section that has the setting; the others are reported. */
  #choose(sections: readonly (Section | undefined)[], key: string): Section | undefined {
    const [first, ...rest] = sections.flatMap((section) => (section && section.list(key).length > 0 ? section : []));
    for (const section of rest) section.note(key, 'dropped', 'router_settings has this setting, too, and wins');
    return first;
  }

  /** The names of a list. An entry may be a map with fields for the request, of which only the model is carried over. */
  #readModels(section: Section, key: string): string[] {
    if (section.isText(key)) return section.texts(key);
    return section.list(key).flatMap((value, i) => {
      if (typeof value === 'string') return value;
      const path = `${section.at(key)}[${i}]`;
      const entry = new Section(value, path, section.notes);
      const model = entry.text('model');
      if (model === undefined) this.#draft.note(path, 'dropped', 'must be a model name, or a map with model');
      else entry.finish({}, 'fields of requests cannot be changed for a fallback');
      return model ?? [];
    });
  }

  #add(name: string, models: readonly string[], path: string): void {
    const known = this.#filterKnown(models, path);
    if (name === '*' && !this.#groups.has('*')) this.#others = known;
    else if (this.#groups.has(name)) this.#set(name, known);
    else this.#draft.note(path, 'dropped', `"${name}" is not a model that was carried over`);
  }

  #filterKnown(models: readonly string[], path: string): string[] {
    const unknown = models.filter((model) => !this.#groups.has(model));
    if (unknown.length > 0) this.#draft.note(path, 'dropped', `${unknown.join(', ')}: not a model that was carried over`);
    return models.filter((model) => this.#groups.has(model));
  }

  #set(name: string, models: readonly string[]): void {
    this.#fallbacks.set(
      name,
      [...new Set(models)].filter((model) => model !== name),
    );
  }
}

/** A fallback uses the deployments of a model, not its own fallbacks, so that no cycle arises. */
function writeModels(
  draft: Draft,
  groups: ReadonlyMap<string, readonly Deployment[]>,
  strategy: DraftStrategy,
  fallbacks: ReadonlyMap<string, readonly string[]>,
): void {
  const known = new Map<string, readonly DraftTarget[]>();
  const tiers = (name: string): readonly DraftTarget[] => {
    const made = known.get(name) ?? splitByOrder(groups.get(name) ?? []).map((tier) => draft.pool(tier, strategy));
    known.set(name, made);
    return made;
  };
  for (const [name, deployments] of groups) {
    const others = (fallbacks.get(name) ?? []).filter((other) => isPossible(name, other, draft));
    const isPlain = others.length === 0 && splitByOrder(deployments).length === 1;
    if (isPlain) draft.model(name, toTargets(deployments), strategy);
    else draft.model(name, [name, ...others].flatMap(tiers));
  }
}

/** Deployments of a lower order are used first, and the others when they fail. */
const splitByOrder = (deployments: readonly Deployment[]): DraftTarget[][] =>
  [...new Set(deployments.map(({ order }) => order))]
    .toSorted((a, b) => a - b)
    .map((wanted) => toTargets(deployments.filter(({ order }) => order === wanted)));

const toTargets = (deployments: readonly Deployment[]): DraftTarget[] =>
  deployments.map(({ order: _, shares: __, path: ___, ...target }) => target);

function isPossible(name: string, fallback: string, draft: Draft): boolean {
  if (!fallback.includes('*') || name.includes('*')) return true;
  draft.note('fallbacks', 'dropped', `"${name}" cannot fall back to the pattern "${fallback}"`);
  return false;
}

function readAliases(router: Section | undefined, groups: ReadonlyMap<string, unknown>, draft: Draft): void {
  const aliases = router?.section('model_group_alias');
  for (const alias of aliases?.keys ?? []) {
    const entry = aliases?.isText(alias) ? undefined : aliases?.section(alias);
    const model = entry ? entry.text('model') : aliases?.text(alias);
    entry?.finish({ hidden: 'the list of models shows every name' });
    if (model !== undefined && groups.has(model) && !model.includes('/') && !draft.hasModel(alias))
      draft.model(alias, [{ target: model }]);
    else aliases?.note(alias, 'dropped', 'is not the name of a model that was carried over');
  }
}

/** Limits of the router win over those of the other settings, as in LiteLLM. */
function readLimits([router, settings]: readonly (Section | undefined)[], draft: Draft): void {
  const limits = new Map<string, unknown>();
  const choose = (keys: readonly [inRouter: string, inSettings: string]): number | undefined => {
    const value = router?.number(keys[0]);
    const other = settings?.number(keys[1]);
    if (value !== undefined && other !== undefined) settings?.note(keys[1], 'dropped', `router_settings.${keys[0]} wins`);
    return value ?? other;
  };
  const retries = choose(['num_retries', 'num_retries']);
  const timeout = choose(['timeout', 'request_timeout']);
  if (retries !== undefined && retries >= 0) limits.set('retries_per_provider', Math.min(10, Math.trunc(retries)));
  if (timeout !== undefined && timeout > 0) limits.set('total_timeout', `${timeout}s`);
  if (limits.size > 0) draft.settings.set('limits', Object.fromEntries(limits));
}

const SHARED_LIMITS = 'set limits_store to share the limits of keys; routing is kept in memory';
const RETRIES = 'Sluice decides by the failure whether to retry';

const ROUTER_REASONS: Reasons = {
  allowed_fails: 'a target that fails five times in a row is paused; limits.pause sets how long',
  cooldown_time: 'a target that fails five times in a row is paused; limits.pause sets how long',
  context_window_fallbacks: 'requests do not fall back by their length; use rules with input_tokens_above',
  content_policy_fallbacks: 'requests do not fall back when a filter blocks them',
  enable_pre_call_checks: 'requests are not checked against the context length before they are sent',
  redis_host: SHARED_LIMITS,
  redis_password: SHARED_LIMITS,
  redis_port: SHARED_LIMITS,
  redis_url: SHARED_LIMITS,
  retry_policy: RETRIES,
  model_group_retry_policy: RETRIES,
  retry_after: 'the pause between retries follows Retry-After, or grows',
  allowed_fails_policy: 'a target that fails five times in a row is paused; limits.pause sets how long',
  routing_strategy_args: 'strategies have no settings',
  routing_groups: 'one strategy is used for all models; set strategy of a model',
  provider_budget_config: 'providers have no budgets; budgets belong to keys and tags',
  enable_tag_filtering: 'targets are not chosen by tags; use rules',
  stream_timeout: 'set limits.first_event_timeout or limits.idle_timeout',
  optional_pre_call_checks: 'a conversation stays with its target: affinity; other checks are not made',
};

const NEW_KEYS = 'keys have no defaults; set terms with "sluice keys create"';

const SETTINGS_REASONS: Reasons = {
  allowed_fails: 'a target that fails five times in a row is paused; limits.pause sets how long',
  default_internal_user_params: NEW_KEYS,
  default_key_generate_params: NEW_KEYS,
  upperbound_key_generate_params: NEW_KEYS,
  default_team_settings: 'teams and their settings are not carried over; use keys with tags',
  max_internal_user_budget: NEW_KEYS,
  internal_user_budget_duration: NEW_KEYS,
  model_alias_map: 'add the names to models',
  modify_params: 'requests are converted by protocol and profile',
  ssl_verify: 'certificates are always verified; set ca of the provider for one of your own',
  turn_off_message_logging: 'messages are not logged; capture is off unless it is set',
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
    database_url: 'set store for usage and keys in PostgreSQL; create the keys of the database again with "sluice keys create"',
    max_parallel_requests: KEY_LIMITS,
    global_max_parallel_requests: KEY_LIMITS,
    allowed_ips: 'set ip of each client key',
    max_request_size_mb: 'set limits.request_bytes',
    custom_auth: 'code for authentication is not supported; use client keys',
    enable_jwt_auth: 'use client keys; JWTs are not supported',
    pass_through_endpoints: 'Sluice has no pass-through endpoints',
    key_management_system: 'references are env:NAME and file:PATH; let your system provide them',
    background_health_checks: 'targets are checked by the requests that they get; "sluice probe" checks them at once',
    store_model_in_db: 'models are in the file only; those in the database were not carried over',
    alerting: 'Sluice sends no alerts; use /metrics',
    alerting_threshold: 'Sluice sends no alerts; use /metrics',
  });
}
