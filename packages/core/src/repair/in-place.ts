/** Repairs responses of an exchange in place: what conforms stays as it came, apart from what the client requested otherwise. */

import type { StreamResult } from '../accumulate/message.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { CanonicalError, Note } from '../canonical/notes.ts';
import type { Codec, CodecContext } from '../codec/protocol.ts';
import type { FrameEditor } from '../codec/repair.ts';
import { NoteList, type ResponseOptions } from '../engine/context.ts';
import type { KeptResponse, ResponseRepair } from '../engine/exchange.ts';
import { createResponseContext } from '../engine/response.ts';
import type { ResponseStream, StreamOptions } from '../engine/stream.ts';
import { withFieldsAt } from '../json/fields.ts';
import { isFilledText, isObject, type JsonObject } from '../json/json.ts';
import type { Diagnostic } from '../rules/index.ts';
import { type Change, editFrame } from './edit.ts';
import { HARMLESS, RepairStream } from './stream.ts';
import { isConforming } from './whole.ts';

/** The `repair` of `createExchange`. */
export const repairInPlace: ResponseRepair = {
  stream: (options, renamed) => new StreamInPlace(options, renamed),
  response: (body, text, options, renamed) => keepResponse(body, text, new ResponseEditor(options, renamed)),
};

/** A stream with the notes of what was changed in it. */
class StreamInPlace extends RepairStream implements ResponseStream {
  readonly #editor: ResponseEditor;
  readonly #onEncoded: StreamOptions['onEncoded'];
  /** What the converter has written for the frames that wait. */
  #encoded: { event: CanonicalStreamEvent | undefined; text: string }[] = [];
  /** The client gets what the converter writes. */
  #isWriting = false;

  constructor(
    { from, to: _to, framing: _framing, onto: _onto, model: _model, onEncoded, ...options }: StreamOptions,
    renamed: string | undefined,
  ) {
    const editor = new ResponseEditor({ from, to: from, ...options }, renamed);
    // As without a gateway: clients that need no end read all of it, and the others report that it is missing.
    super({ ...options, codec: from, editor, allowMissingEnd: true });
    this.#editor = editor;
    this.#onEncoded = onEncoded;
  }

  protected override follow(event: CanonicalStreamEvent | undefined, text: string): void {
    super.follow(event, text);
    if (this.#isWriting) this.#onEncoded?.(event, text);
    else if (this.#onEncoded) this.#encoded.push({ event, text });
  }

  /** Reports what was written for the frames that waited: nothing when they are passed on. */
  protected override settle(isWriting: boolean): void {
    this.#isWriting = isWriting;
    for (const { event, text } of this.#encoded.splice(0)) this.#onEncoded?.(event, isWriting ? text : '');
  }

  get hasFailed(): boolean {
    return this.converter.hasFailed;
  }

  get hasError(): boolean {
    return this.converter.hasError;
  }

  get hasStopReason(): boolean {
    return this.converter.hasStopReason;
  }

  /** Notes of a conversion are about what it writes. */
  get notes(): Note[] {
    return [...this.#editor.notes.list, ...(this.#isWriting ? this.converter.notes : [])];
  }

  get diagnostics(): Diagnostic[] {
    const found = this.found.list(this.#editor.codec.rules).filter(({ rule }) => !HARMLESS.has(rule));
    return [...this.converter.diagnostics, ...found].toSorted((a, b) => a.offset - b.offset);
  }

  get error(): CanonicalError | undefined {
    return this.converter.error;
  }

  get result(): StreamResult | undefined {
    return this.converter.result;
  }
}

/** A whole response that conforms, with what is changed in it. Undefined for one that has to be written again. */
function keepResponse(body: unknown, text: string, editor: ResponseEditor): KeptResponse | undefined {
  if (!isObject(body) || !isConforming(text, body, editor.codec)) return undefined;
  const change = editor.find(body);
  if (!change) return { body, text, notes: [] };
  const edited = withFieldsAt(text, change.path, change.fields);
  if (edited === undefined) return undefined;
  return { body: setFields(body, change.path, change.fields), text: edited, notes: editor.notes.list };
}

const NO_BYTES: Uint8Array = /* @__PURE__ */ new Uint8Array(0);

function setFields(body: JsonObject, [key, ...rest]: readonly string[], fields: JsonObject): JsonObject {
  if (key === undefined) return { ...body, ...fields };
  const inner = body[key];
  return isObject(inner) ? { ...body, [key]: setFields(inner, rest, fields) } : body;
}

/** Changes what a response says of itself: its model by the client's name, fields of the exchange, and required fields that it lacks. */
class ResponseEditor implements FrameEditor {
  readonly codec: Codec;
  readonly editsText: boolean;
  readonly notes = new NoteList();
  readonly #options: ResponseOptions;
  readonly #renamed: string | undefined;
  readonly #context: CodecContext;

  /** `renamed`: the client's name of the model, if it is not that of the upstream. */
  constructor(options: ResponseOptions, renamed: string | undefined) {
    this.codec = options.from;
    this.#options = options;
    this.#renamed = renamed;
    this.editsText = renamed !== undefined;
    this.#context = createResponseContext(options, this.notes, { seed: () => '' });
  }

  edit(frame: Uint8Array, payload: JsonObject): Uint8Array | undefined {
    const { request } = this.#options;
    if (request && this.codec.isUnrequested?.(payload, request)) return NO_BYTES;
    const change = this.find(payload);
    return change ? editFrame(frame, change) : frame;
  }

  /** The change to a payload; undefined for one that stays as it is. */
  find(payload: JsonObject): Change | undefined {
    const { within = '', list } = this.codec.place;
    const inner = payload[within];
    const isResponse = isObject(inner) || Array.isArray(payload[list]);
    const fields = this.#change(isObject(inner) ? inner : payload, isResponse);
    return fields && { path: isObject(inner) ? [within] : [], fields };
  }

  #change(response: JsonObject, isResponse: boolean): JsonObject | undefined {
    const { model } = this.codec.place;
    const added = isResponse ? this.#complete(response) : undefined;
    const own = isResponse ? this.#options.envelope : undefined;
    const named = response[model];
    const isRenamed = this.#renamed !== undefined && isFilledText(named) && named !== this.#renamed;
    if (!added && !own && !isRenamed) return undefined;
    return { ...added, ...own, ...(isRenamed && { [model]: this.#renamed }) };
  }

  #complete(response: JsonObject): JsonObject | undefined {
    const missing = this.codec.complete?.(response, this.#context);
    const names = missing && Object.keys(missing);
    if (!names || names.length === 0) return undefined;
    this.notes.add({
      code: 'REPAIRED',
      path: '',
      feature: 'response.fields',
      message: `the response has no ${names.slice(0, 3).join(', ')}${names.length > 3 ? ' and more' : ''}; added`,
    });
    return missing;
  }
}
