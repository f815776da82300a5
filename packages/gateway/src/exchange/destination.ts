/** Where a request that is only forwarded goes: the provider of its model, and whether its endpoint is allowed. */

import { CodecError, type Provider } from '@sluice/core';
import { CODECS, checkModelName, type Route } from '@sluice/core/engine';
import { findJsonStrings, parseDeployment, type Span, withFields } from '@sluice/core/internal';
import type { Passthrough } from '../config/options.ts';
import { MultipartForm } from '../http/multipart.ts';
import { refuseMethod } from '../http/refusal.ts';
import type { ModelUse } from '../keys/scope.ts';
import { type Endpoint, type EndpointKind, findEndpoint, listMethods, sharesEndpoints, suggestPath } from './known-endpoints.ts';
import { createJsonError } from './request-body.ts';
import { type Candidate, type Directory, formatProvider, type ProviderEndpoint } from './types.ts';

/**
 * Finds the provider for a forwarded request: the provider of its model, or the first of its protocol when it names no
 * model. Throws if the provider's `passthrough` setting does not allow the endpoint.
 */
export function findDestination(request: PassedRequest, body: PassedBody): Destination {
  const destination = findByModel(request, body) ?? findFirst(request, body);
  checkAllowed(request, destination.endpoint, destination.url);
  return destination;
}

/**
 * The path of an endpoint that does all of its work before it responds, with `{model}` for a model; undefined for others
 * and for requests that name no model.
 */
export function findCountedPath(
  { method, route }: PassedRequest,
  { endpoint: { provider }, url, model }: Destination,
): string | undefined {
  const kind = route.type === 'PASSTHROUGH' ? readEndpoint(url, method, provider)?.kind : 'stateless';
  if (kind !== 'stateless' || model === undefined) return undefined;
  return readEndpointPath(url, provider)?.replace(/^models\/.{1,1024}(:\w+)$/, 'models/{model}$1');
}

/** Where the provider reads the models that a request runs, and whether the request names them there. */
export function findModelUse({ method, route }: PassedRequest, { endpoint, url, namedIn }: Destination): ModelUse {
  // Audio and images have the model in the body.
  const place = route.type === 'PASSTHROUGH' ? (readEndpoint(url, method, endpoint.provider)?.model ?? 'elsewhere') : 'body';
  return { place, isNamed: place === 'none' || (place !== 'elsewhere' && namedIn.has(place)) };
}

/** A request that is only forwarded, and the configuration it began with. */
export interface PassedRequest {
  method: string;
  route: Route;
  directory: Directory;
  /** The only provider that may get the request: it keeps the object that the request is about for this client. */
  keeper?: string | undefined;
}

/** The body of a request and its `content-type`. */
export interface PassedBody {
  bytes: Buffer;
  type: string;
}

/** Where a request is forwarded, and what is sent. */
export interface Destination {
  endpoint: ProviderEndpoint;
  url: string;
  body: Buffer;
  /** The provider's name of the model; undefined when the request names none. */
  model?: string;
  /** The models that the client named. */
  names: readonly string[];
  /** Where it named them. */
  namedIn: ReadonlySet<'body' | 'path' | 'query'>;
  /** The parsed body, or the fields of a form; undefined for a body that is neither. */
  fields?: unknown;
  /** The body as it arrived, if it is JSON. */
  text?: string | undefined;
}

/** Rejects a request that no provider may receive, before its body is read. */
export function checkPassable(request: PassedRequest): void {
  const { type, path } = request.route;
  const named = readPathModel(request.route);
  if (named) {
    const target = findNamed(request, named.name);
    checkAllowed(request, target, buildUrl(target.provider, type, target.model, named.withModel(target.model)));
    return;
  }
  // The model is not known yet. Only Azure has it in its paths, where any name will do for this check.
  const refusals = findProviders(request).map((endpoint) =>
    explainRefusal(request, endpoint, buildUrl(endpoint.provider, type, 'm', path)),
  );
  const [first] = refusals;
  if (first && refusals.every((reason) => reason !== undefined)) throw first;
}

