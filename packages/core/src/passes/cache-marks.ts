import type { ContentBlock } from '../canonical/blocks.ts';
import type { CacheControl } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import type { Telling } from './rules.ts';

interface Marked {
  type: string;
  cache_control?: CacheControl;
}

/** A target counts its cache breakpoints; the last ones cover most. Marks on tools and calls are not counted: who takes them counts them. */
export function limitCacheMarks(request: CanonicalRequest, most: number, rules: Pick<Telling, 'note'>): CanonicalRequest {
  const marked = [...marksOf(request)];
  const excess = new Set(marked.slice(0, Math.max(0, marked.length - most)));
  if (excess.size === 0) return request;
  const message = `only the last ${most} of ${marked.length} cache breakpoints are sent`;
  rules.note({ code: 'CLAMPED', path: '/messages', feature: 'cache_control', message });
  const unmark = <T extends Marked>(block: T): T => {
    if (!excess.has(block)) return block;
    const { cache_control: _, ...rest } = block;
    return rest as T; // the mark is optional
  };
  return {
    ...request,
    ...(request.system && { system: request.system.map(unmark) }),
    messages: request.messages.map(
      (said): CanonicalMessage => ({ ...said, content: said.content.map((block) => unmarkDeep(block, unmark)) }),
    ),
  };
}

function unmarkDeep(block: ContentBlock, unmark: <T extends Marked>(block: T) => T): ContentBlock {
  if (block.type !== 'tool_result' || typeof block.content === 'string') return unmark(block);
  return { ...block, content: block.content.map(unmark) };
}

function* marksOf({ system = [], messages }: CanonicalRequest): Iterable<Marked> {
  const blocks = messages.flatMap(({ content }) => content);
  for (const block of [...system, ...blocks]) {
    if (block.type === 'tool_result') yield* typeof block.content === 'string' ? [] : block.content.filter(isMarked);
    else if (block.type !== 'tool_use' && isMarked(block)) yield block;
  }
}

const isMarked = (block: Marked): boolean => block.cache_control !== undefined;
