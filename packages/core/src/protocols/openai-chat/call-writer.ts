import { parseJson, sameJson } from '../../accumulate/overlay.ts';
import { type CallTracker, isNameless, isProviderExecuted, type PendingCall } from '../../accumulate/tool-calls.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { Report, RuleId } from '../../doctor/rules.ts';
import type { BlockEmitter } from '../shared/block-writer.ts';

interface LiveCall {
  call: PendingCall;
  /** The block, once the call has opened: as it started, and later as it stopped. */
  started: { index: number; block: ToolUseBlock } | undefined;
  isStopped: boolean;
  /** Argument text that is certain but came before the call could open. */
  waiting: string;
  /** The call could open, but for those that come before it. */
  isReady: boolean;
  /** The name as it was after the delta before. */
  name: string;
  /** Where its first delta is, and the last one so far: what the end decides about the call is shown there. */
  first: number;
  last: number;
}

const READINGS = {
  cumulative: 'chat/tool-args-cumulative',
  'after-empty-object': 'chat/tool-args-leading-empty-object',
  'sent-again': 'chat/tool-args-sent-again',
  unreadable: 'chat/tool-args-invalid',
} as const satisfies Record<string, RuleId>;

/** Turns what the assembler decides into blocks: when a call opens, what of it can go out, when it stops. */
export class CallEmitter {
  readonly #blocks: BlockEmitter;
  readonly #calls: CallTracker;
  readonly #report: Report;
  readonly #live = new Map<PendingCall, LiveCall>();
  /** Calls that have not started, as they were first seen. */
  readonly #waiting = new Set<LiveCall>();
  /** Calls that went on after they had stopped. */
  readonly #resumed = new Set<LiveCall>();
  /** Calls that have started and not stopped, in order. */
  readonly #open = new Set<LiveCall>();
  /** Those of them that nothing can change any more: with thousands of open calls, each new one would look through all. */
  readonly #settled = new Set<LiveCall>();

  constructor(blocks: BlockEmitter, calls: CallTracker, report: Report) {
    this.#blocks = blocks;
    this.#calls = calls;
    this.#report = report;
  }

  /** `name` as the delta had it. */
  accept(call: PendingCall, text: string, name: string | undefined, offset: number): void {
    let live = this.#live.get(call);
    if (!live) {
      live = { call, started: undefined, isStopped: false, waiting: '', isReady: false, name: '', first: offset, last: offset };
      this.#live.set(call, live);
      this.#waiting.add(live);
    }
    live.last = offset;
    if (name !== undefined && name === live.name) this.#report('chat/tool-name-repeated', offset);
    if (live.isStopped) {
      this.#resumed.add(live);
      this.#report('chat/tool-call-resumed', offset);
      return;
    }
    live.waiting += text;
    if (!live.isReady && isSettled(live)) {
      live.isReady = true;
      this.#startReady();
    }
    if (live.name !== '' && call.name !== live.name) this.#report('chat/tool-name-fragmented', offset);
    live.name = call.name;
    this.#flush(live);
    this.#settle(live);
    if (live.started && call.name !== live.started.block.name) this.#report('chat/tool-name-late', offset);
  }

