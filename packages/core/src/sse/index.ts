export { createSseDecoder, type SseDecoder, type SseDecoderOptions } from './decode.ts';
export { createSseEncoder, encodeSse, type SseEncoderOptions, type SseFrame, sseComment } from './encode.ts';
