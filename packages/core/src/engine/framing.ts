import type { Codec, Framing } from '../protocols/shared/codec.ts';
import { encodeSse } from '../sse/encode.ts';
import type { SseFrame } from '../sse/frame.ts';

/** Frames to the text of a body. */
export interface Framer {
  frame(frame: SseFrame): string;
  /** What closes the body. */
  end(): string;
}

/** What `framing` makes of the frames of a protocol. */
export function createFramer({ lineEnd = '\n' }: Pick<Codec, 'lineEnd'>, framing: Framing): Framer {
  if (framing === 'json-array') return createArrayFramer();
  const options = { lineEnd };
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
