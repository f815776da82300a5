/** What a key may be used for, and from where. */

import type { CodecError } from '@sluice/core';
import { normalizeField } from '@sluice/core/internal';
import { AddressRanges } from '../http/client-address.ts';
import { refusal } from '../http/refusal.ts';
import { matchesAny } from '../providers/wildcard.ts';
import type { Caller, KeyPolicy } from './caller.ts';

/** A model that a request names. `targets`: what the name stands for, as `provider/model`. */
export interface NamedModel {
  readonly name: string;
  readonly targets: readonly string[];
}

/** Whether a key may use a model: by the name that the client used, or because all its targets are allowed. */
export function isModelAllowed({ models }: KeyPolicy, { name, targets }: NamedModel): boolean {
  if (models.length === 0) return true;
  const isListed = (text: string): boolean => matchesAny(models, text);
  return isListed(name) || (targets.length > 0 && targets.every(isListed));
}

/** Throws for a model that the key does not allow. `find` is only called for keys that are limited. */
export function checkModelScope({ name, policy }: Caller, model: string, find: (model: string) => readonly string[]): void {
  if (policy.models.length === 0) return;
  if (model === '') throw createUnnamedError(name);
  if (!isModelAllowed(policy, { name: model, targets: find(model) })) throw createScopeError(name, model);
}

/** Throws for a request of a limited key that lets its provider run other models than the one that was checked. */
export function checkOtherModels(caller: Caller, body: unknown, find: (model: string) => readonly string[]): void {
  const { name, policy } = caller;
  if (policy.models.length === 0) return;
  const field = findOtherModels(body);
  if (field !== undefined) throw refuseLimited(name, `${JSON.stringify(field)} lets the provider choose others; leave it out`);
  for (const { type, model } of listModelTools(body)) {
    if (typeof model !== 'string' || model === '')
      throw refuseLimited(name, `tool ${JSON.stringify(type)} runs a model that it does not name`);
    checkModelScope(caller, model, find);
  }
}

const refuseLimited = (key: string, why: string): CodecError =>
  refusal(403, 'PERMISSION', `client key "${key}" is limited to some models, and ${why}`);

/** The field by which a request lets the provider choose among other models than the one that it names. */
export function findOtherModels(body: unknown): string | undefined {
  if (!isRecord(body)) return undefined;
  const fields = Object.entries(body);
  return fields.find(([name, value]) => isOtherModel(name, value) && isFilled(value))?.[0];
}

function isOtherModel(name: string, value: unknown): boolean {
  const field = normalizeField(name);
  // A server that ignores case reads the model there.
  if (field === 'model') return name !== 'model';
  if (field === 'plugins') return Array.isArray(value) && value.some(namesModels);
  return OTHER_MODELS.has(field);
}

/** OpenRouter's lists, routes and presets; the fallbacks of Anthropic and of other gateways. */
const OTHER_MODELS: ReadonlySet<string> = new Set(['models', 'route', 'preset', 'fallbacks']);

/** Some plugins of OpenRouter ask several models, or choose one. */
const namesModels = (plugin: unknown): boolean => isRecord(plugin) && Object.keys(plugin).some((name) => /models?$/i.test(name));

const isFilled = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== '' && value !== false;

/** Tools of a request that run another model. */
export function listModelTools(body: unknown): readonly ModelTool[] {
  const tools: unknown = isRecord(body) ? body['tools'] : undefined;
  const isModelTool = (tool: unknown): tool is ModelTool =>
    isRecord(tool) && (tool['type'] === 'image_generation' || typeof tool['model'] === 'string');
  return Array.isArray(tools) ? tools.filter(isModelTool) : [];
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

interface ModelTool {
  readonly type?: unknown;
  readonly model?: unknown;
}

/** Throws for a request that names no model, or one that the key does not allow. */
export function checkModelScopes(caller: Caller, models: readonly string[], find: (model: string) => readonly string[]): void {
  if (caller.policy.models.length === 0) return;
  if (models.length === 0) throw createUnnamedError(caller.name);
  for (const model of models) checkModelScope(caller, model, find);
}

/** How a request that is passed on names its models. */
export interface ModelUse {
  /** Where the vendor reads them: `body`, `path`, `elsewhere`; `none` runs no model. */
  readonly place: string;
  /** All models that run are among those that the request names. */
  readonly isNamed: boolean;
}

/** Throws when a limited key would run models that were not checked. `endpoint`: method and path. */
export function checkModelsNamed({ name, policy }: Caller, endpoint: string, { place, isNamed }: ModelUse): void {
  if (policy.models.length === 0 || isNamed) return;
  const why =
    place === 'elsewhere'
      ? `${endpoint} may run others; use a key without a limit on models`
      : `${endpoint} reads its model from the ${place}; name it there`;
  throw refuseLimited(name, why);
}

const createScopeError = (key: string, model: string): CodecError =>
  refusal(
    403,
    'PERMISSION',
    `client key "${key}" does not allow model ${JSON.stringify(model.slice(0, 200))}; GET /v1/models lists the models that it allows`,
  );

const createUnnamedError = (key: string): CodecError =>
  refusal(
    403,
    'PERMISSION',
    `client key "${key}" is limited to some models, and this request names none; GET /v1/models lists the models that it allows`,
  );

/** Throws when the key may not be used from this address. */
export function checkAddress({ name, policy }: Caller, address: string): void {
  if (policy.addresses.length === 0 || isInRanges(policy, address)) return;
  throw refusal(403, 'PERMISSION', `client key "${name}" may not be used from this address`);
}

/** Built once for each policy, which does not change. */
const ranges = new WeakMap<KeyPolicy, AddressRanges>();

function isInRanges(policy: KeyPolicy, address: string): boolean {
  const known = ranges.get(policy) ?? new AddressRanges(policy.addresses);
  ranges.set(policy, known);
  return known.has(address);
}
