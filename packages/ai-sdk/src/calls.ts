/** Tool calls of one response. */

import type { LanguageModelV3FinishReason, LanguageModelV3ToolCall } from '@ai-sdk/provider';
/** What the middleware has changed. */
export type PartRepair = 'call-id' | 'call-input' | 'finish-reason' | 'finish-missing' | 'start-missing';

type Report = (repair: PartRepair) => void;

/** Gives every call of a response an id of its own and input that is JSON. */
export class CallRepair {
  /** How many calls the client has to run. */
  count = 0;
  readonly #used = new Set<string>();
  /** The ids of calls whose input is streamed, in order, by the id of the provider. */
  readonly #open = new Map<string, string[]>();
  readonly #report: Report;
  readonly #generateId: () => string;

  constructor(report: Report, generateId: () => string) {
    this.#report = report;
    this.#generateId = generateId;
  }

  /** The id of a call whose input begins. */
  start(id: string): string {
    const own = this.#claim(id);
    const open = this.#open.get(id);
    if (open) open.push(own);
    else this.#open.set(id, [own]);
    return own;
  }

  /** Keeps the id of a call that the provider runs: its result names it by the id. */
  reserve(id: string): void {
    this.#used.add(id);
  }

  /** The id of the call that a piece of input belongs to: the last one that began with this id. */
  find(id: string): string {
    return this.#open.get(id)?.at(-1) ?? id;
  }

  /** The complete call; the same object when nothing is wrong with it. */
  repair(call: LanguageModelV3ToolCall): LanguageModelV3ToolCall {
    if (call.providerExecuted) {
      this.reserve(call.toolCallId);
      return call;
    }
    // Calls are completed in the order in which they began.
    const toolCallId = this.#open.get(call.toolCallId)?.shift() ?? this.#claim(call.toolCallId);
    this.count++;
    const input = repairInput(call.input);
    if (input !== call.input) this.#report('call-input');
    return toolCallId === call.toolCallId && input === call.input ? call : { ...call, toolCallId, input };
  }

  #claim(id: string): string {
    const isFree = typeof id === 'string' && id !== '' && !this.#used.has(id);
    if (!isFree) this.#report('call-id');
    const own = isFree ? id : this.#generateId();
    this.#used.add(own);
    return own;
  }
}

/** Input as the JSON text of an object, where that can be had without a guess. Providers do not always keep to the type. */
function repairInput(input: unknown): string {
  if (typeof input !== 'string') return JSON.stringify(input ?? {});
  // Arguments that were encoded twice: a JSON string that holds the JSON of an object.
  if (!input.trimStart().startsWith('"')) return input;
  const inner = parse(input);
  return typeof inner === 'string' && isRecord(parse(inner)) ? inner : input;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The reason of a response with calls. The AI SDK runs tools for `stop` and `tool-calls` only, so a reason that the provider
 * does not know ends a loop early. Length, filter and errors are kept: such calls may be incomplete.
 */
export function repairReason(reason: LanguageModelV3FinishReason, calls: number, report: Report): LanguageModelV3FinishReason {
  if (calls === 0 || (reason.unified !== 'stop' && reason.unified !== 'other')) return reason;
  report('finish-reason');
  return { ...reason, unified: 'tool-calls' };
}
