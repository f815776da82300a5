export { createSseDecoder, type SseDecoder, type SseDecoderOptions } from './decode.ts';
export { createSseEncoder, encodeSse, type SseEncoderOptions, sseComment } from './encode.ts';
export type { SseFrame } from './frame.ts';
