/** Resolves options and environment to the state of a gateway, and model names to providers. */

import { createHmac } from 'node:crypto';
import type { ProtocolId } from '@sluice/core';
import { didYouMean, suggest } from '@sluice/lab/text';
import { AddressRanges } from '../http/client-address.ts';
import type { TlsFiles } from '../http/tls.ts';
import type { Caller } from '../keys/caller.ts';
import { NO_TERMS } from '../keys/settings.ts';
import { isLoopback } from '../providers/base-url.ts';
import { findFamily } from '../providers/families.ts';
import { findRow, listVendorRows, PROVIDER_IDS } from '../providers/lookup.ts';
import type { ProviderRow } from '../providers/row.ts';
import { describeAddress, readAddress } from '../store/postgres/address.ts';
import type { Source } from './load.ts';
import { createGoal, type Goal, type ModelTable, matchPattern, readModels } from './models.ts';
import type {
  CacheOptions,
  CaptureOptions,
  Durability,
  IdempotencyOptions,
  KeyOptions,
  Limits,
  LimitsStoreOptions,
  ListenAddress,
  LogLevel,
  ModelInAnswer,
  PriceOptions,
  RecoveryOptions,
  ResponsesOptions,
  RuleOptions,
  TagBudget,
} from './options.ts';
import { ConfigError, type Problem } from './problems.ts';
import { type ConfiguredProvider, configureProviders, DEMO_ID, listEndpoints } from './providers.ts';
import { DATABASE_LIMITS } from './schema.ts';
import { type Env, readEnv, Secret, type SecretRegistry } from './secrets.ts';
import type { ResolveContext } from './world.ts';

/** Builds the state of a gateway. Throws a `ConfigError` with all problems. */
export function resolveConfig(source: Source, resolveOptions: ResolveOptions): GatewayState {
  const { env, secrets, bound } = resolveOptions;
  const { options } = source;
  const listen = resolveListen(source, resolveOptions);
  const world: ResolveContext = { source, env, listen, problems: [...source.missing], warnings: [] };
  const providers = configureProviders(world);
  const table = readModels(providers, world);
  const directory = new Directory(providers, table);
  const rules = readRules(directory, world);
  checkPrices(providers, world);
  const keys = readClientKeys(world);
  const adminKey = readAdminKey(world);
  const { key: metricsKey, listen: metricsListen } = options.metrics;
  const limitsStore = readLimitsStore(world);
  checkExposure(keys, world, resolveOptions);
  checkOwnKeys({ keys, adminKey, metricsKey }, world, bound);
  if (resolveOptions.isWorldReadable) checkFileMode(world, bound);
  if (adminKey && isUnencrypted(listen, options.trusted_proxies, bound))
    world.warnings.push(source.problem(['admin'], UNENCRYPTED));
  if (options.reset) world.warnings.push(source.problem(['reset'], RESET_WARNING));
  if (world.problems.length > 0) throw new ConfigError(world.problems);
  for (const secret of listSecrets(keys, providers)) secrets.add(secret);
  for (const secret of [adminKey, metricsKey, ...listStoreSecrets(options.store), ...listUrlSecrets(limitsStore)])
    if (secret) secrets.add(secret);
  return Object.freeze({
    listen,
    trustedProxies: new AddressRanges(options.trusted_proxies),
    keys,
    pepperFile: options.auth.pepper_file,
    adminKey,
    metricsKey,
    metricsListen,
    recovery: options.recovery,
    limits: options.limits,
    log: options.log,
    prices: options.prices,
    default_price: options.default_price,
    budgets: options.budgets,
    timeZone: options.time_zone,
    limitsStore,
    data: options.data,
    store: readStore(world),
    nodeLeaseMs: options.node_lease,
    durability: options.durability,
    retentionDays: options.retention,
    capture: options.capture,
    responses: options.responses,
    idempotency: options.idempotency,
    cache: options.cache,
    providers,
    models: [...table.names.keys()],
    rules,
    affinityMs: options.affinity,
    modelInAnswer: options.model_in_answer,
    warnings: world.warnings,
    providerFor: (id: string) => providers.get(id),
    resolveModel: (name: string, client?: ProtocolId) => directory.resolve(name, client),
  });
}

