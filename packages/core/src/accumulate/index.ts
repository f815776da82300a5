export {
  ChatAccumulator,
  type ChatAccumulatorOptions,
  type ChatAccumulatorState,
  type ChatCompletion,
  type ChatCompletionChoice,
  createAccumulator,
} from './chat.ts';
export type { ChatChoice } from './chat-choice.ts';
export type { ChatMessage, ExecutableCall } from './chat-message.ts';
export { DeltaFold } from './delta-fold.ts';
export { DeltaError, type DeltaOptions, mergeDelta } from './merge-delta.ts';
export { MessageAccumulator, type StreamResult } from './message.ts';
export { splitThink, type ThinkSplit } from './think-tags.ts';
export { type ToolCall, ToolCallAssembler, type ToolCallAssemblerState } from './tool-call-assembler.ts';
export { LimitError, type ToolCallLimits, type ToolCallType } from './tool-calls.ts';
