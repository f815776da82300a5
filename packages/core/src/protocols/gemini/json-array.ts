import type { SseFrame } from '../../sse/frame.ts';
import type { Stage } from '../../stage.ts';

/**
 * Frames of a stream as the elements of one JSON list, which is what a client gets that did not ask for `alt=sse`. The frames are bare, a line
 * each: `[{…}`, `,{…}`, `]`. An error is an element like any other.
 */
export function createJsonArray(): Stage<SseFrame, SseFrame> {
  let head = '[';
  let isOpen = true;
  return {
    push: ({ data }) => {
      const frame: SseFrame = { data: head + data, bare: true };
      head = ',';
      return [frame];
    },
    end: () => {
      const frames: SseFrame[] = isOpen ? [{ data: head === '[' ? '[]' : ']', bare: true }] : [];
      isOpen = false;
      return frames;
    },
  };
}