function findFirst(request: PassedRequest, { bytes }: PassedBody): Destination {
  const { type, path } = request.route;
  const [endpoint] = findProviders(request);
  return { endpoint, url: buildUrl(endpoint.provider, type, '', path), body: bytes, names: [], namedIn: new Set() };
}

function findProviders(request: PassedRequest): readonly [ProviderEndpoint, ...ProviderEndpoint[]] {
  const { directory, route } = request;
  const { keeper } = request;
  const [first, ...others] = directory
    .providersFor(route.client.id)
    .filter(({ provider }) => keeper === undefined || provider.id === keeper);
  if (first) return [first, ...others];
  const reason = `no provider with protocol ${route.client.id} is configured`;
  throw createRefusal(
    'UNSUPPORTED_INTERFACE',
    `${formatEndpoint(request)} cannot be passed through: ${reason}${formatHint(request)}`,
  );
}

function findByModel(request: PassedRequest, { bytes, type }: PassedBody): Destination | undefined {
  const inBody = readNamedModels(bytes, type);
  const inPath = readPathModel(request.route);
  return inPath?.isDeployment ? findDeployment(request, inPath, inBody) : findRouted(request, inPath, inBody);
}

/** Azure ignores the model in the body, so its clients put anything there; other servers read only that. */
function findDeployment({ route, ...request }: PassedRequest, { name }: PathModel, inBody: NamedModels): Destination {
  const target = findNamed({ ...request, route }, name);
  const { model, provider } = target;
  const url = buildUrl(provider, route.type, model, route.path);
  return {
    endpoint: target,
    url,
    body: inBody.set(model),
    model,
    names: [name],
    namedIn: new Set(['body', 'path']),
    fields: inBody.fields,
    text: inBody.text,
  };
}

function findRouted(request: PassedRequest, inPath: PathModel | undefined, inBody: NamedModels): Destination | undefined {
  const { route } = request;
  const query = new URLSearchParams(readQuery(route.path));
  const inQuery = query.get('model');
  const names = [...inBody.names, ...(inPath ? [inPath.name] : []), ...(inQuery ? [inQuery] : [])];
  const targets = names.map((name) => findNamed(request, name));
  const [target] = targets;
  if (!target) return undefined;
  checkOneProvider(targets);
  if (inQuery) query.set('model', targets.at(-1)?.model ?? '');
  const path = inPath?.withModel(targets[inBody.names.length]?.model ?? '') ?? route.path;
  const { provider, model } = target;
  return {
    endpoint: target,
    url: buildUrl(provider, route.type, model, inQuery ? `${readPath(path)}?${query}` : path),
    body: inBody.rename(inBody.names.map((name, i) => renameModel(name, targets[i]?.model ?? ''))),
    model,
    names: names.map((name) => name.replace(RESOURCE, '')),
    namedIn: new Set([
      ...(inBody.names.length > 0 ? (['body'] as const) : []),
      ...(inPath ? (['path'] as const) : []),
      ...(inQuery ? (['query'] as const) : []),
    ]),
    fields: inBody.fields,
    text: inBody.text,
  };
}

function checkOneProvider(targets: readonly Candidate[]): void {
  const providers = [...new Set(targets.map(({ provider }) => JSON.stringify(provider.id)))];
  if (providers.length < 2) return;
  const message = `model: refers to more than one provider (${providers.slice(0, 5).join(', ')}); send one request for each`;
  throw new CodecError({ code: 'INVALID_INPUT', message, http_status: 400, param: 'model' });
}

/** Gemini's bodies name models as resources. */
const RESOURCE = /^models\//;

const renameModel = (before: string, model: string): string => (RESOURCE.test(before) ? `models/${model}` : model);

