/**
 * The public API of `@sluice/core`, with protocols given by name. It loads every protocol; the subpath entries
 * (`@sluice/core/engine`, `/io`, one per protocol) take codecs and load only those. docs/api.md lists all entries.
 */

// ---- reading

export type {
  ChatAccumulator,
  ChatAccumulatorOptions,
  ChatAccumulatorState,
  ChatChoice,
  ChatCompletion,
  ChatCompletionChoice,
  ChatMessage,
  ExecutableCall,
} from './accumulate/chat.ts';
export { splitThink, type ThinkSplit } from './accumulate/chat-delta.ts';
export { DeltaFold, type DeltaOptions, mergeDelta } from './accumulate/merge-delta.ts';
export { MessageAccumulator, type StreamResult } from './accumulate/message.ts';
export { type ToolCall, ToolCallAssembler, type ToolCallAssemblerState } from './accumulate/tool-call-assembler.ts';
export { LimitError, type ToolCallLimits, type ToolCallType } from './accumulate/tool-calls.ts';
export type {
  AccumulatedCall,
  AccumulatedError,
  AccumulatedMessage,
  FinishReason,
  LiveToolCall,
  StreamAccumulator,
  StreamAccumulatorOptions,
} from './engine/message.ts';
export type { EventReaderOptions } from './engine/reader.ts';
export {
  type Accumulator,
  type AccumulatorOptions,
  accumulate,
  convertStream,
  createAccumulator,
  type ReadEventsOptions,
  type ReadOptions,
  readEvents,
} from './io/by-name.ts';
export type { StreamElement, StreamSource } from './io/source.ts';

// ---- converting

export type { Stage } from './canonical/stage.ts';
export { convertError, convertRequest, convertResponse, createExchange, createStreamConverter } from './engine/by-name.ts';
export type { ConvertOptions, ResponseOptions } from './engine/context.ts';
export type { ClientRequest, Exchange, ExchangeOptions, PassRequest, UpstreamRequest } from './engine/exchange.ts';
export type { ConvertedRequest, RequestOptions } from './engine/request.ts';
export type { RequestLimits } from './engine/request-limits.ts';
export type { ConvertedError, ConvertedResponse, ErrorReply } from './engine/response.ts';
export type { ResponseStream, StreamOptions, StreamSplice } from './engine/stream.ts';
export type { ConvertStreamOptions, StreamReport } from './io/convert-stream.ts';
export { createFetchHandler, type FetchHandlerOptions, type ResolvedUpstream } from './io/fetch-handler.ts';

// ---- framing and diagnosis

export type { Breakage } from './doctor/breakage.ts';
export { type Examination, type ExamineOptions, Examiner, type Finding, type Traits } from './doctor/examiner.ts';
export { type Diagnostic, RULES, type Rule, type RuleId, type Severity } from './rules/index.ts';
export { createSseDecoder, type SseDecoder, type SseDecoderOptions } from './sse/decode.ts';
export { encodeSse, type SseEncoderOptions, type SseFrame } from './sse/encode.ts';

// ---- protocols and the canonical model

export type * from './canonical/index.ts';
export { CodecError } from './canonical/notes.ts';
export type { Context } from './codec/context.ts';
export type { ProviderProfile } from './codec/profile.ts';
export type {
  Codec,
  CodecContext,
  Framing,
  HeaderBag,
  OutputLimit,
  Policy,
  Protocol,
  Provider,
  RequestTarget,
  Sealing,
  Target,
  WireAccumulator,
  WireCodec,
  WireReply,
  WireRequest,
} from './codec/protocol.ts';
export type { StreamDecoderOptions } from './codec/stream-decoder.ts';
export { type CodecName, findProtocol, PROTOCOLS, type ProtocolName } from './protocols/index.ts';
