/** Endpoints that are forwarded without conversion, as the vendors document them. */

import type { ProtocolId } from '@sluice/core';
import { suggest } from '@sluice/lab/text';
import {
  type EndpointFields,
  type Endpoints,
  KNOWN_ENDPOINTS,
  type ModelPlace,
  type PassedMethod,
  readRow,
} from './endpoint-table.ts';

/**
 * Finds a known endpoint; undefined for one that the vendor does not document. `path` starts after the version, as it
 * is sent.
 */
export function findEndpoint(protocol: ProtocolId, method: string, path: string): Endpoint | undefined {
  // HEAD is allowed wherever GET is.
  const allowed = method === 'HEAD' ? 'GET' : method;
  return findBranch(protocol, path)?.methods.get(allowed as PassedMethod); // any other text is not in the map
}

/** What is known of an endpoint that is passed on. */
export interface Endpoint {
  readonly kind: EndpointKind;
  readonly fields: EndpointFields;
  /** Where a request names the models that run. */
  readonly model: ModelPlace;
}

/** The methods that the vendor documents for a path; none for an unknown one. */
export const listMethods = (protocol: ProtocolId, path: string): readonly string[] => [
  ...(findBranch(protocol, path)?.methods.keys() ?? []),
];

function findBranch(protocol: ProtocolId, path: string): Branch | undefined {
  const pattern = protocol === 'gemini' ? GEMINI_ID : ID;
  let branch: Branch | undefined = ENDPOINT_TREES[protocol];
  for (const segment of splitSegments(protocol, path))
    branch = branch?.literals.get(segment) ?? (isId(segment, pattern) ? branch?.any : undefined);
  return branch;
}

/**
 * The path that was probably meant by one that no protocol has: `/v1/chat/completions` for `/v1/chat/completion`, and
 * the verb of a Gemini path. The rest of the path is the client's.
 */
export function suggestPath(path: string): string | undefined {
  const [, start = '', verb] = /^(\/v\d[\w]*\/models\/[^:]{1,512}:)(\w+)$/.exec(path) ?? [];
  if (verb !== undefined) return prefix(start, suggest(verb, GEMINI_VERBS));
  const version = /^\/v\d\w*\//i.exec(path)?.[0] ?? '/';
  const isGemini = /^\/v1(alpha|beta)/i.test(version);
  return prefix(isGemini ? '/v1beta/' : '/v1/', suggest(path.slice(version.length), isGemini ? GEMINI_PATHS : PATHS));
}

const prefix = (start: string, rest: string | undefined): string | undefined => (rest === undefined ? undefined : start + rest);

/** The stored object that a request is about. */
export interface NamedObject {
  /** None for a request that creates an object. */
  readonly id: string | undefined;
  /** The request is about something inside of the object: a file of a container. */
  readonly isInside: boolean;
}

/** The stored object that a request is about; undefined for requests about no single object. */
export function findObject(protocol: ProtocolId, method: string, path: string): NamedObject | undefined {
  const plain = toPlain(protocol, path);
  const kind = findEndpoint(protocol, method, plain)?.kind;
  if (kind !== 'stored' && kind !== 'create') return undefined;
  const segments = splitSegments(protocol, plain);
  const at = findId(protocol, segments);
  const id = segments[at];
  if (id !== undefined) return { id: decodeURIComponent(id), isInside: at < segments.length - 1 };
  return kind === 'create' ? { id: undefined, isInside: false } : undefined;
}

/** What is known of the endpoint of a client's path. */
export const findPathEndpoint = (protocol: ProtocolId, method: string, path: string): Endpoint | undefined =>
  findEndpoint(protocol, method, toPlain(protocol, path));

/** The path after the version. The name of a model may have slashes, which only the path that is sent has escaped. */
function toPlain(protocol: ProtocolId, path: string): string {
  const plain = path.replace(VERSION, '');
  if (protocol !== 'gemini' || !plain.startsWith(MODELS)) return plain;
  const operations = plain.lastIndexOf('/operations/');
  const end = operations > 0 ? operations : plain.lastIndexOf(':');
  return end < MODELS.length ? plain : `${MODELS}m${plain.slice(end)}`;
}

const MODELS = 'models/';

const VERSION = /^(?:\/upload)?\/v\d+(?:(?:alpha|beta)\d*)?\//;

const splitSegments = (protocol: ProtocolId, path: string): string[] =>
  protocol === 'gemini' ? splitPath(path) : path.split('/');

/** The position of the first id in a path; -1 without one. A model is no stored object. */
function findId(protocol: ProtocolId, segments: readonly string[]): number {
  const root = ENDPOINT_TREES[protocol];
  let branch: Branch | undefined = root;
  for (const [i, segment] of segments.entries()) {
    const literal: Branch | undefined = branch?.literals.get(segment);
    if (!literal && branch?.any && branch !== root.literals.get('models')) return i;
    branch = literal ?? branch?.any;
  }
  return -1;
}

/**
 * The id in a name of Gemini: `files/abc`, `tunedModels/abc/operations/1`, or the address of one of them. Undefined for
 * addresses of other servers. What has another form is returned as it is: no object has such an id.
 */
