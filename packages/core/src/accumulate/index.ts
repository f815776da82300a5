export {
  ChatAccumulator,
  type ChatAccumulatorOptions,
  type ChatAccumulatorState,
  type ChatChoice,
  type ChatCompletion,
  type ChatCompletionChoice,
  type ChatMessage,
  createAccumulator,
  type ExecutableCall,
} from './chat.ts';
export { splitThink, type ThinkSplit } from './chat-delta.ts';
export { DeltaError, DeltaFold, type DeltaOptions, mergeDelta } from './merge-delta.ts';
export { MessageAccumulator, type StreamResult } from './message.ts';
export { type ToolCall, ToolCallAssembler, type ToolCallAssemblerState } from './tool-call-assembler.ts';
export { LimitError, type ToolCallLimits, type ToolCallType } from './tool-calls.ts';
