import { isObject, type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import { argumentsOf } from '../shared/answer.ts';
import { type CodecContext, repair } from '../shared/codec.ts';
import { tellInexactNumbers } from '../shared/exact-numbers.ts';

/** Where the pages of Anthropic put input that is no JSON. No tool has such a field, so that none is run with half its arguments. */
export const INVALID = 'INVALID_JSON';

/** The input of a whole call, which has to be an object: what is none is put into one (P43, P44). `broken`: as what, when it is not whole. */
export function encodeInput(block: ToolUseBlock, path: string, context: CodecContext, broken = 'input'): JsonObject {
  const { kind, status, input, input_raw: raw = '' } = block;
  if (kind === 'custom' && (status !== 'incomplete' || broken === 'input')) return { input: argumentsOf(block, true) };
  const isBroken = status === 'incomplete' && broken !== 'input';
  if (kind !== 'custom' && raw.trim() === '' && !isBroken) return isObject(input) ? input : { input };
  const value = kind === 'custom' || isBroken ? undefined : parseJson(raw);
  if (isObject(value)) {
    tellInexactNumbers(raw, path, context);
    return value;
  }
  if (value === null) return {}; // none, as Groq says it
  const key = value === undefined ? broken : 'input';
  tellWrapped(block, key, path, context);
  return { [key]: value ?? argumentsOf(block, true) };
}

/** `key`: of the object that they are put into. */
export function tellWrapped({ id, name }: ToolUseBlock, key: string, path: string, context: CodecContext): void {
  const message = `the arguments of the call ${id} of ${name} are no object; they are sent as {"${key}": …}`;
  repair(context, { path, feature: 'tool_use.input', message });
}
