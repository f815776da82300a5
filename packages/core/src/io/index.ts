/** `@sluice/core/io`: reading and converting streams with protocols given as objects. */

export type {
  AccumulatedCall,
  AccumulatedError,
  AccumulatedMessage,
  FinishReason,
  StreamElement,
} from '../engine/message.ts';
export { accumulate, type ReadEventsOptions, type ReadOptions, readEvents } from './accumulate.ts';
export { type ConvertStreamOptions, convertStream, type StreamReport } from './convert-stream.ts';
export type { StreamSource } from './source.ts';