export function readResourceId(name: string): string | undefined {
  const path = ADDRESS.test(name) ? readAddress(name) : name.replace(VERSION, '');
  if (path === undefined) return undefined;
  const segments = splitPath(path.split(/[?#]/, 1)[0] ?? '');
  if (segments.some((segment) => DOTS.test(segment))) return name;
  const id = segments[findId('gemini', segments)] ?? (segments.length === 1 ? segments[0] : undefined);
  return id === undefined ? name : decode(id);
}

const ADDRESS = /^(?:[a-z][a-z\d+.-]*:\/\/|data:)/i;

const DOTS = /^(?:\.|%2e){0,2}$/i;

/** Google's own host, and versions that only its API has. */
function readAddress(name: string): string | undefined {
  if (!URL.canParse(name)) return undefined;
  const { hostname, pathname } = new URL(name);
  const path = pathname.replace(/^\/download(?=\/)/, '');
  return hostname.includes('generativelanguage') || /^(?:\/upload)?\/v1(?:alpha|beta)/.test(path)
    ? path.replace(VERSION, '')
    : undefined;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** `stored` reads, changes or deletes an object that the provider keeps; `create` makes a new one. */
export type EndpointKind = 'stateless' | 'create' | 'stored';

/** Gemini's `:verb` counts as a segment of its own; a colon elsewhere is part of an id (`ft:gpt-4o:org::id`). */
function splitPath(path: string): string[] {
  const segments = path.split('/');
  const last = segments.at(-1) ?? '';
  const colon = last.lastIndexOf(':');
  return colon > 0 && /^:[a-zA-Z]+$/.test(last.slice(colon))
    ? [...segments.slice(0, -1), last.slice(0, colon), last.slice(colon)]
    : segments;
}

/** Ids and model names, without characters that a server could read as a separator after unescaping. */
const ID = /^[\w.~@+-][\w.~@+:-]{0,511}$/;

/** A remaining colon in a Gemini path could be read as another verb. */
const GEMINI_ID = /^[\w.~@+-]{1,512}$/;

function isId(segment: string, pattern: RegExp): boolean {
  try {
    const id = decodeURIComponent(segment);
    return pattern.test(id) && id !== '.' && id !== '..';
  } catch {
    return false;
  }
}

/** Whether a provider of one protocol has the endpoints of the other: OpenAI's two protocols are parts of one API. */
export const sharesEndpoints = (one: ProtocolId, other: ProtocolId): boolean => KNOWN_ENDPOINTS[one] === KNOWN_ENDPOINTS[other];

/** Paths of converted endpoints, before those that are passed on: of two that are as near, the first is suggested. */
const CONVERTED: readonly string[] = [
  'chat/completions',
  'messages',
  'responses',
  'models',
  'embeddings',
  'rerank',
  'messages/count_tokens',
];

const listPaths = ({ stateless, stored }: Endpoints): string[] =>
  [...stateless, ...stored].map(([path]) => path).filter((path) => !path.includes('{'));

const PATHS: readonly string[] = [
  ...CONVERTED,
  ...listPaths(KNOWN_ENDPOINTS['openai-chat']),
  ...listPaths(KNOWN_ENDPOINTS['anthropic-messages']),
];

const GEMINI_PATHS: readonly string[] = ['models', ...listPaths(KNOWN_ENDPOINTS.gemini)];

const GEMINI_VERBS: readonly string[] = [
  'generateContent',
  'streamGenerateContent',
  'countTokens',
  'embedContent',
  'batchEmbedContents',
  ...[...KNOWN_ENDPOINTS.gemini.stateless, ...KNOWN_ENDPOINTS.gemini.stored].flatMap(
    ([path]) => /^models\/\{model\}:(\w+)$/.exec(path)?.[1] ?? [],
  ),
];

/** Known endpoints as a tree of path segments: a lookup takes one step per segment. */
interface Branch {
  readonly literals: Map<string, Branch>;
  any?: Branch;
  readonly methods: Map<PassedMethod, Endpoint>;
}

const createBranch = (): Branch => ({ literals: new Map(), methods: new Map() });

const ENDPOINT_TREES: Readonly<Record<ProtocolId, Branch>> = {
  'openai-chat': buildTree('openai-chat'),
  'openai-responses': buildTree('openai-responses'),
  'anthropic-messages': buildTree('anthropic-messages'),
  gemini: buildTree('gemini'),
};

function buildTree(protocol: ProtocolId): Branch {
  const root = createBranch();
  const { stateless, stored } = KNOWN_ENDPOINTS[protocol];
  const add = (row: (typeof stored)[number], isStored: boolean): void => {
    const { path, methods, fields } = readRow(row);
    for (const method of methods) {
      const kind = !isStored ? 'stateless' : method === 'POST' && !path.includes('{id}') ? 'create' : 'stored';
      growPath(root, path).methods.set(method, { kind, fields, model: placeModel(protocol, kind, method, fields) });
    }
  };
  for (const row of stateless) add(row, false);
  for (const row of stored) add(row, true);
  return root;
}

/** Reading and deleting runs no model. */
function placeModel(protocol: ProtocolId, kind: EndpointKind, method: PassedMethod, { model }: EndpointFields): ModelPlace {
  if (method === 'GET' || method === 'DELETE') return 'none';
  return model ?? (kind !== 'stateless' ? 'elsewhere' : protocol === 'gemini' ? 'path' : 'body');
}

function growPath(root: Branch, path: string): Branch {
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
