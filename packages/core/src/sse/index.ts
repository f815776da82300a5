export { createSseDecoder, type SseDecoder, type SseDecoderOptions } from './decode.ts';
export { createSseEncoder, encodeSse, encodeSseComment, type SseEncoderOptions, type SseFrame } from './encode.ts';