/** A database. */
export interface StoreAddress {
  readonly url: Secret;
  /** Host and name, without secrets. */
  readonly place: string;
}

const readStore = ({ source }: ResolveContext): StoreAddress | undefined => {
  const { store } = source.options;
  return store && { url: store, place: describeAddress(store.reveal()) };
};

/** A server that keeps limits. */
export interface LimitsAddress extends Omit<LimitsStoreOptions, 'url'> {
  readonly server: 'redis' | 'postgres';
  readonly url: Secret;
}

/** Where limits are: in the database, if there is one and nothing else is configured. */
function readLimitsStore({ source, problems }: ResolveContext): LimitsAddress | undefined {
  const { store, limits_store = store && DATABASE_LIMITS } = source.options;
  if (!limits_store || limits_store.url === 'memory') return undefined;
  const { url } = limits_store;
  if (url !== 'store') return { ...limits_store, server: 'redis', url };
  if (store) return { ...limits_store, server: 'postgres', url: store };
  problems.push(source.problem(['limits_store'], 'limits_store: "store" is the database of store; set store: postgres://…'));
  return undefined;
}

/** The password alone may be part of an error of the database. */
function listStoreSecrets(store: Secret | undefined): Secret[] {
  if (!store) return [];
  const { password } = readAddress(store.reveal());
  return [store, ...(typeof password === 'string' ? [new Secret(password)] : [])];
}

/** A URL, and its password alone, which errors may contain. */
function listUrlSecrets(address: LimitsAddress | undefined): Secret[] {
  if (address?.server !== 'redis') return [];
  const { url } = address;
  const { password } = new URL(url.reveal());
  return password === '' ? [] : [url, new Secret(password)];
}

/** What a configuration is resolved with. */
export interface ResolveOptions {
  readonly env: Env;
  readonly secrets: SecretRegistry;
  /** Options of the command line, which override the file. */
  readonly listen?: { readonly host?: string; readonly port?: number; readonly tls?: 'off' };
  /** The address that the running gateway is bound to, which may differ from the file. */
  readonly bound?: string;
  /** Whether every user of this machine can read the configuration file. */
  readonly isWorldReadable?: boolean;
  /** Whether the store has client keys. `unknown`: it is not open yet, or not at all. None by default. */
  readonly storedKeys?: () => StoredKeys;
}

/** Whether the store has client keys. */
export type StoredKeys = 'some' | 'none' | 'unknown';

/** A client key of the configuration, and who sends it. */
export interface ClientKey {
  readonly key: Secret;
  readonly caller: Caller;
}