  /** Other content comes: the calls before it open, and those that nothing can change any more stop. */
  giveWay(): void {
    // A call in the middle of its arguments goes on after it.
    if (this.#waiting.size > 0)
      for (const live of this.#inOrder()) {
        if (live.call.name === '' || !live.call.arguments.isEmpty) break;
        this.#start(live);
      }
    this.closeSettled();
  }

  /** Stops the calls that nothing can change any more. Their successors need not wait for the end of the message. */
  closeSettled(): void {
    if (this.#settled.size === 0) return; // asked with every piece of text
    for (const live of [...this.#settled].toSorted(byIndex)) this.#stop(live);
  }

  /** Asked whenever a call has changed. */
  #settle(live: LiveCall): void {
    if (live.started && live.call.arguments.isSettled && live.call.type === 'function') this.#settled.add(live);
    else if (this.#settled.size > 0) this.#settled.delete(live);
  }

  /** Opens what could not open before, and stops everything. `isLegacy`: a `function_call`, which has no id. */
  end(isLegacy: boolean): void {
    const indexes = new Set<number | undefined>();
    if (this.#blocks.isHolding) for (const live of this.#open) this.#stop(live);
    for (const live of this.#inOrder()) this.#start(live);
    for (const live of this.#live.values()) if (live.started) this.#inspect(live, indexes, isLegacy);
    for (const live of this.#open) this.#stop(live);
  }

  /** After `end`: the calls that changed after their blocks had stopped. */
  get late(): { index: number; content_block: ToolUseBlock }[] {
    return [...this.#live.values()].flatMap((live) => {
      const { call, started } = live;
      // A longer name that came after whole arguments may turn out to be that of another call.
      if (!started || (started.block.name === this.#calls.nameOf(call) && !this.#resumed.has(live))) return [];
      const now = { ...this.#block(call), input_raw: call.arguments.decide().text };
      return isSameBlock(started.block, now) ? [] : [{ index: started.index, content_block: now }];
    });
  }

  #inspect({ call, first, last }: LiveCall, indexes: Set<number | undefined>, isLegacy: boolean): void {
    if (call.id === undefined && !isLegacy)
      this.#report(call.wireId === undefined ? 'chat/tool-id-missing' : 'chat/tool-id-duplicate', first);
    if (call.name === '') this.#report('chat/tool-name-missing', first);
    if (indexes.has(call.index)) this.#report('chat/tool-index-reused', first);
    if (call.index !== undefined) indexes.add(call.index);
    if (call.type !== 'function' || call.arguments.isEmpty) return;
    const { text, reading } = call.arguments.decide();
    if (reading !== 'plain') this.#report(READINGS[reading], last);
    else if (!call.arguments.isComplete)
      this.#report(parseJson(text) === undefined ? 'chat/tool-args-invalid' : 'chat/tool-args-not-object', last);
  }

  /** Lets go what other content waits for, and then the calls that came after this content. */
  resume(): void {
    this.closeSettled();
    this.#startReady();
  }

  /** Starts the calls that are ready, in the order of the calls: one that is not holds back those behind it. */
  #startReady(): void {
    if (this.#waiting.size === 0 || !this.#letContentOut()) return;
    for (const live of this.#inOrder()) {
      if (!live.isReady) return;
      this.#start(live);
      this.#flush(live);
    }
  }

  /** Content that waits came before every call that has not started: the calls it waits for stop, unless they are in the middle of their arguments. */
  #letContentOut(): boolean {
    if (!this.#blocks.isHolding) return true;
    for (const live of this.#open) if (live.call.arguments.isEmpty || live.call.arguments.isComplete) this.#stop(live);
    return !this.#blocks.isHolding;
  }

  /** The calls that have not started: by index when each has one, otherwise as they were first seen. */
  #inOrder(): LiveCall[] {
    const waiting = [...this.#waiting].filter(({ call }) => call.position >= 0);
    if (waiting.some(({ call }) => call.index === undefined)) return waiting;
    return waiting.toSorted((a, b) => (a.call.index ?? 0) - (b.call.index ?? 0));
  }

  #start(live: LiveCall): void {
    this.#waiting.delete(live);
    live.isReady = true;
    this.closeSettled();
    const block = this.#block(live.call);
    live.started = { index: this.#blocks.openTool(block), block };
    this.#open.add(live);
    this.#settle(live);
  }

  #flush(live: LiveCall): void {
    if (!live.started || live.waiting === '') return;
    this.#blocks.writeTool(live.started.index, live.waiting, live.call.type === 'custom');
    live.waiting = '';
  }

  #stop(live: LiveCall): void {
    if (!live.started) return;
    const { rest, text } = live.call.arguments.end();
    live.waiting += rest;
    this.#flush(live);
    this.#open.delete(live);
    this.#settled.delete(live);
    const final = this.#block(live.call);
    this.#blocks.stopTool(live.started.index, isSameBlock(live.started.block, final) ? undefined : final);
    live.started.block = { ...final, input_raw: text };
    live.isStopped = true;
  }

  #block(call: PendingCall): ToolUseBlock {
    const fields = { ...(call.index !== undefined && { index: call.index }), ...call.extra };
    const isServer = isProviderExecuted(call);
    return {
      type: 'tool_use',
      id: this.#calls.idOf(call),
      name: this.#calls.nameOf(call),
      input: call.type === 'custom' ? '' : {},
      ...(call.type === 'custom' && { kind: 'custom' as const }),
      ...(isServer && { kind: 'server' as const }),
      ...(isNameless(call) && { status: 'incomplete' as const }),
      ...(Object.keys(fields).length > 0 && { extensions: { 'openai-chat': fields } }),
    };
  }
}

const byIndex = (a: LiveCall, b: LiveCall): number => (a.started?.index ?? 0) - (b.started?.index ?? 0);

/**
 * A call can open when its name will not grow any more – the arguments are whole, or a delta came that added nothing to the name – and its
 * id is known or its arguments have begun.
 */
function isSettled({ call, name }: LiveCall): boolean {
  if (call.name === '') return false;
  if (call.arguments.isComplete) return true;
  return call.name === name && (call.id !== undefined || !call.arguments.isEmpty);
}

/** Whether nothing changed that has to be corrected. `input_raw` is that of a stopped block. */
function isSameBlock(a: ToolUseBlock, b: ToolUseBlock): boolean {
  return a.id === b.id && a.name === b.name && a.input_raw === b.input_raw && sameJson(a.extensions, b.extensions);
}
