import type { ProtocolId } from '@sluice/core';
import { KNOWN_ENDPOINTS, type PassedMethod } from './known-endpoints.ts';

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

/**
 * Finds a known endpoint; undefined for one that the vendor does not document. `path` starts after the version, as it
 * is sent.
 */
export function findEndpoint(protocol: ProtocolId, method: string, path: string): EndpointKind | undefined {
  const isGemini = protocol === 'gemini';
  const pattern = isGemini ? GEMINI_ID : ID;
  let branch: Branch | undefined = ENDPOINTS[protocol];
  for (const segment of isGemini ? splitPath(path) : path.split('/'))
    branch = branch?.literals.get(segment) ?? (isId(segment, pattern) ? branch?.any : undefined);
  // HEAD is allowed wherever GET is.
  const asked = method === 'HEAD' ? 'GET' : method;
  return branch?.methods.get(asked as PassedMethod); // any other text is no key
}
