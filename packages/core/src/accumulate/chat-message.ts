import { isObject, type JsonObject, parseJson } from './overlay.ts';
import type { ToolCall } from './tool-call-assembler.ts';

export interface ChatMessage extends JsonObject {
  role: string;
  content: string | null;
  refusal: string | null;
}

/** A call ready to run. `arguments` is the decoded value, or the raw text when it is not JSON (`invalid`) or a custom tool's input. */
export interface ExecutableCall {
  id: string;
  type: 'function' | 'custom';
  name: string;
  arguments: unknown;
  invalid?: true;
  providerExecuted?: true;
}

/** Arguments decoded when they are JSON, the raw text otherwise. */
export function toExecutable({ id, type, name, arguments: text, invalid, providerExecuted }: ToolCall): ExecutableCall {
  return {
    id,
    type,
    name,
    arguments: type === 'function' && !invalid ? parseJson(text) : text,
    ...(invalid && { invalid }),
    ...(providerExecuted && { providerExecuted }),
  };
}

/** A call in the shape of the wire, its unknown fields kept. */
export function encodeCall({ id, type, name, arguments: text, extra }: ToolCall): JsonObject {
  const body = extra?.[type];
  const known = type === 'custom' ? { name, input: text } : { name, arguments: text };
  return { ...extra, id, type, [type]: isObject(body) ? { ...body, ...known } : known };
}