/** The configuration of a gateway at one moment. Immutable: a reload builds another. */
export interface GatewayState {
  readonly listen: ListenAddress & { readonly tls?: TlsFiles };
  /** Proxies whose forwarding headers are read. */
  readonly trustedProxies: AddressRanges;
  /** Keys of the clients; without any and without keys in the store, every client is admitted. */
  readonly keys: readonly ClientKey[];
  /** The file of the pepper; undefined for the one in the data folder. */
  readonly pepperFile: string | undefined;
  /** The key of the admin API; undefined when none is set. */
  readonly adminKey: Secret | undefined;
  /** The key of `/metrics`; undefined when none is set. */
  readonly metricsKey: Secret | undefined;
  /** The listener that serves `/metrics` alone; undefined when there is none. */
  readonly metricsListen: ListenAddress | undefined;
  readonly recovery: RecoveryOptions;
  readonly limits: Limits;
  readonly log: { readonly level: LogLevel };
  /** Configured prices by `provider/model`. */
  readonly prices: Readonly<Record<string, PriceOptions>>;
  /** The price of models without a known one. */
  readonly default_price: PriceOptions | undefined;
  /** Budgets of tags. */
  readonly budgets: readonly TagBudget[];
  /** The time zone whose days, weeks and months budgets are for. */
  readonly timeZone: string;
  /** Where limits are kept that several gateways share; undefined for memory. */
  /** Undefined: limits are in memory. */
  readonly limitsStore: LimitsAddress | undefined;
  /** The data folder, or `memory`; undefined for the default folder. */
  readonly data: string | undefined;
  /** The database that holds keys and usage instead of the folder. */
  readonly store: StoreAddress | undefined;
  /** How long after its last heartbeat a node of the database is taken for dead. */
  readonly nodeLeaseMs: number;
  readonly durability: Durability;
  /** Days that recorded exchanges are kept; null for ever. */
  readonly retentionDays: number | null;
  /** Which exchanges are kept with their bodies. */
  readonly capture: CaptureOptions;
  /** How responses are kept for clients that continue them. */
  readonly responses: ResponsesOptions;
  /** How responses are shared between requests with the same `Idempotency-Key`; undefined when they are not. */
  readonly idempotency: IdempotencyOptions | undefined;
  /** Which responses are sent again for equal requests; undefined when none are. */
  readonly cache: CacheOptions | undefined;
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  /** Model names of the file, for lists of models. */
  readonly models: readonly string[];
  /** Rules that send requests to another model, in order. */
  readonly rules: readonly Rule[];
  /** How long a conversation stays with its target; null for not at all. */
  readonly affinityMs: number | null;
  readonly modelInAnswer: ModelInAnswer;
  /** Warnings for the operator. */
  readonly warnings: readonly Problem[];
  providerFor(id: string): ConfiguredProvider | undefined;
  /**
   * Providers for a model name in order of preference; undefined when there is none. Given the client's protocol, a
   * vendor that officially supports it is used in that protocol: a Responses client gets openai/gpt-5 from Responses.
   */
  resolveModel(name: string, client?: ProtocolId): readonly ModelTarget[] | undefined;
}

/** A provider, and the name of the model there. */
export interface ModelTarget extends Pick<Goal, 'model' | 'tier' | 'sharing' | 'weight'> {
  readonly provider: ConfiguredProvider;
  /** Whether the configuration names this model of this provider. */
  readonly isConfigured: boolean;
}

/** The address with the options of the command line, and absolute paths. */
function resolveListen(
  { options, files }: Source,
  { listen: { tls: mode, ...address } = {} }: ResolveOptions,
): GatewayState['listen'] {
  const { tls, ...configured } = options.listen;
  const isServed = tls && mode !== 'off';
  return { ...configured, ...address, ...(isServed && { tls: { cert: files.resolve(tls.cert), key: files.resolve(tls.key) } }) };
}

/** A secret in a file that every user can read: refused when others can reach the gateway, a warning when only this machine can. */
function checkFileMode({ source, listen, problems, warnings }: ResolveContext, bound: string | undefined): void {
  const [path] = source.literalSecrets;
  if (path === undefined) return;
  const found = isExposed(listen.host, bound) ? problems : warnings;
  found.push(source.problem(path, WORLD_READABLE));
}

const WORLD_READABLE =
  'is a secret in a file that every user of this machine can read; run chmod 600 on the file, or use env:NAME or file:/path';

/** Whether keys and sessions cross the network in plain text, as far as the configuration shows. */
const isUnencrypted = ({ host, tls }: GatewayState['listen'], proxies: readonly string[], bound: string | undefined): boolean =>
  isExposed(host, bound) && tls === undefined && proxies.length === 0;

const UNENCRYPTED =
  'the admin key and sessions of the console cross the network unencrypted; set listen.tls, or trusted_proxies for a TLS proxy in front';

/** Whether other machines can reach the address of the file or the one that is bound. */
const isExposed = (host: string, bound: string | undefined): boolean =>
  [host, bound ?? host].some((address) => !isLoopback(address));

/** A rule of the configuration. */
export interface Rule extends RuleOptions {
  /** The name of the file, or `rules[0]`. */
  readonly name: string;
}

