import type { ContentBlock } from '../canonical/message.ts';
import type { CacheControl, Node, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { changeAll, changeBlocks } from './content.ts';
import type { Rules } from './rules.ts';

interface Marked extends Node {
  cache_control?: CacheControl;
}

/** New marks of nodes; undefined removes the mark. */
type Changes = Map<Marked, CacheControl | undefined>;

/** Fits cache breakpoints to the places, number and lifetimes that the target accepts (P73, P74), with notes. */
export function fitCacheMarks(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const changes: Changes = new Map();
  const placed = [...listMarks(request, rules)].filter((mark) => isPlaced(mark, changes, rules));
  const sent = limit(placed, request, changes, rules);
  for (const mark of sent) fitLifetime(mark, request, changes, rules);
  if (rules.target.cacheMarks.places === 'everywhere') lengthen(sent, changes, rules);
  const fitted = fitRequestMark(request, rules);
  return changes.size === 0 ? fitted : applyChanges(fitted, changes);
}

/** A mark and where it is. */
interface Mark {
  node: Marked;
  path: string;
  on: 'tools' | 'system' | 'messages';
  /** Whether the node is a part of a message. */
  isOnPart: boolean;
  /** Whether the model wrote the node. */
  isWritten: boolean;
}

function* listMarks({ tools = [], system = [], messages }: CanonicalRequest, { target: { protocol } }: Rules): Iterable<Mark> {
  for (const [i, node] of tools.entries())
    if (isMarked(node, protocol)) yield { node, path: `/tools/${i}`, on: 'tools', isOnPart: false, isWritten: false };
  for (const [i, node] of system.entries())
    if (isMarked(node, protocol)) yield { node, path: `/system/${i}`, on: 'system', isOnPart: true, isWritten: false };
  for (const [i, message] of messages.entries()) {
    if (isOwn(message, protocol)) continue;
    for (const [k, block] of message.content.entries())
      yield* listBlockMarks(block, `/messages/${i}/content/${k}`, message, protocol);
  }
}

function* listBlockMarks(block: ContentBlock, path: string, { role }: CanonicalMessage, protocol: ProtocolId): Iterable<Mark> {
  const isCall = block.type === 'tool_use' || block.type === 'tool_result';
  if (block.type === 'tool_result' && typeof block.content !== 'string')
    for (const [i, node] of block.content.entries())
      if (isMarked(node, protocol))
        yield { node, path: `${path}/content/${i}`, on: 'messages', isOnPart: true, isWritten: false };
  if (isMarked(block, protocol)) yield { node: block, path, on: 'messages', isOnPart: !isCall, isWritten: role === 'assistant' };
}

const isMarked = (node: Marked, protocol: ProtocolId): boolean => node.cache_control !== undefined && !isOwn(node, protocol);

/** A mark in the target protocol's own form is sent unchanged. */
const isOwn = ({ extensions }: Node, protocol: ProtocolId): boolean => extensions?.[protocol]?.['cache_control'] !== undefined;

function isPlaced(mark: Mark, changes: Changes, rules: Rules): boolean {
  const { places } = rules.target.cacheMarks;
  if (places === 'everywhere') return true;
  if (places === 'parts' && mark.isOnPart) return true;
  if (places === 'inputs' && mark.isOnPart && !mark.isWritten) return true;
  changes.set(mark.node, undefined);
  noteUnplaced(`${mark.path}/cache_control`, rules);
  return false;
}

/**
 * The last marks cover the most. If tools can be marked, the last marks of tools and instructions stay, because these
 * change least.
 */
function limit(marks: readonly Mark[], { prompt_cache: cache }: CanonicalRequest, changes: Changes, rules: Rules): Mark[] {
  const { places, max: all } = rules.target.cacheMarks;
  const isEverywhere = places === 'everywhere';
  // A mark of the whole request counts as one.
  const most = all - (isEverywhere && cache?.cache_control ? 1 : 0);
  if (marks.length <= most) return [...marks];
  const last = (on: Mark['on']): Mark[] => marks.filter((mark) => mark.on === on).slice(-1);
  const fixed = isEverywhere ? [...last('tools'), ...last('system')].slice(0, most) : [];
  const others = marks.filter((mark) => !fixed.includes(mark));
  const sent = new Set([...fixed, ...others.slice(Math.max(0, others.length - (most - fixed.length)))]);
  const message = `the target accepts ${most} cache breakpoints; dropped ${marks.length - most} of ${marks.length}`;
  for (const { node, path } of marks.filter((mark) => !sent.has(mark))) {
    changes.set(node, undefined);
    rules.note({ code: 'CLAMPED', path: `${path}/cache_control`, feature: 'cache_control', message });
  }
  return marks.filter((mark) => sent.has(mark));
}

/** Chooses the nearest accepted lifetime. If the target has no lifetime for the whole request, each mark gets it. */
function fitLifetime({ node, path }: Mark, { prompt_cache: cache }: CanonicalRequest, changes: Changes, rules: Rules): void {
  const { places, ttls } = rules.target.cacheMarks;
  const own = node.cache_control?.ttl;
  const ttl = own ?? (places === 'everywhere' ? cache?.ttl : undefined);
  if (!isTtl(ttl) || (own && ttls.includes(own))) return;
  const nearest = findNearestTtl(ttl, rules);
  changes.set(node, { type: 'ephemeral', ttl: nearest });
  if (nearest === ttl) return;
  noteTtl(own ? `${path}/cache_control/ttl` : '/prompt_cache/ttl', ttl, nearest, rules);
}

const MINUTES = { '5m': 5, '30m': 30, '1h': 60, '12h': 720, '24h': 1440 } satisfies Record<
  NonNullable<CacheControl['ttl']>,
  number
>;

type Ttl = keyof typeof MINUTES;

const isTtl = (ttl: string | undefined): ttl is Ttl => ttl !== undefined && Object.hasOwn(MINUTES, ttl);

/**
 * Anthropic requires longer lifetimes first, so marks before a longer one get its lifetime. The default is the
 * shortest.
 */
function lengthen(marks: readonly Mark[], changes: Changes, rules: Rules): void {
  const readTtl = ({ node }: Mark): Ttl => (changes.get(node) ?? node.cache_control)?.ttl ?? '5m';
  let longest: Ttl = '5m';
  for (const mark of marks.toReversed()) {
    const ttl = readTtl(mark);
    if (MINUTES[ttl] >= MINUTES[longest]) {
      longest = ttl;
      continue;
    }
    changes.set(mark.node, { type: 'ephemeral', ttl: longest });
    const message = `a cache breakpoint before one with ttl ${longest} must not be shorter; ttl raised to ${longest}`;
    rules.note({ code: 'REPAIRED', path: `${mark.path}/cache_control`, feature: 'cache_control', message });
  }
}

/** A mark of the whole request lets the server choose the place; OpenAI's servers do that anyway. */
function fitRequestMark(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const { cache_control: mark, ...cache } = request.prompt_cache ?? {};
  if (!mark) return request;
  const path = '/prompt_cache/cache_control';
  if (rules.target.cacheMarks.places === 'everywhere') {
    const ttl = mark.ttl && findNearestTtl(mark.ttl, rules);
    if (!ttl || ttl === mark.ttl) return request;
    noteTtl(`${path}/ttl`, mark.ttl, ttl, rules);
    return { ...request, prompt_cache: { ...cache, cache_control: { ...mark, ttl } } };
  }
  noteUnplaced(path, rules);
  const { prompt_cache: _, ...rest } = request;
  return Object.keys(cache).length > 0 ? { ...rest, prompt_cache: cache } : rest;
}

function findNearestTtl(
  ttl: Ttl,
  {
    target: {
      cacheMarks: { ttls },
    },
  }: Rules,
): Ttl {
  const distance = (other: Ttl): number => Math.abs(Math.log(MINUTES[other] / MINUTES[ttl]));
  return ttls.toSorted((a, b) => distance(a) - distance(b))[0] ?? ttl;
}

function noteTtl(path: string, wanted: string | undefined, ttl: string, rules: Rules): void {
  const message = `cache ttl ${wanted} is not supported by the target; sent as ${ttl}`;
  rules.note({ code: 'APPROXIMATED', path, feature: 'cache_control.ttl', message });
}

function noteUnplaced(path: string, rules: Rules): void {
  const place = { path, feature: 'cache_control' };
  if (rules.target.cacheMarks.places === 'none')
    rules.drop({ ...place, message: 'cache breakpoints are not supported by the target; dropped' });
  else
    rules.note({
      code: 'APPROXIMATED',
      ...place,
      message: 'a cache breakpoint is not supported here; dropped, the server caches automatically',
    });
}

function applyChanges(request: CanonicalRequest, changes: Changes): CanonicalRequest {
  const change = <T extends Marked>(node: T): T => {
    if (!changes.has(node)) return node;
    const { cache_control: _, ...rest } = node;
    const mark = changes.get(node);
    return (mark ? { ...rest, cache_control: mark } : rest) as T; // the mark is optional
  };
  const changed = changeBlocks(request, (block) => {
    if (block.type !== 'tool_result' || typeof block.content === 'string') return change(block);
    const content = changeAll(block.content, change);
    const marked = change(block);
    return content === block.content ? marked : { ...marked, content };
  });
  return {
    ...changed,
    ...(request.system && { system: changeAll(request.system, change) }),
    ...(request.tools && { tools: changeAll(request.tools, change) }),
  };
}
