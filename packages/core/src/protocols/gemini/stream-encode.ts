import type { CanonicalStreamEvent, MessageDelta, MessageStart } from '../../canonical/events.ts';
import type { CanonicalUsage } from '../../canonical/message.ts';
import { type CanonicalError, CodecError } from '../../canonical/notes.ts';
import { NOTHING, type Stage } from '../../canonical/stage.ts';
import { buildStopError, isForeign } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { noteRepaired } from '../../codec/report.ts';
import type { JsonObject } from '../../json/json.ts';
import type { SseFrame } from '../../sse/encode.ts';
import { CandidateEncoder, encodeEnvelope, FragmentSink } from './content-encode.ts';
import { encodeErrorBody, encodeUsage } from './outcome.ts';
import { isBlocked, readCandidateExtensions } from './wire.ts';

/**
 * Encodes canonical events as fragments of a GenerateContentResponse. Only `data:` lines: comments, event names and
 * `[DONE]` break clients.
 */
export function encodeStream(context: CodecContext): Stage<CanonicalStreamEvent, SseFrame> {
  return new StreamEncoder(context);
}

/** Google's clients expect a part in the last fragment too. */
const NO_PARTS = [{ text: '' }];

class StreamEncoder implements Stage<CanonicalStreamEvent, SseFrame> {
  readonly #context: CodecContext;
  #isForeign = false;
  /** Model and id, which every fragment repeats; serialised once. */
  #envelope: JsonObject = {};
  #tail = '}';
  readonly #candidates = new Map<number, CandidateEncoder>();
  /** The final fields of the candidates that have ended. */
  readonly #endings = new Map<number, JsonObject>();
  /** Extension fields of the response beside its candidates. */
  #fields: JsonObject = {};
  #isBlocked = false;
  #usage: CanonicalUsage | undefined;
  #out: SseFrame[] = [];
  #ended = false;

  constructor(context: CodecContext) {
    this.#context = context;
  }

  push(event: CanonicalStreamEvent): Iterable<SseFrame> {
    if (this.#ended) return NOTHING;
    try {
      this.#write(event);
    } catch (error) {
      // The policy rejects a loss; the stream has begun, so only an error in it can report that.
      if (!(error instanceof CodecError)) throw error;
      this.#fail(error.error);
    }
    return this.#take();
  }

  end(): Iterable<SseFrame> {
    if (!this.#ended) this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended early' });
    return this.#take();
  }

  #take(): Iterable<SseFrame> {
    if (this.#out.length === 0) return NOTHING;
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #write(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'content_block_delta':
        this.#candidate(event.choice).delta(event.index, event.delta);
        return;
      case 'content_block_start':
        this.#candidate(event.choice).start(event.index, event.content_block);
        return;
      case 'content_block_stop':
        this.#candidate(event.choice).stop(event.index, event.content_block);
        return;
      case 'message_start':
        this.#start(event.message);
        return;
      case 'message_delta':
        this.#finish(event);
        return;
      case 'message_stop':
        this.#stop();
        return;
      case 'error':
        this.#fail(event.error);
        return;
      case 'ping':
        return; // clients have no event for it
      default:
        event satisfies never;
    }
  }

  #start(message: MessageStart['message']): void {
    this.#isForeign = isForeign(message, 'gemini', this.#context);
    this.#envelope = encodeEnvelope(message, this.#context);
    this.#tail = `,${JSON.stringify(this.#envelope).slice(1)}`;
  }

  #candidate(index = 0): CandidateEncoder {
    let candidate = this.#candidates.get(index);
    if (!candidate) {
      const middle = `],"role":"model"},"index":${index}}]`;
      const sink = new FragmentSink(this.#context, (part) => this.#send(part, middle));
      candidate = new CandidateEncoder(this.#isForeign, this.#context, sink);
      this.#candidates.set(index, candidate);
    }
    return candidate;
  }

  #send(part: string, middle: string): void {
    this.#out.push({ data: `{"candidates":[{"content":{"parts":[${part}${middle}${this.#tail}` });
  }

  #finish(event: MessageDelta): void {
    const { choice = 0, delta, usage, extensions, late_blocks: late } = event;
    if (usage) this.#usage = usage;
    const fields = readCandidateExtensions(extensions);
    this.#fields = { ...this.#fields, ...fields.response };
    if (delta.stop_reason === null) return; // an error follows
    if (!this.#candidates.has(choice) && isBlocked(fields)) {
      this.#isBlocked = true;
      return;
    }
    const candidate = this.#candidate(choice);
    if (late) candidate.amend(late);
    const ending = candidate.finish(delta.stop_reason, delta.stop_details, fields);
    if (ending)
      this.#endings.set(choice, { content: { ...fields.content, parts: NO_PARTS, role: 'model' }, ...ending, index: choice });
    else this.#fail(buildStopError(delta.stop_reason, delta.stop_details));
  }

  #stop(): void {
    for (const index of this.#candidates.keys()) if (!this.#endings.has(index)) this.#finishMissing(index);
    if (this.#endings.size === 0 && !this.#isBlocked) {
      this.#fail({ code: 'STREAM_TRUNCATED', message: 'the stream ended without a stop reason' });
      return;
    }
    const last = {
      ...(this.#endings.size > 0 && { candidates: [...this.#endings.values()] }),
      ...this.#fields,
      ...(this.#usage && { usageMetadata: encodeUsage(this.#usage, (note) => this.#context.note(note)) }),
      ...this.#envelope,
    };
    this.#out.push({ data: JSON.stringify(last) });
    this.#ended = true;
  }

  /** The source ended without a stop reason for this candidate. */
  #finishMissing(index: number): void {
    if (this.#endings.size === 0) return;
    noteRepaired(this.#context, {
      path: `/choices/${index}`,
      feature: 'choices',
      message: `choice ${index} has no stop reason; treated as complete`,
    });
    this.#endings.set(index, { content: { parts: NO_PARTS, role: 'model' }, finishReason: 'OTHER', index });
  }

  /**
   * Sends the error as Google does. A repair repeats it as bare JSON, because @google/genai 1 reads the event as an empty
   * fragment; the gateway does so in a read of its own.
   */
  #fail(error: CanonicalError): void {
    const data = JSON.stringify(encodeErrorBody(error));
    this.#out.push({ data });
    if (this.#context.isRepair) this.#out.push({ data, bare: true });
    this.#ended = true;
  }
}
