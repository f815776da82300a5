/** Imports a config of Portkey (JSON with strategy and targets). */

import type { Draft, DraftProvider, DraftTarget } from './draft.ts';
import { ImportError, type Reasons, type Section } from './section.ts';
import { findKeyVariable, findVendor, guessVendor, splitEndpoint } from './vendors.ts';

/** Builds a configuration from a parsed config. It applies to every model that a client requests. */
export function importPortkey(root: Section, draft: Draft): void {
  if (!KNOWN.some((key) => root.has(key)))
    throw new ImportError('this is not a Portkey config: it has neither "strategy" and "targets" nor "provider"');
  readLimits(root, draft);
  const reader = new TargetReader(draft);
  if (root.section('strategy')?.text('mode') === 'conditional') readConditions(root, reader, draft);
  else {
    const target = reader.read(root, NOTHING);
    if (target) draft.model('*', [target]);
  }
  root.finish(REASONS);
}

const KNOWN = ['strategy', 'targets', 'provider', 'virtual_key', 'api_key', 'retry', 'cache'];

const GUARDS = 'Sluice has no guardrails';
const REQUEST_FIELDS = 'fields of requests cannot be added or removed; let clients send what they need';
const NO_CLOUD_LOGIN = 'only API keys are supported for Azure; set api_key of the provider';

const REASONS: Reasons = {
  on_status_codes: 'Sluice decides by the failure whether to retry and to fall back',
  after_request_hooks: GUARDS,
  before_request_hooks: GUARDS,
  input_guardrails: GUARDS,
  output_guardrails: GUARDS,
  default_input_guardrails: GUARDS,
  default_output_guardrails: GUARDS,
  input_mutators: GUARDS,
  output_mutators: GUARDS,
  default_params: REQUEST_FIELDS,
  drop_params: REQUEST_FIELDS,
  cb_config: 'a target that fails five times in a row is paused; limits.pause sets how long',
  sticky: 'a conversation stays with its target; affinity sets how long',
  deployments: 'only deployment_id is carried over; add the others to models',
  azure_auth_mode: NO_CLOUD_LOGIN,
  azure_ad_token: NO_CLOUD_LOGIN,
  azure_entra_client_id: NO_CLOUD_LOGIN,
  azure_entra_client_secret: NO_CLOUD_LOGIN,
  azure_entra_tenant_id: NO_CLOUD_LOGIN,
  azure_managed_client_id: NO_CLOUD_LOGIN,
  forward_headers: 'headers of clients are not forwarded, except those of the protocol',
  strict_open_ai_compliance: 'responses follow the protocol of the client',
  metadata: 'tags belong to client keys and requests',
  prompt_id: 'Sluice has no prompt library',
};

function readLimits(root: Section, draft: Draft): void {
  const retry = root.section('retry');
  const attempts = retry?.number('attempts');
  if (attempts !== undefined && attempts >= 0)
    draft.settings.set('limits', { retries_per_provider: Math.min(10, Math.trunc(attempts)) });
  const respected = 'Retry-After is always respected';
  retry?.finish({ ...REASONS, use_retry_after_header: respected, use_retry_after_headers: respected });
  const cache = root.section('cache');
  const mode = cache?.text('mode');
  const age = cache?.number('max_age');
  if (mode === 'simple') {
    draft.settings.set('cache', age !== undefined && age > 0 ? { ttl: `${age}s` } : {});
    cache?.note('mode', 'changed', 'responses are cached for each client key separately; set scope: shared to share them');
  } else if (mode !== undefined) cache?.note('mode', 'dropped', 'responses are cached for equal requests only');
  cache?.finish();
}

/** Settings that targets take from those around them. */
interface Inherited {
  readonly model: string | undefined;
  readonly host: string | undefined;
  readonly timeout: number | undefined;
}

const NOTHING: Inherited = { model: undefined, host: undefined, timeout: undefined };

/** Reads targets, which may contain others. */
class TargetReader {
  readonly #draft: Draft;

  constructor(draft: Draft) {
    this.#draft = draft;
  }

  read(section: Section, inherited: Inherited): DraftTarget | undefined {
    const weight = section.number('weight');
    const own = this.#readOwn(section, this.inherit(section, inherited));
    if (!own) return undefined;
    return { ...own, ...(weight !== undefined && weight > 0 && { weight: Math.min(1000, weight) }) };
  }

  /** What the targets inside a section take from it. */
  inherit(section: Section, inherited: Inherited): Inherited {
    const params = section.section('override_params');
    const model = params?.text('model') ?? inherited.model;
    params?.finish({}, 'fields of requests cannot be overridden; let clients send them');
    const host = section.text('custom_host');
    return {
      model,
      host: host === undefined ? inherited.host : this.#readHost(host, section),
      timeout: section.number('request_timeout') ?? inherited.timeout,
    };
  }

