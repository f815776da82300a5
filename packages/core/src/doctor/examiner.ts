/** The doctor: reads one response body and reports how it violates the standard. */

import { MessageAccumulator } from '../accumulate/message.ts';
import { ownError } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { WireCheck } from '../codec/repair.ts';
import { type AccumulatedMessage, describeMessage } from '../engine/message.ts';
import { EventReader, type EventReaderOptions } from '../engine/reader.ts';
import { isObject } from '../json/json.ts';
import { GeminiCheck } from '../protocols/gemini/violations.ts';
import { ChatCheck } from '../protocols/openai-chat/violations.ts';
import { Diagnostics, describeRule } from '../rules/diagnostics.ts';
import { type Diagnostic, RULES, type RuleId, type Severity, type Violation } from '../rules/index.ts';
import type { SseFrame } from '../sse/encode.ts';
import { type Breakage, findBreakage } from './breakage.ts';
import { createCheck, hasLoneSurrogate } from './checks.ts';
import { type Circumstances, findExcuse, isRepairable, isViolation, needsRepair } from './violations.ts';

/**
 * Reads a response body to its end and reports how it violates the standard. Bytes in, a report out, without I/O.
 *
 * ```ts
 * const examiner = new Examiner({ protocol: Object.values(PROTOCOLS) });
 * for (const bytes of chunks) examiner.push(bytes);
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
    this.#reader = new EventReader(options, (frame, payload) => this.#inspect(frame, payload));
  }

  /** Examines a complete body. */
  static examine(chunks: Iterable<Uint8Array>, options: ExamineOptions): Examination {
    const examiner = new Examiner(options);
    for (const chunk of chunks) examiner.push(chunk);
    return examiner.end();
  }

  /** The findings that rewriting the stream removes; infos only with `all`. */
  static findRepairs({ findings }: Examination, all: boolean): Finding[] {
    return findings.filter((finding) => needsRepair(finding, all));
  }

  /** Whether all findings are part of the content, so that rewriting removes none of them. */
  static isRepaired({ findings }: Examination): boolean {
    return !findings.some(isRepairable);
  }

  /** A limit was exceeded: reading on is of no use. */
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

  /** Call instead of `end` when the source broke off. */
  fail(reason: string): Examination {
    for (const event of this.#reader.end()) this.#message.push(event);
    const error = ownError('stream_error', 'UPSTREAM_ERROR', `reading the stream failed: ${reason}`);
    this.#message.push({ type: 'error', error });
    const examination = this.#conclude();
    return { ...examination, message: { ...examination.message, complete: false } };
  }

  #conclude(): Examination {
    const { protocol, diagnostics, notes, completion } = this.#reader;
    const message = describeMessage(protocol ?? null, this.#message.finish(), { diagnostics, notes, completion });
    this.#judge(message);
    const circumstances = this.#circumstances(message);
    const findings = this.#merge(diagnostics)
      .filter(({ rule }) => isViolation(rule, circumstances))
      .map((met) => this.#explain(met, circumstances))
      .toSorted(byWeight);
    return {
      protocol: message.protocol,
      bytes: this.#body.length,
      score: computeScore(findings),
      findings,
      traits: this.#traits(message),
      message: { ...message, diagnostics: findings.map(toDiagnostic).toSorted((a, b) => a.offset - b.offset) },
    };
  }

  #inspect(frame: SseFrame, payload: unknown): void {
    const check = this.#findCheck();
    this.#count++;
    if (frame.bare) this.#bare++;
    if (hasLoneSurrogate(frame.data)) this.#met.report('sse/lone-surrogate', frame.offset ?? 0);
    // Everything after the sentinel is one violation, which the decoder reports.
    this.#isOver ||= frame.data.trim() === '[DONE]';
    if (!this.#isOver && isObject(payload)) check?.payload(payload, frame);
  }

  /** The check of the protocol, once the reader knows it. */
  #findCheck(): WireCheck | undefined {
    const { protocol } = this.#reader;
    this.#check ??= protocol && createCheck(protocol.id, this.#met.report);
    return this.#check;
  }

  /** Reports what only the whole body shows. */
  #judge({ error, complete }: AccumulatedMessage): void {
    const { report } = this.#met;
    const { length, comments, firstComment } = this.#body;
    this.#findCheck()?.end({ length, isCut: !complete && !error, comment: comments > 0 ? firstComment : undefined });
    if (error?.code === 'empty_stream') report('sse/empty-stream', 0, error.message);
    if (error?.code === 'not_a_stream') report('sse/not-a-stream', 0, error.message);
    if (this.#isDocument && !this.#isWhole) report('sse/json-body-instead-of-stream', 0);
  }

  /** One JSON document and nothing else. */
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

  #circumstances(message: AccumulatedMessage): Circumstances {
    return {
      message,
      isDocument: this.#isDocument,
      isArray: this.#beginsWith('['),
      hasWholeMessage: this.#check instanceof ChatCheck && this.#check.isWhole,
      isWhole: this.#isWhole,
      isStrict: this.#isStrict,
    };
  }

  /** The violations that the decoder reported, then those of the checks; each rule once. */
  #merge(reported: readonly Violation[]): Violation[] {
    const known = new Set(reported.map(({ rule }) => rule));
    return [...reported, ...this.#met.list().filter(({ rule }) => !known.has(rule))];
  }

  #explain({ rule, detail, offset, count }: Violation, circumstances: Circumstances): Finding {
    const { title, severity, remedy } = RULES[rule];
    const excuse = findExcuse(rule, circumstances);
    const excerpt = excerptAt(this.#body, rule, offset);
    return {
      rule,
      severity: excuse === undefined ? severity : 'info',
      title,
      message: excuse ?? detail ?? title,
      offset,
      count,
      excerpt,
      remedy,
      breaks: findBreakage(rule, this.#reader.protocol?.id),
    };
  }

  #traits({ extras }: AccumulatedMessage): Examination['traits'] {
    const check = this.#check;
    return {
      reasoning_fields: check instanceof ChatCheck ? [...check.reasoningFields] : [],
      think_tags: extras['think_split'] !== undefined,
      call_ids: check instanceof GeminiCheck ? (check.hasCallIds ?? null) : null,
      comments: this.#body.comments,
    };
  }
}

