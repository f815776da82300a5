/** The parts of one stream. */

import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { type CallRepair, type PartRepair, repairReason } from './calls.ts';

/** A part of a stream of the AI SDK. */
export type Part = LanguageModelV3StreamPart;

type Kind = 'text' | 'reasoning';

/** Repairs the order and the end of the parts of a stream; calls are left to `CallRepair`. */
export class PartStream {
  readonly #calls: CallRepair;
  readonly #report: (repair: PartRepair) => void;
  /** Blocks that have begun and not ended. A stream holds a few at a time. */
  readonly #open: Record<Kind, Set<string>> = { text: new Set(), reasoning: new Set() };
  #isOver = false;

  constructor(calls: CallRepair, report: (repair: PartRepair) => void) {
    this.#calls = calls;
    this.#report = report;
  }

  /** What the AI SDK reads in place of a part. */
  push(part: Part): Part[] {
    switch (part.type) {
      case 'text-start':
        return this.#start('text', part);
      case 'reasoning-start':
        return this.#start('reasoning', part);
      case 'text-delta':
        return [...this.#ensureStart('text', part.id), part];
      case 'reasoning-delta':
        return [...this.#ensureStart('reasoning', part.id), part];
      case 'text-end':
        return this.#end('text', part);
      case 'reasoning-end':
        return this.#end('reasoning', part);
      case 'tool-input-start':
        if (part.providerExecuted) this.#calls.reserve(part.id);
        return [part.providerExecuted ? part : withId(part, this.#calls.start(part.id))];
      case 'tool-input-delta':
      case 'tool-input-end':
        return [withId(part, this.#calls.find(part.id))];
      case 'tool-call':
        return [this.#calls.repair(part)];
      case 'error':
        this.#isOver = true;
        return [part];
      case 'finish':
        return this.#finish(part);
      default:
        return [part];
    }
  }

  /** What is missing when the provider ends the stream: without a finish, a response that was cut looks complete. */
  end(): Part[] {
    if (this.#isOver) return [];
    this.#report('finish-missing');
    return [{ type: 'error', error: new Error('the stream ended before the response was complete') }];
  }

  #start(kind: Kind, part: Part & { id: string }): Part[] {
    this.#open[kind].add(part.id);
    return [part];
  }

  #ensureStart(kind: Kind, id: string): Part[] {
    if (this.#open[kind].has(id)) return [];
    this.#report('start-missing');
    return this.#start(kind, { type: `${kind}-start`, id });
  }

  /** The end of a block that is not open would be an error of the AI SDK. */
  #end(kind: Kind, part: Part & { id: string }): Part[] {
    if (this.#open[kind].delete(part.id)) return [part];
    this.#report('start-missing');
    return [];
  }

  #finish(part: Part & { type: 'finish' }): Part[] {
    this.#isOver = true;
    const finishReason = repairReason(part.finishReason, this.#calls.count, this.#report);
    return [finishReason === part.finishReason ? part : { ...part, finishReason }];
  }
}

const withId = <T extends Part & { id: string }>(part: T, id: string): T => (part.id === id ? part : { ...part, id });
