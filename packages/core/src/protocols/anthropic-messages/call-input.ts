import { isObject, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import { argumentsOf } from '../shared/answer.ts';
import { type CodecContext, repair } from '../shared/codec.ts';

/**
 * The input of a whole call, which has to be an object. What is none is put into one, as the text of a custom tool is: a call that was cut
 * fails the checks of the tool and is never run with half its arguments (P43, P44).
 */
export function encodeInput(block: ToolUseBlock, path: string, context: CodecContext): JsonObject {
  if (block.kind === 'custom') return { input: argumentsOf(block, true) };
  const { input, input_raw: raw = '' } = block;
  if (raw.trim() === '') return isObject(input) ? input : { input };
  const value = parseJson(raw);
  if (isObject(value)) return value;
  if (value === null) return {}; // none, as Groq says it
  tellWrapped(block, path, context);
  return { input: value ?? raw };
}

export function tellWrapped({ id, name }: ToolUseBlock, path: string, context: CodecContext): void {
  const message = `the arguments of the call ${id} of ${name} are no object; they are sent as {"input": …}`;
  repair(context, { path, feature: 'tool_use.input', message });
}
