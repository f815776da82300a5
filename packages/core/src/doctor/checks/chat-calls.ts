import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Report } from '../rules.ts';
import { isBlank } from './check.ts';

interface Call {
  offset: number;
  id: unknown;
  name: unknown;
  hasType: boolean;
}

/** The tool calls of one choice: what their deltas say of index, id and type. */
export class CallCheck {
  readonly #report: Report;
  readonly #calls = new Map<number, Call>();

  constructor(report: Report) {
    this.#report = report;
  }

  push(entries: readonly unknown[], offset: number): void {
    const seen = new Set<number>();
    for (const entry of entries) {
      const index = isObject(entry) ? indexOf(entry['index']) : undefined;
      if (!isObject(entry) || index === undefined) continue;
      if (seen.has(index)) this.#report('chat/tool-index-twice', offset);
      seen.add(index);
      const call = this.#calls.get(index);
      if (call) this.#continue(call, entry, offset);
      else this.#open(index, entry, offset);
    }
  }

  end(): void {
    for (const { hasType, offset } of this.#calls.values()) if (!hasType) this.#report('chat/tool-type-missing', offset);
  }

  #open(index: number, entry: JsonObject, offset: number): void {
    const { id, type } = entry;
    const name = nameOf(entry);
    const isContinuation = isBlank(id) && isBlank(name);
    if (isContinuation && this.#calls.size > 0) {
      this.#report('chat/tool-index-drifts', offset, `index ${index} was never opened`);
      return;
    }
    if (index !== this.#calls.size)
      this.#report('chat/tool-index-gap', offset, `index ${index} where ${this.#calls.size} is next`);
    // What goes on with a call that was opened without an index says nothing of its type.
    this.#calls.set(index, { offset, id, name, hasType: isContinuation || !isBlank(type) });
  }

  #continue(call: Call, entry: JsonObject, offset: number): void {
    const { id, type } = entry;
    const name = nameOf(entry);
    // Another id or name under the same index is another call: the decoder has named it.
    const isOther = isAnother(id, call.id) || isAnother(name, call.name);
    if (!isBlank(id) && isBlank(call.id)) this.#report('chat/tool-id-late', offset);
    else if (!isOther && (!isBlank(id) || (!isBlank(type) && call.hasType))) this.#report('chat/tool-header-repeated', offset);
    if (isBlank(call.id) || isOther) call.id = id;
    if (isBlank(call.name) || isOther) call.name = name;
    call.hasType ||= !isBlank(type);
  }
}

const isAnother = (said: unknown, known: unknown): boolean => !isBlank(said) && !isBlank(known) && said !== known;

/** An index as servers write it; whatever else it may be, the decoder has named it. */
function indexOf(value: unknown): number | undefined {
  const index = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof index === 'number' && Number.isSafeInteger(index) && index >= 0 ? index : undefined;
}

function nameOf(entry: JsonObject): unknown {
  const inner = entry['function'] ?? entry['custom'];
  return isObject(inner) ? inner['name'] : undefined;
}
