import { isDeeperThan, isDeepJson } from '../accumulate/overlay.ts';
import type { ToolUseBlock } from '../canonical/blocks.ts';
import type { CanonicalError } from '../canonical/errors.ts';
import type { CanonicalResponse } from '../canonical/response.ts';
import { MAX_JSON_DEPTH } from '../json/limits.ts';
import { JsonNesting } from '../json/scanner.ts';
import { tooDeep } from '../protocols/shared/answer-body.ts';
import { CodecError } from '../protocols/shared/codec.ts';
import type { Inspect } from './event-reader.ts';

const deepCall = (name: string): CanonicalError => tooDeep(`the arguments of the tool call ${name.slice(0, 100)} are`);

/** Throws when arguments of a whole response are nested more deeply than anyone can read or write them again. */
export function expectShallowCalls({ content, choices }: CanonicalResponse): void {
  for (const { content: blocks } of choices ?? [{ content }])
    for (const block of blocks) if (block.type === 'tool_use' && isDeep(block)) throw new CodecError(deepCall(block.name));
}

/** A text that was read left its value in `input`: only one that was not is looked at again. */
const isDeep = ({ input, input_raw: raw, kind }: ToolUseBlock): boolean =>
  kind !== 'custom' && raw !== undefined && typeof input === 'object' && Object.keys(input).length === 0 && isDeepJson(raw);

interface OpenCall {
  name: string;
  nesting: JsonNesting;
}

/** Refuses tool arguments that are nested too deeply, while they arrive. */
export function createDepthInspection(): Inspect {
  const calls = new Map<string | number, OpenCall>();
  return (event) => {
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') {
      const { name, input, kind } = event.content_block;
      if (isDeeperThan(input, MAX_JSON_DEPTH)) return deepCall(name);
      if (kind !== 'custom') calls.set(keyOf(event), { name, nesting: new JsonNesting() });
    } else if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
      const call = calls.get(keyOf(event));
      call?.nesting.push(event.delta.partial_json);
      if (call && call.nesting.deepest > MAX_JSON_DEPTH) return deepCall(call.name);
    } else if (event.type === 'content_block_stop') calls.delete(keyOf(event));
    return undefined;
  };
}

/** Nearly every stream has one choice: no text is made for it. */
const keyOf = ({ choice = 0, index }: { choice?: number; index: number }): string | number =>
  choice === 0 ? index : `${choice}.${index}`;