  #readOwn(section: Section, inherited: Inherited): DraftTarget | undefined {
    return section.has('targets') ? this.#readGroup(section, inherited) : this.#readProvider(section, inherited);
  }

  #readGroup(section: Section, inherited: Inherited): DraftTarget | undefined {
    const strategy = section.section('strategy');
    const mode = strategy?.text('mode') ?? 'single';
    if (mode === 'conditional')
      strategy?.note('mode', 'changed', 'conditions are supported at the top only; the targets are tried in order');
    const targets = section.sections('targets').flatMap((target, i) => {
      const unused = findUnused(target, mode, i);
      if (unused !== undefined) {
        target.note('', 'dropped', unused);
        return [];
      }
      const read = this.read(target, inherited) ?? [];
      finishTarget(target);
      return read;
    });
    strategy?.finish(REASONS);
    if (targets.length === 0) return undefined;
    return this.#draft.pool(targets, mode === 'loadbalance' ? 'weighted' : 'order');
  }

  #readProvider(section: Section, inherited: Inherited): DraftTarget | undefined {
    const [prefix, sent] = splitSlug(inherited.model);
    const stored = this.#findStored(section, prefix);
    const name = section.text('provider')?.replace(/^@/, '') ?? stored?.slug;
    if (name === undefined) {
      const isOpen = section.flag('passthrough') === true;
      section.note('', 'dropped', isOpen ? PASSTHROUGH : 'a target needs provider or virtual_key');
      return undefined;
    }
    const vendor = findVendor(name) ?? guessVendor(name, sent);
    if (!vendor?.row) {
      section.note(
        stored?.key ?? 'provider',
        'dropped',
        `provider "${name}" is not supported, or its name does not show what it is; add it under providers`,
      );
      return undefined;
    }
    const base = inherited.host ?? (Object.hasOwn(ADDRESSES, name) ? ADDRESSES[name] : undefined);
    const settings = this.#readSettings(section, { row: vendor.row, base, timeout: inherited.timeout, stored });
    const id = this.#draft.provider(vendor.row, settings, section.at('api_key'));
    const deployment = section.firstText(['deployment_id', 'azure_deployment_id'])?.text;
    const chosen = this.#draft.plain(deployment ?? sent ?? '*', section.at('override_params'));
    return chosen === undefined ? undefined : { target: `${id}/${chosen}` };
  }

  /** The name under which Portkey stores the key of a target: its virtual key, or the slug of its provider or model. */
  #findStored(section: Section, prefix: string | undefined): Stored | undefined {
    const virtual = section.text('virtual_key');
    if (virtual !== undefined) return { key: 'virtual_key', slug: virtual };
    const provider = section.text('provider');
    if (provider?.startsWith('@')) return { key: 'provider', slug: provider.slice(1) };
    return prefix === undefined || provider !== undefined ? undefined : { key: 'override_params', slug: prefix };
  }

  #readSettings(section: Section, { row, base, timeout, stored }: Facts): DraftProvider {
    const resource = section.firstText(['resource_name', 'azure_resource_name'])?.text;
    const settings = {
      extends: row,
      base_url: base ?? buildAzureUrl(resource),
      api_key: this.#readKey(section, row, stored),
      api_version: section.firstText(['api_version', 'azure_api_version'])?.text,
      organization: section.text('openai_organization'),
      project: section.text('openai_project'),
      total_timeout: timeout !== undefined && timeout > 0 ? `${timeout}ms` : undefined,
    };
    return Object.fromEntries(
      Object.entries(settings).filter(
        ([name, value]) => value !== undefined && (name === 'api_key' || this.#isPlain(value, section, name)),
      ),
    );
  }

  #isPlain(value: string, section: Section, name: string): boolean {
    return this.#draft.plain(value, section.at(name)) !== undefined;
  }

  #readKey(section: Section, row: string, stored: Stored | undefined): string | undefined {
    const literal = section.text('api_key');
    if (literal !== undefined) return this.#draft.secret(literal, findKeyVariable(row), section.at('api_key'));
    if (stored === undefined) return undefined;
    const variable = `${stored.slug
      .toUpperCase()
      .replace(/\W+/g, '_')
      .replace(/^(?=\d)/, 'KEY_')}_API_KEY`;
    section.note(
      stored.key,
      'secret',
      `the key is stored at Portkey; set the environment variable ${variable} to it. The provider seems to be ${row}`,
    );
    return this.#draft.reference(variable);
  }

  #readHost(host: string, section: Section): string | undefined {
    const { base } = splitEndpoint(host);
    if (URL.canParse(base) && /^https?:$/.test(new URL(base).protocol) && !/[?#@]/.test(base)) return base;
    section.note('custom_host', 'dropped', 'must be an http:// or https:// URL without user, query and fragment');
    return undefined;
  }
}

