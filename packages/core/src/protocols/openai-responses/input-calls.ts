import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type { ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import { type CodecContext, CodecError, invalid, isStrict, repair } from '../shared/codec.ts';
import { expectName, expectShallowJson, expectText, optional, pointerOf } from '../shared/expect.ts';
import { textOf, unknownFields } from '../shared/read.ts';
import { decodeContent, type Scope } from './content-decode.ts';
import { isDerivedId } from './ids.ts';
import { keep } from './kept.ts';

const CALL_FIELDS = new Set(['type', 'id', 'call_id', 'name', 'namespace', 'arguments', 'input', 'status']);
const STATUSES: readonly unknown[] = ['in_progress', 'completed', 'incomplete'] satisfies ToolUseBlock['status'][];
const isStatus = (status: unknown): status is NonNullable<ToolUseBlock['status']> => STATUSES.includes(status);

/** `function_call` and `custom_tool_call`. */
export function decodeCall(item: JsonObject, param: string, context: CodecContext): ToolUseBlock {
  const isCustom = item['type'] === 'custom_tool_call';
  const name = expectName(item['name'], `${param}.name`);
  const namespace = optional(item['namespace'], `${param}.namespace`, expectText);
  const { id, status } = item;
  return {
    type: 'tool_use',
    id: callId(item, name, param, context),
    name,
    ...(isCustom
      ? { input: expectText(item['input'], `${param}.input`), kind: 'custom' }
      : decodeArguments(item['arguments'], `${param}.arguments`, context)),
    ...(namespace && { namespace }),
    ...(typeof id === 'string' && id !== '' && !isDerivedId(id) && { item_id: id }),
    ...(isStatus(status) && { status }),
    ...keep(unknownFields(item, CALL_FIELDS)),
  };
}

/** The same for the same place in the conversation: prompt caches stay warm. */
function callId(item: JsonObject, name: string, param: string, context: CodecContext): string {
  const given = optional(item['call_id'], `${param}.call_id`, expectText);
  if (given) return given;
  const derived = textOf(item['id']) || deriveId('call_', param, name);
  const message = `a call without a call_id is called ${derived}`;
  repair(context, { path: pointerOf(`${param}.call_id`), feature: 'messages.tool_use.id', message });
  return derived;
}

/** The text stays what it was. A text that is no object leaves the input empty: encoders that need one look at `input_raw`. */
function decodeArguments(value: unknown, param: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(value)) return { input: value };
  const text = optional(value, param, expectText) ?? '';
  if (text.trim() === '') return { input: {} };
  const parsed = expectShallowJson(text, param);
  if (isObject(parsed)) return { input: parsed, input_raw: text };
  if (isStrict(context, 'tool_use.arguments'))
    throw new CodecError({
      code: 'TOOL_CALL_PARSE_ERROR',
      message: `${param}: must be the text of a JSON object`,
      http_status: 400,
      param,
    });
  return { input: {}, input_raw: text };
}

const OUTPUT_FIELDS = new Set(['type', 'call_id', 'output']);

/** The output of a call. The wire has no word for an error, but one for an output that was cut short. */
export function decodeOutput(item: JsonObject, id: string, param: string, scope: Scope): ToolResultBlock {
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: decodeResult(item['output'], `${param}.output`, scope),
    ...(item['status'] === 'incomplete' && { is_error: true }),
    ...(item['type'] === 'custom_tool_call_output' && { kind: 'custom' }),
    ...keep(unknownFields(item, OUTPUT_FIELDS)),
  };
}

/** A text or parts; clients that send anything else mean its JSON. */
function decodeResult(output: unknown, param: string, scope: Scope): ToolResultBlock['content'] {
  if (typeof output === 'string') return output;
  if (Array.isArray(output)) {
    const blocks = decodeContent(output, param, scope);
    return blocks.length === 0 ? '' : blocks;
  }
  if (output === undefined || output === null) return '';
  const text = writeJson(output);
  if (text === undefined) throw invalid(param, 'is nested too deeply');
  return text;
}