/** A rule to a known provider without a key is skipped with a warning, as in `models`. */
function readRules(directory: Directory, { source, problems, warnings }: ResolveContext): readonly Rule[] {
  return source.options.rules.flatMap((rule, i) => {
    if ((directory.resolve(rule.use, undefined) ?? []).length > 0) return [{ ...rule, name: rule.name ?? `rules[${i}]` }];
    const provider = rule.use.slice(0, Math.max(0, rule.use.indexOf('/')));
    const isKnown =
      Object.hasOwn(source.options.models, rule.use) || findRow(provider || (findFamily(rule.use) ?? '')) !== undefined;
    const path = ['rules', i, 'use'];
    if (isKnown) warnings.push(source.problem(path, `no provider of "${rule.use}" is configured; the rule is skipped`));
    else problems.push(source.problem(path, `"${rule.use}" must be provider/model or a name of "models"`));
    return [];
  });
}

const RESET_WARNING =
  'the configuration has "reset: true", so a reload may remove all client keys and providers; delete it when that is done';

/** Client keys of the environment, for containers without a file. Keys of the file take precedence. */
const KEYS_VARIABLE = 'SLUICE_KEYS';

function readClientKeys({ source, env, problems }: ResolveContext): readonly ClientKey[] {
  const { keys } = source.options.auth;
  const listed = keys.length > 0 ? keys : readEnvKeys(env);
  const names = new Map<string, number>();
  const texts = new Map<string, number>();
  return listed.map((options, index) => {
    const client = createClientKey(options, index);
    const { name } = client.caller;
    const [sameName, sameKey] = [names.get(name), texts.get(options.key.reveal())];
    if (sameName !== undefined)
      problems.push(
        source.problem(['auth', 'keys', index], `has the name "${name}" of entry ${sameName + 1}; names must differ`),
      );
    else if (sameKey !== undefined && keys.length > 0)
      problems.push(source.problem(['auth', 'keys', index], `is the same key as entry ${sameKey + 1}`));
    names.set(name, index);
    texts.set(options.key.reveal(), index);
    return client;
  });
}

const readEnvKeys = (env: Env): readonly KeyOptions[] =>
  [...new Set((readEnv(env, KEYS_VARIABLE) ?? '').split(',').map((key) => key.trim()))]
    .filter((key) => key !== '')
    .map((key) => ({ key: new Secret(key), terms: NO_TERMS }));

/** Keys without a name are shown by their place. What they own belongs to the key itself: places change. */
const createClientKey = ({ key, name, terms: { policy, tags } }: KeyOptions, index: number): ClientKey => ({
  key,
  caller: { id: name ?? createKeyId(key), name: name ?? `key-${index + 1}`, tags, policy },
});

/** The id of a key without a name: the same on all nodes, wherever in the list the key is. */
const createKeyId = (key: Secret): string =>
  `cfg-${createHmac('sha256', key.reveal()).update('sluice client key').digest('hex').slice(0, KEY_ID_DIGITS)}`;

const KEY_ID_DIGITS = 16;

/** The admin key of the environment, for containers without a file. That of the file takes precedence. */
const ADMIN_VARIABLE = 'SLUICE_ADMIN_KEY';

function readAdminKey({ source, env, problems }: ResolveContext): Secret | undefined {
  const { key } = source.options.admin;
  const text = key ? undefined : readEnv(env, ADMIN_VARIABLE);
  if (text === undefined) return key;
  if (!/^[\x21-\x7e]+$/.test(text))
    problems.push({ message: `${ADMIN_VARIABLE} must be printable ASCII without spaces`, path: [] });
  return new Secret(text);
}

interface OwnKeys {
  readonly keys: readonly ClientKey[];
  readonly adminKey: Secret | undefined;
  readonly metricsKey: Secret | undefined;
}

/** A key that opens more than one door would make every client an admin, and a short one can be guessed. */
function checkOwnKeys({ keys, adminKey, metricsKey }: OwnKeys, world: ResolveContext, bound: string | undefined): void {
  const { source, listen, problems } = world;
  const others = new Set(keys.map(({ key }) => key.reveal()));
  for (const [section, key] of [['admin', adminKey] as const, ['metrics', metricsKey] as const]) {
    if (!key) continue;
    const path = [section, 'key'];
    if (others.has(key.reveal())) problems.push(source.problem(path, 'must differ from all other keys of the gateway'));
    if (isExposed(listen.host, bound) && key.reveal().length < MIN_KEY_LENGTH)
      problems.push(source.problem(path, `must have at least ${MIN_KEY_LENGTH} characters on an address that others can reach`));
    others.add(key.reveal());
  }
}

