import { MessageAccumulator } from '../accumulate/message.ts';
import { isObject } from '../accumulate/overlay.ts';
import { ownError } from '../canonical/errors.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import { type Assembled, describeMessage } from '../engine/assembled.ts';
import { Diagnostics } from '../engine/diagnostics.ts';
import { EventReader, type EventReaderOptions } from '../engine/event-reader.ts';
import type { Protocol } from '../protocols/shared/protocol.ts';
import type { SseFrame } from '../sse/frame.ts';
import { BodyRecord } from './body-record.ts';
import { breakageOf } from './breakage.ts';
import { AnthropicCheck } from './checks/anthropic.ts';
import { ChatCheck } from './checks/chat.ts';
import type { WireCheck } from './checks/check.ts';
import { GeminiCheck } from './checks/gemini.ts';
import { hasHalfCharacter } from './checks/half-characters.ts';
import { ResponsesCheck } from './checks/responses.ts';
import { type Circumstances, findExcuse, isDeparture, isRepairable, needsRepair } from './departures.ts';
import { excerptAt } from './excerpt.ts';
import { byWeight, type Examination, type Finding, scoreOf } from './report.ts';
import { type Diagnostic, type Report, RULES } from './rules.ts';
import { withTitle } from './titles.ts';

export interface ExamineOptions extends Pick<EventReaderOptions, 'protocol' | 'maxLineBytes' | 'maxEventBytes' | 'onEvent'> {
  /** The request did not ask for a stream: a JSON body is what the answer should be. */
  whole?: boolean;
  /** The request asked for SSE and named no function: forms that a vendor sends only otherwise are as severe as their rules say. */
  strict?: boolean;
}

/** A protocol that is not registered has none: only the framing of its streams is checked. */
const CHECKS: Readonly<Record<string, (report: Report) => WireCheck>> = {
  'openai-chat': (report) => new ChatCheck(report),
  'anthropic-messages': (report) => new AnthropicCheck(report),
  'openai-responses': (report) => new ResponsesCheck(report),
  gemini: (report) => new GeminiCheck(report),
} satisfies Record<ProtocolId, (report: Report) => WireCheck>;

const toDiagnostic = ({ rule, severity, message, offset, count }: Finding): Diagnostic => ({
  rule,
  severity,
  message,
  offset,
  count,
});

/**
 * Reads a response body to its end and says how it departs from the standard. Bytes in, a report out, without I/O.
 *
 * ```ts
 * const examiner = new Examiner({ protocol: Object.values(PROTOCOLS) });
 * for await (const chunk of response.body) examiner.push(chunk);
 * const { score, findings } = examiner.end();
 * ```
 */
export class Examiner {
  readonly #reader: EventReader;
  readonly #message = new MessageAccumulator();
  readonly #body = new BodyRecord();
  readonly #met = new Diagnostics();
  readonly #isWhole: boolean;
  readonly #isStrict: boolean;
  #check: WireCheck | undefined;
  #count = 0;
  #bare = 0;
  #isOver = false;

  constructor({ whole = false, strict = false, ...options }: ExamineOptions) {
    this.#isWhole = whole;
    this.#isStrict = strict;
    this.#reader = new EventReader(options, (frame, payload) => this.#look(frame, payload));
  }

  /** Examines a body that is there as a whole. */
  static examine(chunks: Iterable<Uint8Array>, options: ExamineOptions): Examination {
    const examiner = new Examiner(options);
    for (const chunk of chunks) examiner.push(chunk);
    return examiner.end();
  }

  /** The findings that rewriting the stream removes; infos only with `all`. */
  static findRepairs({ findings }: Examination, all: boolean): Finding[] {
    return findings.filter((finding) => needsRepair(finding, all));
  }

  /** Whether all findings are part of what the stream says, so that no rewriting removes one. */
  static isRepaired({ findings }: Examination): boolean {
    return !findings.some(isRepairable);
  }

  /** A limit was passed: reading on is of no use. */
  get hasFailed(): boolean {
    return this.#reader.hasFailed;
  }

