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
    const target = reader.read(root, {});
    if (target) draft.model('*', [target]);
  }
  root.finish(REASONS);
}

const KNOWN = ['strategy', 'targets', 'provider', 'virtual_key', 'api_key', 'retry', 'cache'];

const GUARDS = 'Sluice has no guardrails';

const REASONS: Reasons = {
  on_status_codes: 'Sluice decides by the failure whether to retry and to fall back',
  after_request_hooks: GUARDS,
  before_request_hooks: GUARDS,
  input_guardrails: GUARDS,
  output_guardrails: GUARDS,
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
  retry?.finish({ ...REASONS, use_retry_after_header: 'Retry-After is always respected' });
  const cache = root.section('cache');
  const mode = cache?.text('mode');
  const age = cache?.number('max_age');
  if (mode === 'simple') draft.settings.set('cache', age !== undefined && age > 0 ? { ttl: `${age}s` } : {});
  else if (mode !== undefined) cache?.note('mode', 'dropped', 'responses are cached for equal requests only');
  cache?.finish();
}

/** Settings that targets take from those around them. */
interface Inherited {
  model?: string;
}

/** Reads targets, which may contain others. */
class TargetReader {
  readonly #draft: Draft;

  constructor(draft: Draft) {
    this.#draft = draft;
  }

  read(section: Section, inherited: Inherited): DraftTarget | undefined {
    const weight = section.number('weight');
    const own = this.#readOwn(section, inherited);
    if (!own) return undefined;
    return { ...own, ...(weight !== undefined && weight > 0 && { weight: Math.min(1000, weight) }) };
  }

  #readOwn(section: Section, inherited: Inherited): DraftTarget | undefined {
    const params = section.section('override_params');
    const model = params?.text('model') ?? inherited.model;
    params?.finish({}, 'fields of requests cannot be overridden; let clients send them');
    const next = model === undefined ? {} : { model };
    if (section.has('targets')) return this.#readGroup(section, next);
    return this.#readProvider(section, next);
  }

  #readGroup(section: Section, inherited: Inherited): DraftTarget | undefined {
    const strategy = section.section('strategy');
    const mode = strategy?.text('mode') ?? 'single';
    if (mode === 'conditional')
      strategy?.note('mode', 'changed', 'conditions are supported at the top only; the targets are tried in order');
    const targets = section.sections('targets').flatMap((target) => {
      const read = this.read(target, inherited) ?? [];
      finishTarget(target);
      return read;
    });
    strategy?.finish(REASONS);
    if (targets.length === 0) return undefined;
    if (mode === 'loadbalance') return this.#draft.pool(targets, 'weighted');
    return this.#draft.pool(mode === 'single' ? targets.slice(0, 1) : targets, 'order');
  }

  #readProvider(section: Section, { model }: Inherited): DraftTarget | undefined {
    const slug = section.text('virtual_key') ?? stripAt(section.text('provider'));
    const [prefix, sent] = splitSlug(model);
    const name = section.text('provider')?.replace(/^@/, '') ?? prefix ?? slug;
    if (name === undefined) {
      section.note('', 'dropped', 'a target needs provider or virtual_key');
      return undefined;
    }
    const vendor = findVendor(name) ?? guessVendor(name);
    if (!vendor?.row) {
      section.note(
        section.has('provider') ? 'provider' : 'virtual_key',
        'dropped',
        `provider "${name}" is not supported, or its name does not show what it is; add it under providers`,
      );
      return undefined;
    }
    const id = this.#draft.provider(vendor.row, this.#readSettings(section, vendor.row), section.at('api_key'));
    const deployment = section.text('deployment_id');
    const chosen = this.#draft.plain(deployment ?? sent ?? '*', section.at('override_params'));
    return chosen === undefined ? undefined : { target: `${id}/${chosen}` };
  }

  #readSettings(section: Section, row: string): DraftProvider {
    const resource = section.text('resource_name');
    const host = section.text('custom_host');
    const timeout = section.number('request_timeout');
    const key = this.#readKey(section, row);
    const settings = {
      extends: row,
      base_url: host === undefined ? buildAzureUrl(resource) : this.#readHost(host, section),
      api_key: key,
      api_version: section.text('api_version'),
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

  #readKey(section: Section, row: string): string | undefined {
    const literal = section.text('api_key');
    if (literal !== undefined) return this.#draft.secret(literal, findKeyVariable(row), section.at('api_key'));
    const stored = section.has('virtual_key')
      ? 'virtual_key'
      : section.text('provider')?.startsWith('@')
        ? 'provider'
        : undefined;
    if (stored === undefined) return undefined;
    const slug = section.text(stored)?.replace(/^@/, '') ?? '';
    const variable = `${slug
      .toUpperCase()
      .replace(/\W+/g, '_')
      .replace(/^(?=\d)/, 'KEY_')}_API_KEY`;
    section.note(stored, 'secret', `the key is stored at Portkey; set the environment variable ${variable} to it`);
    return this.#draft.reference(variable);
  }

  #readHost(host: string, section: Section): string | undefined {
    const { base } = splitEndpoint(host);
    if (URL.canParse(base) && /^https?:$/.test(new URL(base).protocol) && !/[?#@]/.test(base)) return base;
    section.note('custom_host', 'dropped', 'must be an http:// or https:// URL without user, query and fragment');
    return undefined;
  }
}

const stripAt = (provider: string | undefined): string | undefined => (provider?.startsWith('@') ? provider.slice(1) : undefined);

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

/** Conditions on the requested model become rules; others cannot be expressed. */
function readConditions(root: Section, reader: TargetReader, draft: Draft): void {
  const strategy = root.section('strategy');
  const named = new Map<string, DraftTarget>();
  for (const section of root.sections('targets')) {
    const name = section.text('name');
    const target = reader.read(section, {});
    finishTarget(section);
    if (name !== undefined && target) named.set(name, target);
  }
  for (const [i, condition] of (strategy?.sections('conditions') ?? []).entries()) {
    const models = readModels(condition.section('query'));
    const target = named.get(condition.text('then') ?? '');
    if (models.length === 0) condition.note('query', 'dropped', 'only conditions on params.model with $eq or $in are supported');
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
  if (model.includes('*')) condition.note('query', 'dropped', 'a model name with * is not a name here');
  else if (target.startsWith('pool-') && target.includes('*'))
    condition.note('then', 'dropped', `condition ${i + 1} leads to several targets without a model; set override_params.model`);
  else draft.model(model, [{ target: target.replace('*', model) }]);
}

function readModels(query: Section | undefined): string[] {
  if (query?.keys.length !== 1) return [];
  if (query.isText('params.model')) return query.texts('params.model');
  const condition = query.has('params.model') ? query.section('params.model') : undefined;
  if (!condition) return [];
  if (condition.keys.length !== 1) return [];
  return condition.has('$in') ? condition.texts('$in') : [condition.text('$eq') ?? []].flat();
}
