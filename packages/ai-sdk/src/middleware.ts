/** Middleware for models whose provider takes no `fetch`, or speaks a protocol of its own: it repairs what the model returns. */

import type { LanguageModelV3Content, LanguageModelV3Middleware } from '@ai-sdk/provider';
import { CallRepair, type PartRepair, repairReason } from './calls.ts';
import { type Part, PartStream } from './part-stream.ts';

/** Options of `repairMiddleware`. */
export interface RepairMiddlewareOptions {
  /** Called with every repair. */
  onRepair?: ((repair: PartRepair) => void) | undefined;
  /** Makes the id of a call that has none. A random UUID when absent. */
  generateId?: (() => string) | undefined;
}

/**
 * Creates a middleware for `wrapLanguageModel`. It repairs ids and input of tool calls, reasons that keep the AI SDK from running
 * tools, text without a start, and streams without an end. Everything else is passed on as the same objects.
 *
 * ```ts
 * const model = wrapLanguageModel({ model: provider('m-1'), middleware: repairMiddleware() });
 * ```
 */
export function repairMiddleware(options: RepairMiddlewareOptions = {}): LanguageModelV3Middleware {
  const { onRepair = () => undefined, generateId = () => `call_${globalThis.crypto.randomUUID()}` } = options;
  return {
    specificationVersion: 'v3',
    async wrapGenerate({ doGenerate }) {
      const result = await doGenerate();
      const calls = new CallRepair(onRepair, generateId);
      const content = result.content.map(
        (part): LanguageModelV3Content => (part.type === 'tool-call' ? calls.repair(part) : part),
      );
      return { ...result, content, finishReason: repairReason(result.finishReason, calls.count, onRepair) };
    },
    async wrapStream({ doStream }) {
      const result = await doStream();
      const stage = new PartStream(new CallRepair(onRepair, generateId), onRepair);
      const repaired = new TransformStream<Part, Part>({
        transform: (part, controller) => {
          for (const one of stage.push(part)) controller.enqueue(one);
        },
        flush: (controller) => {
          for (const one of stage.end()) controller.enqueue(one);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(repaired) };
    },
  };
}