/** The provider of a model, as for chat, but only one that has the endpoints of the client's protocol. */
function findNamed(request: PassedRequest, name: string): Candidate {
  const { directory, route } = request;
  const model = name.replace(RESOURCE, '');
  checkModelName(model);
  const candidates = directory.resolve(model, route.client.id);
  const [first] = candidates;
  if (!first) throw createRefusal('NOT_FOUND', directory.whyUnknown(model));
  const native = candidates.filter(
    ({ provider, transport }) => !transport && sharesEndpoints(provider.protocol, route.client.id),
  );
  const found = native.find(({ passthrough }) => passthrough !== 'off') ?? native[0];
  if (!found)
    throw createRefusal(
      'UNSUPPORTED_INTERFACE',
      `${formatProvider(first)} has no ${formatEndpoint(request)}${explainMissing(first, route)}`,
    );
  return found;
}

const explainMissing = ({ provider, transport }: Candidate, { client }: Route): string =>
  transport ? '' : `: its protocol is ${provider.protocol}; name a model of a provider with protocol ${client.id}`;

interface PathModel {
  name: string;
  /** An Azure deployment: its URL is built from the model, and the path is kept. */
  isDeployment: boolean;
  withModel(model: string): string;
}

function readPathModel({ client, path }: Route): PathModel | undefined {
  if (client.id === 'gemini') return readGeminiModel(path);
  const deployment = parseDeployment(path);
  return deployment && { name: deployment.model, isDeployment: true, withModel: () => path };
}

const COLLECTION = '/models/';

/** `/v1beta/models/{model}:{verb}` and `/v1beta/models/{model}/operations/{id}`; the name may have slashes. */
function readGeminiModel(path: string): PathModel | undefined {
  const plain = readPath(path);
  const start = plain.indexOf(COLLECTION) + COLLECTION.length;
  const operations = plain.lastIndexOf('/operations/');
  const end = operations > start ? operations : plain.lastIndexOf(':');
  if (start < COLLECTION.length || end <= start) return undefined;
  const withModel = (model: string): string =>
    path.slice(0, start) + model.split('/').map(encodeURIComponent).join('/') + path.slice(end);
  return { name: decodeSegment(plain.slice(start, end)), isDeployment: false, withModel };
}

function decodeSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const readPath = (path: string): string => path.split('?', 1)[0] ?? '';

const readQuery = (path: string): string => path.slice(readPath(path).length + 1);

function checkAllowed(request: PassedRequest, endpoint: ProviderEndpoint, url: string): void {
  const reason = explainRefusal(request, endpoint, url);
  if (reason) throw reason;
}

/** Why a request may not be sent to this URL of a provider. */
function explainRefusal(
  request: PassedRequest,
  { provider, passthrough }: ProviderEndpoint,
  url: string,
): CodecError | undefined {
  const { route, method, directory } = request;
  // Audio and images have fixed paths, all of them stateless.
  const kind = route.type === 'PASSTHROUGH' ? readEndpoint(url, method, provider)?.kind : 'stateless';
  if (kind === undefined && passthrough === 'known') return refuseUnknown(request, provider, url);
  const why = findRefusal(kind, passthrough, { isShared: !directory.gatekeeper.isOpen && request.keeper === undefined });
  return (
    why &&
    createRefusal(why.code, `${formatEndpoint(request)} ${why.reason}; set providers.${provider.id}.passthrough to ${why.remedy}`)
  );
}

/** A path that the vendor does not document, or another method than it has. */
function refuseUnknown(request: PassedRequest, provider: Provider, url: string): CodecError {
  const endpoint = formatEndpoint(request);
  const methods = listMethods(provider.protocol, readEndpointPath(url, provider) ?? '');
  if (methods.length > 0 && !methods.includes(request.method)) return refuseMethod(endpoint, methods);
  const hint = formatHint(request);
  const remedy = hint || `; set providers.${provider.id}.passthrough to "all" to pass every path through`;
  return createRefusal('UNSUPPORTED_INTERFACE', `${endpoint} is not a known endpoint${remedy}`);
}

/** `; did you mean /v1/messages?` */
function formatHint({ route }: PassedRequest): string {
  const nearest = suggestPath(readPath(route.path));
  return nearest === undefined || nearest === readPath(route.path) ? '' : `; did you mean ${nearest}?`;
}

