import { CODECS, CodecError, type ProtocolId, type Provider, type Route } from '@sluice/core';
import type { Passthrough } from '../config/options.ts';
import { KNOWN_ENDPOINTS, type PassedMethod } from './known-endpoints.ts';
import type { Directory, Speaker } from './services.ts';

/** `stored` reads, changes or deletes an object that the provider keeps; `create` makes a new one. */
export type EndpointKind = 'stateless' | 'create' | 'stored';

/** Known endpoints as a tree of path segments: a lookup takes one step per segment. */
interface Branch {
  readonly literals: Map<string, Branch>;
  any?: Branch;
  readonly methods: Map<PassedMethod, EndpointKind>;
}

const createBranch = (): Branch => ({ literals: new Map(), methods: new Map() });

const ENDPOINTS: Readonly<Record<ProtocolId, Branch>> = {
  'openai-chat': buildTree('openai-chat'),
  'openai-responses': buildTree('openai-responses'),
  'anthropic-messages': buildTree('anthropic-messages'),
  gemini: buildTree('gemini'),
};

function buildTree(protocol: ProtocolId): Branch {
  const root = createBranch();
  const { stateless, stored } = KNOWN_ENDPOINTS[protocol];
  for (const [path, ...methods] of stateless) for (const method of methods) leafFor(root, path).methods.set(method, 'stateless');
  for (const [path, ...methods] of stored)
    for (const method of methods)
      leafFor(root, path).methods.set(method, method === 'POST' && !path.includes('{id}') ? 'create' : 'stored');
  return root;
}

function leafFor(root: Branch, path: string): Branch {
  let branch = root;
  for (const segment of splitPath(path)) branch = segment.startsWith('{') ? growAny(branch) : growLiteral(branch, segment);
  return branch;
}

function growAny(branch: Branch): Branch {
  branch.any ??= createBranch();
  return branch.any;
}

function growLiteral({ literals }: Branch, segment: string): Branch {
  const known = literals.get(segment);
  if (known) return known;
  const grown = createBranch();
  literals.set(segment, grown);
  return grown;
}

/** Gemini's `:verb` counts as a segment of its own; a colon elsewhere is part of an id (`ft:gpt-4o:org::id`). */
function splitPath(path: string): string[] {
  const segments = path.split('/');
  const last = segments.at(-1) ?? '';
  const colon = last.lastIndexOf(':');
  return colon > 0 && /^:[a-zA-Z]+$/.test(last.slice(colon))
    ? [...segments.slice(0, -1), last.slice(0, colon), last.slice(colon)]
    : segments;
}

/** Ids and model names: no character that a server could take for a separator, however it is escaped. */
const ID = /^[\w.~@+-][\w.~@+:-]{0,511}$/;
/** A colon that is left in a Gemini path could be read as another verb. */
const GEMINI_ID = /^[\w.~@+-]{1,512}$/;

function isId(segment: string, pattern: RegExp): boolean {
  try {
    const id = decodeURIComponent(segment);
    return pattern.test(id) && id !== '.' && id !== '..';
  } catch {
    return false;
  }
}

/** What a known endpoint does; undefined for one that the vendor does not document. The path is the one below the version, as it is sent. */
export function findEndpoint(protocol: ProtocolId, method: string, path: string): EndpointKind | undefined {
  const isGemini = protocol === 'gemini';
  const pattern = isGemini ? GEMINI_ID : ID;
  let branch: Branch | undefined = ENDPOINTS[protocol];
  for (const segment of isGemini ? splitPath(path) : path.split('/'))
    branch = branch?.literals.get(segment) ?? (isId(segment, pattern) ? branch?.any : undefined);
  // HEAD tells what GET would.
  const asked = method === 'HEAD' ? 'GET' : method;
  return branch?.methods.get(asked as PassedMethod); // any other text is no key
}

export interface PassedRequest {
  method: string;
  route: Route;
  directory: Directory;
}

/** Where a request is passed on to. */
export interface Destination {
  speaker: Speaker;
  url: string;
}

/** Finds the provider for a request that is passed on, and checks that its `passthrough` setting allows the endpoint. Throws the refusal. */
export function findDestination({ method, route, directory }: PassedRequest): Destination {
  const { path, type, client } = route;
  const speaker = directory.speaker(client.id);
  const shown = `${method} ${path.split('?', 1)[0]?.slice(0, 200)}`;
  if (!speaker) throw refusal('NOT_FOUND', `${shown} cannot be passed on: no provider with protocol ${client.id} is configured`);
  const { provider, passthrough } = speaker;
  const url = urlAt(provider, type, path);
  // Audio and images have fixed paths, all of them stateless.
  const kind = type === 'PASSTHROUGH' ? kindOf(url, method, provider) : 'stateless';
  const why = whyRefused(kind, passthrough, { isShared: !directory.gatekeeper.isOpen });
  if (!why) return { speaker, url };
  const setting = `providers.${provider.id}.passthrough`;
  throw refusal(why.code, `${shown} ${why.reason}; set ${setting} to ${why.remedy}`);
}

interface Refusal {
  code: keyof typeof STATUS;
  reason: string;
  remedy: string;
}

/** `isShared`: several clients use the operator's key, and an object that one of them stored is not the others' business. */
function whyRefused(
  kind: EndpointKind | undefined,
  passthrough: Passthrough,
  { isShared }: { isShared: boolean },
): Refusal | undefined {
  if (passthrough === 'all') return undefined;
  if (passthrough === 'off')
    return { code: 'PERMISSION', reason: 'is not passed on to the provider', remedy: '"known" or "all" to allow it' };
  if (kind === undefined)
    return { code: 'NOT_FOUND', reason: 'is not a known endpoint of the provider', remedy: '"all" to pass on every path' };
  return kind === 'stored' && isShared
    ? { code: 'PERMISSION', reason: 'reaches stored objects, which all client keys would share', remedy: '"all" to allow it' }
    : undefined;
}

/** Only Chat knows audio and images by their type; to all others they are paths like any other. */
function urlAt(provider: Provider, type: Route['type'], path: string): string {
  const codec = CODECS[provider.protocol];
  return codec.buildUrl(codec.supports(type) ? type : 'PASSTHROUGH', { provider, model: '', stream: false }, '', path);
}

/** Reads the endpoint from the URL that is sent, so that what is checked cannot differ from it. */
function kindOf(url: string, method: string, provider: Provider): EndpointKind | undefined {
  const { pathname, searchParams } = new URL(url);
  const root = new URL(urlAt(provider, 'MODELS', '')).pathname.slice(0, -'models'.length);
  if (!pathname.startsWith(root) || [...searchParams.keys()].some((name) => METHOD_OVERRIDE.test(name))) return undefined;
  return findEndpoint(provider.protocol, method, pathname.slice(root.length));
}

/** Google's frontends, and some web frameworks, take the method from such a parameter. */
const METHOD_OVERRIDE = /^(\$.*|_method|x-http-method(-override)?)$/i;

const STATUS = { NOT_FOUND: 404, PERMISSION: 403 } as const;

const refusal = (code: keyof typeof STATUS, message: string): CodecError =>
  new CodecError({ code, message, http_status: STATUS[code] });