/** A price for a provider that does not exist is a typo; for one without a key it is only not needed. */
function checkPrices(providers: ReadonlyMap<string, ConfiguredProvider>, { source, warnings }: ResolveContext): void {
  for (const name of Object.keys(source.options.prices)) {
    const provider = name.slice(0, name.indexOf('/'));
    if (providers.has(provider) || findRow(provider)) continue;
    const guess = didYouMean(provider, [...providers.keys(), ...PROVIDER_IDS]);
    warnings.push(source.problem(['prices', name], `there is no provider "${provider}"${guess}; the price is not used`, 'key'));
  }
}

/** Checks the address of the file, which the next start uses, and the address bound now. */
function checkExposure(
  keys: readonly ClientKey[],
  { source, listen, problems, warnings }: ResolveContext,
  { bound, storedKeys = () => 'none' }: Pick<ResolveOptions, 'bound' | 'storedKeys'>,
): void {
  const stored = storedKeys();
  const configured = findExposure(listen.host, keys, stored);
  if (configured !== undefined) problems.push(source.problem(['listen', 'host'], `${listen.host} ${configured}`));
  else if (stored === 'unknown' && keys.length === 0 && !isLoopback(listen.host))
    warnings.push(source.problem(['listen', 'host'], `${listen.host} ${NEEDS_STORED_KEYS}`));
  const current = bound === undefined || bound === listen.host ? undefined : findExposure(bound, keys, stored);
  if (current !== undefined) problems.push(source.problem(['auth', 'keys'], `the bound address ${bound} ${current}`));
}

/** Why an address must not be served with these keys; undefined when it may. */
export function findExposure(address: string, keys: readonly ClientKey[], stored: StoredKeys): string | undefined {
  if (isLoopback(address)) return undefined;
  if (keys.length === 0 && stored === 'none')
    return `is reachable from other machines; create a client key with "sluice keys create", or set auth.keys or ${KEYS_VARIABLE}`;
  if (keys.every(({ key }) => key.reveal().length >= MIN_KEY_LENGTH)) return undefined;
  return `is reachable from other machines; client keys must have at least ${MIN_KEY_LENGTH} characters`;
}

const NEEDS_STORED_KEYS =
  'is reachable from other machines, so the gateway starts only if a client key was created with "sluice keys create"';

/** Shorter keys can be guessed. */
const MIN_KEY_LENGTH = 16;

function* listSecrets(keys: readonly ClientKey[], providers: ReadonlyMap<string, ConfiguredProvider>): Iterable<Secret> {
  for (const { key } of keys) yield key;
  for (const provider of providers.values())
    for (const { key, headers, network } of listEndpoints(provider)) {
      if (key) yield key;
      if (network.proxy?.password) yield network.proxy.password;
      yield* Object.values(headers);
    }
}

/** Finds the providers for a model name. */
class Directory {
  readonly #providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly #table: ModelTable;
  /** `provider/model` of every target without a `*`. */
  readonly #configured: ReadonlySet<string>;
  /** Nothing is configured: the demo model responds to every name, so that any client can be tried. */
  readonly #isDemo: boolean;

  constructor(providers: ReadonlyMap<string, ConfiguredProvider>, table: ModelTable) {
    this.#providers = providers;
    this.#table = table;
    const goals = [...table.names.values(), ...table.patterns.map((pattern) => pattern.goals)].flat();
    this.#configured = new Set(goals.map(({ provider, model }) => `${provider}/${model}`));
    this.#isDemo = providers.size === 1 && table.names.size === 0 && table.patterns.length === 0;
  }