/** The endpoint as messages name it. */
const formatEndpoint = ({ method, route }: PassedRequest): string => `${method} ${readPath(route.path).slice(0, 200)}`;

interface Refusal {
  code: keyof typeof STATUS;
  reason: string;
  remedy: string;
}

/** `isShared`: several clients use the operator's key, so one could reach objects that another stored. */
function findRefusal(
  kind: EndpointKind | undefined,
  passthrough: Passthrough,
  { isShared }: { isShared: boolean },
): Refusal | undefined {
  if (passthrough === 'all') return undefined;
  if (passthrough === 'off')
    return { code: 'PERMISSION', reason: 'is not passed through to the provider', remedy: '"known" or "all" to allow it' };
  return kind === 'stored' && isShared
    ? { code: 'PERMISSION', reason: 'accesses stored objects, which all client keys would share', remedy: '"all" to allow it' }
    : undefined;
}

/** Only Chat has types for audio and images; other protocols treat them as plain paths. */
function buildUrl(provider: Provider, type: Route['type'], model: string, path: string): string {
  const codec = CODECS[provider.protocol];
  return codec.buildUrl(codec.supports(type) ? type : 'PASSTHROUGH', { provider, model, stream: false }, model, path);
}

/** Reads the endpoint from the URL that is sent, so that the check cannot differ from the request. */
function readEndpoint(url: string, method: string, provider: Provider): Endpoint | undefined {
  const { searchParams } = new URL(url);
  const path = readEndpointPath(url, provider);
  if (path === undefined || [...searchParams.keys()].some((name) => METHOD_OVERRIDE.test(name))) return undefined;
  return findEndpoint(provider.protocol, method, path);
}

/** The path after the version; undefined for a URL outside of it. */
function readEndpointPath(url: string, provider: Provider): string | undefined {
  const root = new URL(buildUrl(provider, 'MODELS', '', '')).pathname.slice(0, -'models'.length);
  const path = withoutUpload(new URL(url).pathname, provider);
  return path.startsWith(root) ? path.slice(root.length).replace(DEPLOYMENT, '') : undefined;
}

/** Dated versions of Azure have some endpoints below a deployment. */
const DEPLOYMENT = /^deployments\/[^/]+\//;

/** Google's upload paths create the object of the same path without `upload`. */
const withoutUpload = (pathname: string, { protocol }: Provider): string =>
  protocol === 'gemini' ? pathname.replace(/\/upload(?=\/v\d)/, '') : pathname;

/** Google's frontends and some web frameworks read the method from such a parameter. */
const METHOD_OVERRIDE = /^(\$.*|_method|x-http-method(-override)?)$/i;

const STATUS = { NOT_FOUND: 404, UNSUPPORTED_INTERFACE: 404, PERMISSION: 403 } as const;

const createRefusal = (code: keyof typeof STATUS, message: string): CodecError =>
  new CodecError({ code, message, http_status: STATUS[code] });

/** The models that a body names, and ways to rename them. */
interface NamedModels {
  readonly names: readonly string[];
  /** The parsed body, or the fields of a form. */
  readonly fields?: unknown;
  /** The body as it arrived, if it is JSON. */
  readonly text?: string;
  /** The body with `names` replaced, in the same order. */
  rename(names: readonly string[]): Buffer;
  /** The body with this model as its only one, added if the body names none. */
  set(name: string): Buffer;
}

/** Where JSON bodies name a model; `*` stands for every entry of a list. */
const MODEL_PATHS: readonly (readonly string[])[] = [
  ['model'],
  // Anthropic: agents, batches.
  ['model', 'id'],
  ['requests', '*', 'params', 'model'],
  // OpenAI: graders, evals.
  ['grader', 'model'],
  ['data_source', 'model'],
  // Gemini: batches.
  ['batch', 'model'],
];

/** Throws for a body whose models cannot be read: it must not reach a provider that the client did not name. */
function readNamedModels(body: Buffer, contentType: string): NamedModels {
  if (/^\s*multipart\/form-data\b/i.test(contentType)) return readFormModels(body, contentType);
  const isJson = /\bjson\b/i.test(contentType);
  return isJson || isObjectLike(body) ? readJsonModels(body, isJson) : createUnnamed(body);
}