/** Where a target has the name of its key. */
interface Stored {
  readonly key: string;
  readonly slug: string;
}

/** What is known of a target before its settings are read. */
interface Facts {
  readonly row: string;
  readonly base: string | undefined;
  readonly timeout: number | undefined;
  readonly stored: Stored | undefined;
}

const PASSTHROUGH = 'the client chooses the provider of such a target; here it does by requesting provider/model';

/** Addresses of Portkey that differ from those of Sluice: keys of one region are not valid in the other. */
const ADDRESSES: Readonly<Record<string, string>> = { moonshot: 'https://api.moonshot.cn/v1' };

/** Why the source sends no request to a target. */
function findUnused(target: Section, mode: string, i: number): string | undefined {
  if (mode === 'single' && i > 0) return 'mode single uses the first target only';
  return mode === 'loadbalance' && target.number('weight') === 0 ? 'weight 0 means that it gets no requests' : undefined;
}

/** `@slug/model` names the stored provider in the model. */
function splitSlug(model: string | undefined): [slug: string | undefined, model: string | undefined] {
  const [, slug, rest] = /^@([^/]+)\/(.+)$/.exec(model ?? '') ?? [];
  return slug === undefined ? [undefined, model] : [slug, rest];
}

const buildAzureUrl = (resource: string | undefined): string | undefined =>
  resource !== undefined && /^[\w-]+$/.test(resource) ? `https://${resource}.openai.azure.com` : undefined;

/** Retries and caches of one target are settings of the whole gateway here. */
function finishTarget(target: Section): void {
  target.finish({
    ...REASONS,
    name: 'targets have no names; conditions refer to them only in the source',
    retry: 'retries are set for all providers: limits.retries_per_provider',
    cache: 'the cache is set for all models: cache.models',
  });
}

/** Conditions on the requested model become names of models; others cannot be expressed. */
function readConditions(root: Section, reader: TargetReader, draft: Draft): void {
  const strategy = root.section('strategy');
  const inherited = reader.inherit(root, NOTHING);
  const named = new Map<string, DraftTarget>();
  for (const section of root.sections('targets')) {
    const name = section.text('name');
    const target = name === undefined ? undefined : reader.read(section, inherited);
    if (name === undefined) section.note('', 'dropped', 'has no name, so that no condition leads to it');
    else finishTarget(section);
    if (name !== undefined && target) named.set(name, target);
  }
  for (const [i, condition] of (strategy?.sections('conditions') ?? []).entries()) {
    const models = readModels(condition.section('query'));
    const target = named.get(condition.text('then') ?? '');
    if (models.length === 0)
      condition.note('query', 'dropped', 'only conditions on params.model with $eq, $in or $or of these are supported');
    else if (!target) condition.note('then', 'dropped', 'is not the name of a target that was carried over');
    else for (const model of models) addCondition(model, target, i, condition, draft);
  }
  const otherwise = named.get(strategy?.text('default') ?? '');
  if (otherwise) draft.model('*', [otherwise]);
  else strategy?.note('default', 'dropped', 'is not the name of a target that was carried over');
  strategy?.finish(REASONS);
}

/** An exact name beats the pattern `*`, so an entry of `models` suffices. */
function addCondition(model: string, { target }: DraftTarget, i: number, condition: Section, draft: Draft): void {
  if (draft.hasModel(model)) condition.note('query', 'dropped', `an earlier condition decides about "${model}"`);
  else if (model.includes('*')) condition.note('query', 'dropped', 'a model name with * is not a name here');
  else if (target.startsWith('pool-') && target.includes('*'))
    condition.note('then', 'dropped', `condition ${i + 1} leads to several targets without a model; set override_params.model`);
  else draft.model(model, [{ target: target.replace('*', model) }]);
}

function readModels(query: Section | undefined): string[] {
  if (query?.keys.length !== 1) return [];
  if (query.has('$or')) {
    const parts = query.sections('$or').map(readModels);
    return parts.some(({ length }) => length === 0) ? [] : parts.flat();
  }
  if (query.isText('params.model')) return query.texts('params.model');
  const condition = query.has('params.model') ? query.section('params.model') : undefined;
  if (!condition) return [];
  if (condition.keys.length !== 1) return [];
  return condition.has('$in') ? condition.texts('$in') : [condition.text('$eq') ?? []].flat();
}
