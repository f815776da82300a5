/** `@sluice/core/tool-calls`: tool-call deltas to complete calls, and nothing else. */

export { type ToolCall, ToolCallAssembler, type ToolCallAssemblerState } from './accumulate/tool-call-assembler.ts';
export { LimitError, type ToolCallLimits, type ToolCallType } from './accumulate/tool-calls.ts';