/** Options of the Examiner. */
export interface ExamineOptions extends Pick<EventReaderOptions, 'protocol' | 'maxLineBytes' | 'maxEventBytes' | 'onEvent'> {
  /** The request did not ask for a stream: a JSON body is what the response should be. */
  whole?: boolean;
  /**
   * The request asked for SSE and named no function. Forms that a vendor sends in other cases then keep the severity of
   * their rules.
   */
  strict?: boolean;
}

/** As a reader without the doctor reports it. */
const toDiagnostic = ({ rule, severity, title, message, offset, count }: Finding): Diagnostic => ({
  rule,
  severity,
  message: describeRule(rule, RULES, message === title ? undefined : message),
  offset,
  count,
});

/** A violation of the standard in a body, with its consequences. */
export interface Finding extends Diagnostic {
  severity: Severity;
  title: string;
  /** The body at the offset. */
  excerpt: string;
  /** What Sluice does about it. */
  remedy: string;
  /** Clients that are known to fail on it. */
  breaks: readonly Breakage[];
}

/** Facts about a server that are not violations. */
export interface Traits {
  /** Chat: the fields that contained reasoning; `parts` for parts of the content. */
  reasoning_fields: string[];
  /** The text contains reasoning between tags. */
  think_tags: boolean;
  /** Gemini: whether calls have ids; null when there was no call. */
  call_ids: boolean | null;
  /** Comment lines in the stream. */
  comments: number;
}

/** The doctor's report on one body. */
export interface Examination {
  protocol: ProtocolId | null;
  bytes: number;
  /** 100 for a body without violations; see `computeScore`. */
  score: number;
  /** The most severe first, then by offset. */
  findings: Finding[];
  traits: Traits;
  /** The message that was read; its diagnostics are the findings, by offset. */
  message: AccumulatedMessage;
}

/**
 * 100, less 20 for each rule of severity error, 5 for a warning, 1 for an info; never below 0. How often a rule was met
 * does not count.
 */
export function computeScore(findings: Iterable<Pick<Finding, 'rule' | 'severity'>>): number {
  const met = new Map([...findings].map(({ rule, severity }) => [rule, severity]));
  return Math.max(
    0,
    [...met.values()].reduce((score, severity) => score - COST[severity], 100),
  );
}

const COST = { error: 20, warning: 5, info: 1 } as const;
COST satisfies Record<Severity, number>;

const byWeight = (a: Finding, b: Finding): number => RANK[a.severity] - RANK[b.severity] || a.offset - b.offset;

const RANK = { error: 0, warning: 1, info: 2 } as const;
RANK satisfies Record<Severity, number>;

// ---- excerpts

/** The body as it came, for excerpts, and its comment lines, which are not in any frame. */
class BodyRecord {
  readonly #chunks: Uint8Array[] = [];
  #last = LF;
  length = 0;
  comments = 0;
  firstComment = 0;

