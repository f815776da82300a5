import { MessageAccumulator } from '../accumulate/message.ts';
import { ownError } from '../canonical/notes.ts';
import type { ProtocolId } from '../canonical/protocol.ts';
import type { ProviderProfile } from '../codec/profile.ts';
import type { Protocol } from '../codec/protocol.ts';
import { type Assembled, describeMessage } from '../engine/message.ts';
import { EventReader, type EventReaderOptions } from '../engine/reader.ts';
import { isObject } from '../json/json.ts';
import { Diagnostics, wordsOf } from '../rules/diagnostics.ts';
import { type Diagnostic, type Report, RULES, type RuleId, type Severity } from '../rules/index.ts';
import type { SseFrame } from '../sse/encode.ts';
import { type Breakage, breakageOf } from './breakage.ts';
import { AnthropicCheck, ChatCheck, GeminiCheck, hasHalfCharacter, ResponsesCheck, type WireCheck } from './checks.ts';
import { type Circumstances, findExcuse, isDeparture, isRepairable, needsRepair } from './departures.ts';

const CR = 13;

const LF = 10;

const COLON = 58;

/** Beyond this there are no excerpts any more; findings there still have their offsets. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/** The body as it came, for excerpts, and the comments in it, which no frame tells of. */
class BodyRecord {
  readonly #chunks: Uint8Array[] = [];
  #last = LF;
  length = 0;
  comments = 0;
  firstComment = 0;

  push(chunk: Uint8Array): void {
    this.#countComments(chunk);
    // Chunks belong to the caller.
    if (this.length < MAX_KEPT_BYTES) this.#chunks.push(chunk.slice());
    this.length += chunk.length;
  }

  /** The text between two places. Bytes that are no text become U+FFFD. */
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

/** How far a frame is searched for the place that matters, and how much of it is shown. */
const SEARCHED = 64 * 1024;

const SHOWN = 160;

const LEAD = 24;

/** What to look for in the frame, by the beginning of the rule; the first that fits counts. */
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

/** A line of the body at a finding: the frame, or what matters of it. */
function excerptAt(body: BodyRecord, rule: RuleId, offset: number): string {
  const [frame = ''] = body.text(offset, offset + SEARCHED).split(/\r?\n\r?\n|\r\r/, 1);
  const key = FOCUS.find(([start]) => rule.startsWith(start))?.[1];
  const at = key === undefined ? -1 : frame.indexOf(key);
  const start = at > LEAD && frame.length > SHOWN ? at - LEAD : 0;
  const shown = frame.slice(start, start + SHOWN);
  return `${start > 0 ? '…' : ''}${shown}${start + SHOWN < frame.length ? '…' : ''}`;
}

/** A departure from the standard, with all that is known of it. */
export interface Finding extends Diagnostic {
  severity: Severity;
  title: string;
  /** The body at that place. */
  excerpt: string;
  /** What Sluice does about it. */
  remedy: string;
  /** Clients that are known to break on it. */
  breaks: readonly Breakage[];
}

/** What is no departure, and still worth knowing of a server. */
export interface Traits {
  /** Chat: the fields in which reasoning came; `parts` for parts of the content. */
  reasoning_fields: string[];
  /** The text has thoughts between tags. */
  think_tags: boolean;
  /** Gemini: whether calls have ids; null when there was no call. */
  call_ids: boolean | null;
  /** Comment lines in the stream. */
  comments: number;
}

/** What the doctor says of one body. */
export interface Examination {
  protocol: ProtocolId | null;
  bytes: number;
  /** 100 for a body without departures; see `scoreOf`. */
  score: number;
  /** The worst first, then in the order of the body. */
  findings: Finding[];
  traits: Traits;
  /** The message that was read; its diagnostics are the findings, in the order of the body. */
  message: Assembled;
}

const COST = { error: 20, warning: 5, info: 1 } as const;

COST satisfies Record<Severity, number>;

const RANK = { error: 0, warning: 1, info: 2 } as const;

RANK satisfies Record<Severity, number>;

/** 100, less 20 for each rule of severity error, 5 for a warning, 1 for an info; never below 0. How often a rule was met does not count. */
export function scoreOf(findings: Iterable<Pick<Finding, 'rule' | 'severity'>>): number {
  const met = new Map([...findings].map(({ rule, severity }) => [rule, severity]));
  return Math.max(
    0,
    [...met.values()].reduce((score, severity) => score - COST[severity], 100),
  );
}

const byWeight = (a: Finding, b: Finding): number => RANK[a.severity] - RANK[b.severity] || a.offset - b.offset;

/** A diagnostic with the title of its rule for a message, unless it has more to say already. Brings the whole table of rules along. */
export function withTitle(diagnostic: Diagnostic): Diagnostic {
  const { rule, message } = diagnostic;
  return message === wordsOf(rule) ? { ...diagnostic, message: RULES[rule].title } : diagnostic;
}

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

type ReasoningField = ProviderProfile['reasoning_field'];

/** Where reasoning was found, as a profile says it; `reasoning_details` go with the field beside them. */
const FIELDS: readonly (readonly [found: string, field: ReasoningField])[] = [
  ['parts', 'parts'],
  ['reasoning_content', 'reasoning_content'],
  ['reasoning', 'reasoning'],
];

/**
 * What the answers of a provider tell of it, as fields of its profile: lay it over what is known with `profile` in the options of a conversion,
 * or under `profile:` of the gateway's configuration. Nothing is guessed: what no answer shows is left out.
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

/** More was thought than was written in all, and the total does not count it. */
function isAdditive({ message: { wire_usage: usage } }: Examination): boolean {
  if (!isObject(usage)) return false;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  const details = usage['completion_tokens_details'];
  const reasoning = isObject(details) ? details['reasoning_tokens'] : undefined;
  if (![prompt, completion, total, reasoning].every((count) => typeof count === 'number')) return false;
  return Number(reasoning) > Number(completion) && Number(total) === Number(prompt) + Number(completion);
}
