import type { ContentBlock } from '../canonical/blocks.ts';
import type { CacheControl } from '../canonical/protocol.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { changeAll, changeBlocks } from './blocks.ts';
import type { Rules } from './rules.ts';

interface Marked {
  type?: string;
  cache_control?: CacheControl;
}

type MarkRules = Pick<Rules, 'note' | 'maxCacheMarks' | 'marksEverywhere'>;

/** A target counts its cache breakpoints; the last ones cover most. Where marks live for different times, the long ones must come first (P73). */
export function limitCacheMarks(request: CanonicalRequest, rules: MarkRules): CanonicalRequest {
  const marks = marksOf(request, rules);
  const all = [...marks.tools, ...marks.system, ...marks.messages];
  // A mark of the whole request takes a place.
  const most = rules.maxCacheMarks - (rules.marksEverywhere && request.prompt_cache?.cache_control ? 1 : 0);
  const kept = new Set(all.length <= most ? all : choose(marks, most, rules));
  const long = rules.marksEverywhere ? shortBeforeLong(all.filter((mark) => kept.has(mark))) : new Set<Marked>();
  if (kept.size === all.length && long.size === 0) return request;
  tell(all.length, kept.size, long.size, rules);
  const marked = new Set(all);
  return remark(request, (node) => {
    if (!marked.has(node)) return node;
    if (long.has(node)) return { ...node, cache_control: { type: 'ephemeral', ttl: '1h' } };
    if (kept.has(node)) return node;
    const { cache_control: _, ...rest } = node;
    return rest as typeof node; // the mark is optional
  });
}

interface Marks {
  tools: Marked[];
  system: Marked[];
  messages: Marked[];
}

function marksOf({ tools = [], system = [], messages }: CanonicalRequest, { marksEverywhere }: MarkRules): Marks {
  const blocks = messages.flatMap(({ content }) => content);
  return {
    tools: marksEverywhere ? tools.filter(isMarked) : [],
    system: system.filter(isMarked),
    messages: blocks.flatMap((block) => marksIn(block, marksEverywhere)),
  };
}

function marksIn(block: ContentBlock, isEverywhere = false): Marked[] {
  if (block.type === 'tool_use') return isEverywhere && isMarked(block) ? [block] : [];
  if (block.type !== 'tool_result') return isMarked(block) ? [block] : [];
  const parts = typeof block.content === 'string' ? [] : block.content.filter(isMarked);
  return isEverywhere && isMarked(block) ? [...parts, block] : parts;
}

const isMarked = (node: Marked): boolean => node.cache_control !== undefined;

/** Where tools can be marked their last mark and that of the instructions stay: they change least. */
function choose({ tools, system, messages }: Marks, most: number, { marksEverywhere }: MarkRules): Marked[] {
  const fixed = marksEverywhere ? [...tools.slice(-1), ...system.slice(-1)].slice(0, most) : [];
  const others = [...tools, ...system, ...messages].filter((mark) => !fixed.includes(mark));
  return [...fixed, ...others.slice(Math.max(0, others.length - (most - fixed.length)))];
}

/** The marks that live shorter than a later one. */
function shortBeforeLong(marks: readonly Marked[]): Set<Marked> {
  const isLong = ({ cache_control: cache }: Marked): boolean => cache?.ttl !== undefined && cache.ttl !== '5m';
  const last = marks.findLastIndex(isLong);
  return new Set(marks.slice(0, Math.max(0, last)).filter((mark) => !isLong(mark)));
}

function tell(all: number, kept: number, long: number, rules: MarkRules): void {
  const about = { path: '/messages', feature: 'cache_control' };
  if (kept < all) rules.note({ code: 'CLAMPED', ...about, message: `only ${kept} of ${all} cache breakpoints are sent` });
  if (long > 0) rules.note({ code: 'REPAIRED', ...about, message: 'breakpoints before one of an hour live an hour too' });
}

function remark(request: CanonicalRequest, change: <T extends Marked>(node: T) => T): CanonicalRequest {
  const spoken = changeBlocks(request, (block) => {
    if (block.type !== 'tool_result' || typeof block.content === 'string') return change(block);
    const content = changeAll(block.content, change);
    const marked = change(block);
    return content === block.content ? marked : { ...marked, content };
  });
  return {
    ...spoken,
    ...(request.system && { system: changeAll(request.system, change) }),
    ...(request.tools && { tools: changeAll(request.tools, change) }),
  };
}