  resolve(name: string, client: ProtocolId | undefined): readonly ModelTarget[] | undefined {
    const goals = name === '' ? this.#findPromptProvider(client) : this.#findGoals(name);
    return goals?.flatMap(({ provider, model, tier, sharing, weight }) => {
      const found = this.#providers.get(provider);
      const isConfigured = this.#configured.has(`${provider}/${model}`);
      return found ? [{ provider: this.#findSibling(found, client), model, isConfigured, tier, sharing, weight }] : [];
    });
  }

  /**
   * A request without a model refers to a stored prompt, which a provider of the client's protocol has; official
   * vendors first.
   */
  #findPromptProvider(client: ProtocolId | undefined): readonly Goal[] | undefined {
    const candidates = [...this.#providers.values()].filter(({ provider, isDemo }) => provider.protocol === client && !isDemo);
    const found = candidates.find(({ official }) => official) ?? candidates[0];
    return found && [createGoal(found.id, '')];
  }

  #findGoals(name: string): readonly Goal[] | undefined {
    const exact = this.#table.names.get(name);
    if (exact) return exact;
    const slash = name.indexOf('/');
    const provider = name.slice(0, Math.max(0, slash));
    const model = name.slice(slash + 1);
    if (this.#providers.has(provider) && model !== '') return this.#findProviderGoals(provider, model);
    return matchPattern(this.#table.patterns, name) ?? this.#findFamilyGoals(name);
  }

  /** `provider/model` always works; patterns for the same provider take precedence. */
  #findProviderGoals(provider: string, model: string): readonly Goal[] {
    const own = this.#table.patterns.filter(({ prefix }) => prefix.startsWith(`${provider}/`));
    return matchPattern(own, `${provider}/${model}`) ?? [createGoal(provider, model)];
  }

  #findFamilyGoals(model: string): readonly Goal[] | undefined {
    const provider = findFamily(model);
    if (provider && this.#providers.has(provider)) return [createGoal(provider, model)];
    return this.#isDemo && model !== '' ? [createGoal(DEMO_ID, model)] : undefined;
  }

  #findSibling(provider: ConfiguredProvider, client: ProtocolId | undefined): ConfiguredProvider {
    if (client === undefined || !provider.official || provider.provider.protocol === client || !findRow(provider.id))
      return provider;
    const siblings = listVendorRows(provider.id).flatMap((id) => this.#providers.get(id) ?? []);
    return siblings.find((sibling) => sibling.official && sibling.provider.protocol === client) ?? provider;
  }
}

/** The error message for a model name without a provider. */
export function explainUnknownModel(name: string, { models, providers }: GatewayState): string {
  const provider = name.slice(0, Math.max(0, name.indexOf('/')));
  const ids = [...providers.values()].filter(({ isDemo }) => !isDemo).map(({ id }) => id);
  const row = findRow(provider || (findFamily(name) ?? ''));
  const missing = row ? `: ${row.title} is not configured${explainSetup(row)}` : '';
  const nearest = row ? undefined : (suggest(name, [...models, ...(provider === '' ? ids : [])]) ?? suggestProvider(name, ids));
  const known = describeKnown(models.length > 0 ? models : ids.map((id) => `${id}/MODEL`));
  const guess = nearest === undefined ? '' : ` (did you mean "${nearest}"?)`;
  return `no provider is configured for model ${JSON.stringify(name.slice(0, 200))}${missing}${known}${guess}`;
}

/** `opnai/gpt-5`: a provider that is configured, or a known one. */
function suggestProvider(name: string, ids: readonly string[]): string | undefined {
  const slash = name.indexOf('/');
  const nearest = slash > 0 ? suggest(name.slice(0, slash), [...ids, ...PROVIDER_IDS]) : undefined;
  return nearest === undefined ? undefined : nearest + name.slice(slash, 200);
}

/** What makes a provider of the table available. */
function explainSetup({ key_env: [variable], base_env = [], local }: ProviderRow): string {
  const needed = local ? base_env[0] : variable;
  return needed === undefined ? '' : `; set ${needed} and restart`;
}

const MAX_LISTED = 10;

function describeKnown(names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
  return `; known: ${names.slice(0, MAX_LISTED).join(', ')}${more}`;
}
