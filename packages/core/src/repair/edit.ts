/** Changes values in the bytes of a frame; everything else stays as it came. */

import { withFieldsAt } from '../json/fields.ts';
import type { JsonObject } from '../json/json.ts';

/** New values for fields of the object at a path of a payload. */
export interface Change {
  readonly path: readonly string[];
  readonly fields: JsonObject;
}

/** The frame with these fields in its payload; undefined when its data is not one line, or a field occurs twice. */
export function editFrame(frame: Uint8Array, { path, fields }: Change): Uint8Array | undefined {
  const text = decoder.decode(frame);
  const [data, another] = text.matchAll(DATA);
  if (!data || another) return undefined;
  const start = data.index + data[0].length;
  const end = endOfLine(text, start);
  const edited = withFieldsAt(text.slice(start, end), path, fields);
  return edited === undefined ? undefined : encoder.encode(text.slice(0, start) + edited + text.slice(end));
}

/** The start of a line of data. */
const DATA = /(?:^\uFEFF?|[\r\n])data: ?/g;

function endOfLine(text: string, from: number): number {
  const end = text.slice(from).search(/[\r\n]/);
  return end < 0 ? text.length : from + end;
}

const decoder = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

const encoder = /* @__PURE__ */ new TextEncoder();
