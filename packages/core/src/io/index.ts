export type { Assembled, AssembledCall, AssembledError, FinishWord } from '../engine/assembled.ts';
export { accumulate, type ReadEventsOptions, type ReadOptions, readEvents } from './accumulate.ts';
export { type ConvertStreamOptions, convertStream, type StreamReport } from './convert-stream.ts';
export type { ByteSource } from './source.ts';
