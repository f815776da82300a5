import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ToolUseBlock } from '../../canonical/blocks.ts';
import type { ProtocolId } from '../../canonical/protocol.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import type { Context } from './context.ts';
import type { FrameDecoder, StreamDecoderOptions } from './payload-decoder.ts';

/** A language: everything the rest of the library needs to know about it. */
export interface Protocol {
  readonly id: ProtocolId;
  /** Frames to canonical events. A whole JSON body in a bare frame is read as well. */
  streamDecoder(context: Context, options?: StreamDecoderOptions): FrameDecoder;
  /** Whether a payload can be of this protocol, so that a stream without a label can be read. */
  recognises(payload: JsonObject, event: string | undefined): boolean;
  /** What must survive of a message beside text, reasoning and calls, in the words of the wire. Only what is there. */
  extras(message: CanonicalResponse): JsonObject;
  /** The fields of a call beside id, name and arguments, in the words of the wire. */
  callFields(call: ToolUseBlock): JsonObject;
  /** The wire's own number of a call: chat lists calls by it when every call has its own. */
  callIndex?(call: ToolUseBlock): number | undefined;
  /** Folds the payloads into the protocol's own whole object, where there is such a thing. */
  accumulator?(): WireAccumulator;
}

export interface WireAccumulator {
  push(payload: unknown): void;
  finish(): JsonObject;
}