const createUnnamed = (body: Buffer): NamedModels => ({ names: [], rename: () => body, set: () => body });

/** curl sends JSON as a form by default, and some clients send no content type. */
const isObjectLike = (body: Buffer): boolean => /^\s*\{/.test(body.toString('latin1', 0, HEAD_BYTES));

const HEAD_BYTES = 64;

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** `isDeclared`: the content type is JSON. Otherwise a body that is not JSON is accepted as something else. */
function readJsonModels(body: Buffer, isDeclared: boolean): NamedModels {
  if (body.length === 0) return createUnnamed(body);
  const read = parse(body);
  if (read) return new JsonModels(body, read);
  if (isDeclared) throw createJsonError(body.toString('utf8'));
  return createUnnamed(body);
}

interface ReadJson {
  text: string;
  value: unknown;
}

function parse(body: Buffer): ReadJson | undefined {
  try {
    const text = UTF8.decode(body);
    return { text, value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

class JsonModels implements NamedModels {
  readonly names: readonly string[];
  readonly fields: unknown;
  readonly text: string;
  readonly #body: Buffer;
  readonly #read: ReadJson;
  readonly #spans: readonly Span[];

  constructor(body: Buffer, read: ReadJson) {
    this.fields = read.value;
    this.text = read.text;
    this.#body = body;
    this.#read = read;
    this.#spans = MODEL_PATHS.flatMap((path) => findOnce(read.text, path)).toSorted((a, b) => a.start - b.start);
    this.names = this.#spans.map(({ start, end }) => checkName(JSON.parse(read.text.slice(start, end))));
  }

  rename(names: readonly string[]): Buffer {
    if (names.every((name, i) => name === this.names[i])) return this.#body;
    const { text } = this.#read;
    let written = '';
    let at = 0;
    for (const [i, { start, end }] of this.#spans.entries()) {
      written += text.slice(at, start) + JSON.stringify(names[i]);
      at = end;
    }
    return Buffer.from(written + text.slice(at));
  }

  set(name: string): Buffer {
    const { text, value } = this.#read;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#body;
    if (!Object.hasOwn(value, 'model')) return Buffer.from(withFields(text, { model: name }) ?? text);
    const [span] = findOnce(text, ['model']);
    return Buffer.from(
      span ? text.slice(0, span.start) + JSON.stringify(name) + text.slice(span.end) : JSON.stringify({ ...value, model: name }),
    );
  }
}

function findOnce(text: string, path: readonly string[]): readonly Span[] {
  const spans = findJsonStrings(text, path);
  if (!spans) throw MORE_THAN_ONCE;
  return spans;
}

function readFormModels(body: Buffer, contentType: string): NamedModels {
  const form = new MultipartForm(body, contentType);
  const [field, second] = form.find('model');
  if (second) throw MORE_THAN_ONCE;
  const fields = groupFields(form.listFields());
  if (!field) return { ...createUnnamed(body), fields, set: (name) => form.add('model', name) };
  const name = checkName(body.toString('utf8', field.start, Math.min(field.end, field.start + MAX_READ)));
  return {
    names: [name],
    fields,
    rename: ([next = name]) => (next === name ? body : form.replace(field, next)),
    set: (next) => form.replace(field, next),
  };
}

/** A field that is there several times has all of its values: servers read the first, the last or the list. */
function groupFields(list: readonly (readonly [name: string, value: string])[]): Readonly<Record<string, unknown>> {
  const values = new Map<string, string[]>();
  for (const [name, value] of list) {
    const known = values.get(name);
    if (known) known.push(value);
    else values.set(name, [value]);
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length > 1 ? all : all[0]]));
}

/** Longer names are rejected, so no more is decoded. */
const MAX_READ = 1024;

function checkName(name: string): string {
  checkModelName(name);
  return name;
}

const MORE_THAN_ONCE = new CodecError({ code: 'INVALID_INPUT', message: 'model: must be given only once', http_status: 400 });
