import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { type CodecContext, CodecError, isStrict, repair } from '../shared/codec.ts';
import { expectList, expectName, expectObject, expectShallowJson, expectText, optional, pointerOf } from '../shared/expect.ts';
import { objectOf } from '../shared/read.ts';
import type { CallBook } from './call-book.ts';
import { decodeCacheControl, encodeMark, fieldsOf, keep, unknownWithin } from './fields.ts';

export function decodeCalls(value: unknown, at: string, context: CodecContext): ToolUseBlock[] {
  return (optional(value, at, expectList) ?? []).map((item, i) =>
    decodeCall(expectObject(item, `${at}[${i}]`), `${at}[${i}]`, context),
  );
}

const CALL_FIELDS = new Set(['id', 'type', 'function', 'custom']);
const FUNCTION_FIELDS = new Set(['name', 'arguments']);
const CUSTOM_FIELDS = new Set(['name', 'input']);

function decodeCall(call: JsonObject, at: string, context: CodecContext): ToolUseBlock {
  const isCustom = call['type'] === 'custom' || (call['function'] === undefined && isObject(call['custom']));
  const inner = isCustom ? 'custom' : 'function';
  const body = expectObject(call[inner], `${at}.${inner}`);
  const name = expectName(body['name'], `${at}.${inner}.name`);
  const signature = decodeSignature(call);
  return {
    type: 'tool_use',
    id: callId(call['id'], name, at, context),
    name,
    ...(isCustom
      ? { input: expectText(body['input'], `${at}.custom.input`), kind: 'custom' }
      : decodeArguments(body['arguments'], `${at}.function.arguments`, context)),
    ...decodeCacheControl(call),
    ...(signature && { signature }),
    ...keep(unknownWithin(call, CALL_FIELDS, inner, isCustom ? CUSTOM_FIELDS : FUNCTION_FIELDS)),
  };
}

/** The same for the same place in the conversation: prompt caches stay warm. */
function callId(id: unknown, name: string, at: string, context: CodecContext): string {
  const given = optional(id, `${at}.id`, expectText);
  if (given) return given;
  const derived = deriveId('call_', at, name);
  repair(context, {
    path: pointerOf(`${at}.id`),
    feature: 'messages.tool_use.id',
    message: `a call without an id is called ${derived}`,
  });
  return derived;
}

/** The text stays what it was. A text that is no object leaves the input empty: encoders that need one look at `input_raw`. */
function decodeArguments(value: unknown, at: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(value)) return { input: value };
  const text = optional(value, at, expectText) ?? '';
  if (text.trim() === '') return { input: {} };
  const parsed = expectShallowJson(text, at);
  if (isObject(parsed)) return { input: parsed, input_raw: text };
  if (isStrict(context, 'tool_use.arguments'))
    throw new CodecError({
      code: 'TOOL_CALL_PARSE_ERROR',
      message: `${at}: must be the text of a JSON object`,
      http_status: 400,
      param: at,
    });
  return { input: {}, input_raw: text };
}

/** Google's compatible endpoint signs calls in `extra_content`, which also goes back as it came. */
function decodeSignature(call: JsonObject): SignedBlob | undefined {
  const value = objectOf(objectOf(call['extra_content'])['google'])['thought_signature'];
  return typeof value === 'string' ? { origin: 'gemini', form: 'thought_signature', value } : undefined;
}

/** The deprecated single call of a message. */
export function decodeLegacyCall(value: unknown, at: string, book: CallBook, context: CodecContext): ToolUseBlock[] {
  const call = optional(value, at, expectObject);
  if (!call) return [];
  const name = expectName(call['name'], `${at}.name`);
  return [{ type: 'tool_use', id: book.nextLegacy(), name, ...decodeArguments(call['arguments'], `${at}.arguments`, context) }];
}

/** A custom call is one where custom tools are known; elsewhere it is a call of the function that stands for it. */
export function encodeCall(call: ToolUseBlock, context: CodecContext): JsonObject {
  const { function: functionRest, custom: customRest, ...kept } = fieldsOf(call);
  const fields = { ...kept, ...encodeMark(call, context) };
  if (call.kind === 'custom' && context.profile.custom_tools && typeof call.input === 'string')
    return { ...fields, id: call.id, type: 'custom', custom: { ...objectOf(customRest), name: call.name, input: call.input } };
  const body = { ...objectOf(functionRest), name: call.name, arguments: encodeArguments(call) };
  return { ...fields, id: call.id, type: 'function', function: body };
}

function encodeArguments({ input, input_raw: raw }: ToolUseBlock): string {
  if (typeof input === 'string') return JSON.stringify({ input });
  return raw || JSON.stringify(input);
}