  push(chunk: Uint8Array): void {
    this.#body.push(chunk);
    for (const event of this.#reader.push(chunk)) this.#message.push(event);
  }

  end(): Examination {
    for (const event of this.#reader.end()) this.#message.push(event);
    return this.#conclude();
  }

  /** The source broke off for this reason. */
  fail(reason: string): Examination {
    for (const event of this.#reader.end()) this.#message.push(event);
    const error = ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`);
    this.#message.push({ type: 'error', error });
    const examination = this.#conclude();
    return { ...examination, message: { ...examination.message, complete: false } };
  }

  #conclude(): Examination {
    this.#check?.end();
    const { protocol, diagnostics, notes, completion } = this.#reader;
    const message = describeMessage(protocol ?? null, this.#message.finish(), { diagnostics, notes, completion });
    this.#judge(message, protocol);
    const circumstances = this.#circumstances(message);
    const findings = this.#merge(diagnostics)
      .filter(({ rule }) => isDeparture(rule, circumstances))
      .map((met) => this.#explain(met, circumstances))
      .toSorted(byWeight);
    return {
      protocol: message.protocol,
      bytes: this.#body.length,
      score: scoreOf(findings),
      findings,
      traits: this.#traits(message),
      message: { ...message, diagnostics: findings.map(toDiagnostic).toSorted((a, b) => a.offset - b.offset) },
    };
  }

  #look(frame: SseFrame, payload: unknown): void {
    const { protocol } = this.#reader;
    this.#check ??= protocol && CHECKS[protocol.id]?.(this.#met.report);
    this.#count++;
    if (frame.bare) this.#bare++;
    if (hasHalfCharacter(frame.data)) this.#met.report('sse/lone-surrogate', frame.offset ?? 0);
    // Everything after the sentinel is one departure, which the decoder reports.
    this.#isOver ||= frame.data.trim() === '[DONE]';
    if (!this.#isOver && isObject(payload)) this.#check?.payload(payload, frame);
  }

  /** What only the whole body tells. */
  #judge({ error, complete }: Assembled, protocol: Protocol | undefined): void {
    const { report } = this.#met;
    const end = this.#body.length;
    if (error?.code === 'empty_stream') report('sse/empty-stream', 0, error.message);
    if (error?.code === 'not_a_stream') report('sse/not-a-stream', 0, error.message);
    if (protocol?.id === 'openai-chat' && !complete && !error) report('chat/ended-early', end);
    if (protocol?.id === 'gemini' && this.#body.comments > 0) report('gemini/comment', this.#body.firstComment);
    if (this.#isDocument && !this.#isWhole) report('sse/json-body-instead-of-stream', 0);
  }

  /** One JSON document, and nothing else. */
  get #isDocument(): boolean {
    return this.#count === 1 && this.#bare === 1 && this.#beginsWith('{');
  }

  #beginsWith(character: string): boolean {
    return this.#body
      .text(0, 64)
      .replace(/^\uFEFF/, '')
      .trimStart()
      .startsWith(character);
  }

  #circumstances(message: Assembled): Circumstances {
    return {
      message,
      isDocument: this.#isDocument,
      isArray: this.#beginsWith('['),
      hasWholeMessage: this.#check instanceof ChatCheck && this.#check.isWhole,
      isWhole: this.#isWhole,
      isStrict: this.#isStrict,
    };
  }

  /** The departures that the decoder reported, then those of the checks; each rule once. */
  #merge(reported: readonly Diagnostic[]): Diagnostic[] {
    const known = new Set(reported.map(({ rule }) => rule));
    return [...reported, ...this.#met.list().filter(({ rule }) => !known.has(rule))];
  }

  #explain(met: Diagnostic, circumstances: Circumstances): Finding {
    const { title, severity, remedy } = RULES[met.rule];
    const { rule, message, offset, count } = withTitle(met);
    const excuse = findExcuse(rule, circumstances);
    const excerpt = excerptAt(this.#body, rule, offset);
    return {
      rule,
      severity: excuse === undefined ? severity : 'info',
      title,
      message: excuse ?? message,
      offset,
      count,
      excerpt,
      remedy,
      breaks: breakageOf(rule, this.#reader.protocol?.id),
    };
  }

  #traits({ extras }: Assembled): Examination['traits'] {
    const check = this.#check;
    return {
      reasoning_fields: check instanceof ChatCheck ? [...check.reasoningFields] : [],
      think_tags: extras['think_split'] !== undefined,
      call_ids: check instanceof GeminiCheck ? (check.hasCallIds ?? null) : null,
      comments: this.#body.comments,
    };
  }
}