  push(chunk: Uint8Array): void {
    this.#countComments(chunk);
    // Copied: the caller may reuse the chunk.
    if (this.length < MAX_KEPT_BYTES) this.#chunks.push(chunk.slice());
    this.length += chunk.length;
  }

  /** The text between two offsets. Invalid UTF-8 becomes U+FFFD. */
  text(start: number, end: number): string {
    const piece = new Uint8Array(Math.max(0, Math.min(end, this.length) - start));
    let at = 0;
    for (const chunk of this.#chunks) {
      const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at));
      if (part.length > 0) piece.set(part, Math.max(0, at - start));
      at += chunk.length;
      if (at >= end) break;
    }
    return new TextDecoder().decode(piece);
  }

  #countComments(chunk: Uint8Array): void {
    for (let at = chunk.indexOf(COLON); at >= 0; at = chunk.indexOf(COLON, at + 1)) {
      const before = at === 0 ? this.#last : chunk[at - 1];
      if (before !== LF && before !== CR) continue;
      if (this.comments++ === 0) this.firstComment = this.length + at;
    }
    this.#last = chunk.at(-1) ?? this.#last;
  }
}

const CR = 13;

const LF = 10;

const COLON = 58;

/** Findings after this many bytes have offsets but no excerpts. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/** The frame at a finding, or the relevant part of it, on one line. */
function excerptAt(body: BodyRecord, rule: RuleId, offset: number): string {
  const [frame = ''] = body.text(offset, offset + SEARCHED).split(/\r?\n\r?\n|\r\r/, 1);
  const key = FOCUS.find(([start]) => rule.startsWith(start))?.[1];
  const at = key === undefined ? -1 : frame.indexOf(key);
  const start = at > LEAD && frame.length > SHOWN ? at - LEAD : 0;
  const shown = frame.slice(start, start + SHOWN);
  return `${start > 0 ? '…' : ''}${shown}${start + SHOWN < frame.length ? '…' : ''}`;
}

/** How many characters of a frame are searched for the relevant place, and how many are shown. */
const SEARCHED = 64 * 1024;

const SHOWN = 160;

const LEAD = 24;

/** What to look for in the frame, by the beginning of the rule; the first match counts. */
const FOCUS: readonly (readonly [rule: string, key: string])[] = [
  ['chat/tool-', '"tool_calls"'],
  ['chat/finish-', '"finish_reason"'],
  ['chat/legacy-function-call', '"function_call"'],
  ['chat/usage-elsewhere', '"x_groq"'],
  ['chat/usage-', '"usage"'],
  ['chat/role-', '"role"'],
  ['chat/model-', '"model"'],
  ['chat/reasoning-', '"reasoning'],
  ['chat/delta-', '"choices"'],
  ['chat/choice', '"choices"'],
  ['chat/error-', '"error"'],
  ['sse/lone-surrogate', '\\ud'],
  ['gemini/finish-', '"finishReason"'],
  ['gemini/parts-after-finish', '"finishReason"'],
];

// ---- profiles

/**
 * Derives profile fields from a provider's responses: pass them as `profile` in the options of a conversion, or as
 * `profile:` in the gateway's configuration. Fields that no response shows are left out.
 */
export function learnProfile(examinations: readonly Examination[]): Partial<ProviderProfile> {
  const chats = examinations.filter(({ protocol }) => protocol === 'openai-chat');
  const seen = new Set(chats.flatMap(({ traits }) => traits.reasoning_fields));
  const field = FIELDS.find(([found]) => seen.has(found))?.[1];
  return {
    ...(field && { reasoning_field: field }),
    ...(chats.some(isAdditive) && { reasoning_additive: true }),
  };
}

type ReasoningField = ProviderProfile['reasoning_field'];

/**
 * The profile's value for each place where reasoning was found; `reasoning_details` come with the field beside them.
 */
const FIELDS: readonly (readonly [found: string, field: ReasoningField])[] = [
  ['parts', 'parts'],
  ['reasoning_content', 'reasoning_content'],
  ['reasoning', 'reasoning'],
];

/** More reasoning tokens than completion tokens, and a total without them. */
function isAdditive({ message: { wire_usage: usage } }: Examination): boolean {
  if (!isObject(usage)) return false;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  const details = usage['completion_tokens_details'];
  const reasoning = isObject(details) ? details['reasoning_tokens'] : undefined;
  if (![prompt, completion, total, reasoning].every((count) => typeof count === 'number')) return false;
  return Number(reasoning) > Number(completion) && Number(total) === Number(prompt) + Number(completion);
}
