/** `@sluice/core/io`: reading and converting web streams with protocols given as objects. */

export type { Assembled, AssembledCall, AssembledError, FinishWord } from '../engine/message.ts';
export { accumulate, type ByteSource, type ReadEventsOptions, type ReadOptions, readEvents } from './accumulate.ts';
export { type ConvertStreamOptions, convertStream, type StreamReport } from './convert-stream.ts';
