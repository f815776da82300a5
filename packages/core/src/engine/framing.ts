import type { ProtocolId } from '../canonical/protocol.ts';
import type { Framing } from '../protocols/shared/codec.ts';
import { encodeSse, type SseEncoderOptions } from '../sse/encode.ts';
import type { SseFrame } from '../sse/frame.ts';

/** Frames to the text of a body. */
export interface Framer {
  frame(frame: SseFrame): string;
  /** What closes the body. */
  end(): string;
}

/** Google ends its lines with CRLF, and its clients look for it. */
const LINE_ENDS = {
  'openai-chat': '\n',
  'anthropic-messages': '\n',
  'openai-responses': '\n',
  gemini: '\r\n',
} as const satisfies Record<ProtocolId, SseEncoderOptions['lineEnd']>;

export function createFramer(protocol: ProtocolId, framing: Framing): Framer {
  if (framing === 'json-array') return createArrayFramer();
  const options = { lineEnd: LINE_ENDS[protocol] };
  return { frame: (frame) => encodeSse(frame, options), end: () => '' };
}

/** Every event is an element, an error too; its repetition as bare JSON is for readers of event streams. */
function createArrayFramer(): Framer {
  let isOpen = false;
  let isClosed = false;
  return {
    frame: ({ data, bare }) => {
      if (bare) return '';
      const before = isOpen ? ',\r\n' : '[';
      isOpen = true;
      return before + data;
    },
    end: () => {
      if (isClosed) return '';
      isClosed = true;
      return isOpen ? ']' : '[]';
    },
  };
}
