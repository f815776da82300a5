/** Traces of exchanges: a server span for each, and a client span for each attempt, by the GenAI conventions of OpenTelemetry. */

import { randomBytes } from 'node:crypto';
import type { Ledger } from '../../store/index.ts';
import type { AttemptOpening, AttemptSettlement, ExchangeOpening, ExchangeSettlement } from '../../store/rows.ts';
import type { Attributes, Span } from './exporter.ts';
import type { TraceSettings } from './settings.ts';

/** Makes spans of what the ledger is told. */
export class Tracer {
  readonly #options: TracerOptions;
  /** Running requests, by the id that clients receive. */
  readonly #requests = new Map<string, RunningTrace>();
  /** The same, by their id in the ledger. */
  readonly #exchanges = new Map<string, RunningTrace>();

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  /** A request has arrived. `forget` must be called when it has ended. */
  receive(id: string, { method, path, headers }: ReceivedRequest): void {
    const { redact } = this.#options;
    const state = headers['tracestate'];
    const parent = parseTraceparent(headers['traceparent']);
    const traceId = parent?.traceId ?? createId(16);
    const { followsParent, ratio } = this.#options.settings.sampler;
    const isSampled = parent && followsParent ? parent.isSampled : isInRatio(traceId, ratio);
    this.#requests.set(id, {
      traceId,
      spanId: createId(8),
      parentId: parent?.spanId,
      state: parent && state ? cutText(redact(state), MAX_STATE) : undefined,
      isSampled,
      method,
      path: cutText(redact(path.split('?', 1)[0] ?? ''), MAX_TEXT),
      attempts: new Map(),
      unsent: [],
      opening: undefined,
      content: undefined,
    });
  }

  /** The request has ended. */
  forget(id: string): void {
    const trace = this.#requests.get(id);
    this.#requests.delete(id);
    if (trace?.opening) this.#exchanges.delete(trace.opening.id);
  }

  /** Adds what the client sent, if that was chosen. */
  addContent(id: string, body: string | Uint8Array): void {
    const trace = this.#requests.get(id);
    if (!trace?.isSampled || !this.#options.settings.hasContent) return;
    trace.content = cutText(this.#options.redact(readMessages(body)), MAX_CONTENT) || undefined;
  }

  /** The headers of the request that is about to be sent to this origin. */
  addHeaders(id: string, headers: Record<string, string>, origin: string): Record<string, string> {
    const trace = this.#requests.get(id);
    if (!trace) return headers;
    const attempt = trace.attempts.get(trace.unsent.shift() ?? 0);
    if (attempt) attempt.origin = origin;
    const traceparent = `00-${trace.traceId}-${attempt?.spanId ?? trace.spanId}-${trace.isSampled ? '01' : '00'}`;
    return { ...headers, traceparent, ...(trace.state !== undefined && { tracestate: trace.state }) };
  }

  /** A ledger whose writes become spans. */
  watch(ledger: Ledger): Ledger {
    return {
      createId: () => ledger.createId(),
      get accepting() {
        return ledger.accepting;
      },
      get isFailing() {
        return ledger.isFailing;
      },
      openExchange: (row) => {
        this.#open(row);
        return ledger.openExchange(row);
      },
      openAttempt: (row) => {
        this.#openAttempt(row);
        return ledger.openAttempt(row);
      },
      reportProgress: (row) => ledger.reportProgress(row),
      settleAttempt: (row) => {
        this.#endAttempt(row);
        return ledger.settleAttempt(row);
      },
      settleExchange: (row) => {
        this.#end(row);
        return ledger.settleExchange(row);
      },
    };
  }

  #open(row: ExchangeOpening): void {
    const trace = this.#requests.get(row.request_id ?? '');
    if (!trace) return;
    trace.opening = row;
    this.#exchanges.set(row.id, trace);
  }

  #openAttempt(row: AttemptOpening): void {
    const trace = this.#exchanges.get(row.exchange_id);
    trace?.attempts.set(row.number, { row, spanId: createId(8), origin: undefined });
    trace?.unsent.push(row.number);
  }

  #endAttempt(end: AttemptSettlement): void {
    const trace = this.#exchanges.get(end.exchange_id);
    const attempt = trace?.attempts.get(end.number);
    if (!trace?.isSampled || !attempt) return;
    const { row, spanId, origin } = attempt;
    const operation = findOperation(trace.opening);
    const { hostname, port, protocol } = origin === undefined ? NO_ADDRESS : new URL(origin);
    this.#add(trace, {
      spanId,
      parentId: trace.spanId,
      name: row.model ? `${operation} ${row.model}` : operation,
      kind: 'client',
      from: row.ts,
      to: row.ts + (end.total_ms ?? 0),
      error: findError(end),
      attributes: {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': PROVIDERS[row.provider] ?? row.provider,
        'gen_ai.request.model': row.model,
        'gen_ai.response.model': end.model_answered,
        ...listUsage(end),
        'server.address': hostname || undefined,
        'server.port': hostname === '' ? undefined : Number(port || (protocol === 'https:' ? 443 : 80)),
        'http.response.status_code': end.http_status || undefined,
        'error.type': findError(end),
        'sluice.attempt': row.number,
        'sluice.upstream_protocol': row.upstream_protocol,
        'sluice.ending': end.ending,
      },
    });
  }

  #end(end: ExchangeSettlement): void {
    const trace = this.#exchanges.get(end.id);
    const { opening } = trace ?? {};
    if (!trace?.isSampled || !opening) return;
    this.#add(trace, {
      spanId: trace.spanId,
      parentId: trace.parentId,
      name: `${trace.method} ${trace.path}`,
      kind: 'server',
      from: opening.ts,
      to: end.ts,
      // A client that leaves, or sends what cannot be answered, is no failure of the server.
      error: (end.http_status ?? 0) >= 500 ? findError(end) : undefined,
      attributes: {
        'http.request.method': trace.method,
        'url.path': trace.path,
        'http.response.status_code': end.http_status || undefined,
        'user_agent.original': opening.user_agent,
        'gen_ai.operation.name': findOperation(opening),
        'gen_ai.request.model': opening.model_requested,
        'gen_ai.response.model': end.model_answered,
        'gen_ai.conversation.id': opening.session_id,
        'gen_ai.input.messages': trace.content,
        'error.type': findError(end),
        'sluice.request_id': opening.request_id,
        'sluice.client_protocol': opening.client_protocol,
        'sluice.key': opening.key_name,
        'sluice.tags': opening.tags,
        'sluice.ending': end.ending,
        'sluice.attempts': trace.attempts.size,
      },
    });
  }

  #add({ traceId, state }: RunningTrace, span: Omit<Span, 'traceId' | 'state'>): void {
    this.#options.add({ ...span, traceId, state });
  }
}

/** What the tracer works with. */
export interface TracerOptions {
  readonly settings: Pick<TraceSettings, 'sampler' | 'hasContent'>;
  /** A span is over. */
  readonly add: (span: Span) => void;
  /** Masks secrets. */
  readonly redact: (text: string) => string;
}

/** A request that has arrived. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

interface RunningTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly state: string | undefined;
  readonly isSampled: boolean;
  readonly method: string;
  readonly path: string;
  readonly attempts: Map<number, { row: AttemptOpening; spanId: string; origin: string | undefined }>;
  /** Attempts whose request was not sent yet. */
  readonly unsent: number[];
  opening: ExchangeOpening | undefined;
  content: string | undefined;
}

/** The conventions' names of providers; others keep the name of the configuration. */
const PROVIDERS: Readonly<Record<string, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  deepseek: 'deepseek',
  groq: 'groq',
  xai: 'x_ai',
  cohere: 'cohere',
  perplexity: 'perplexity',
};

const OPERATIONS: Readonly<Record<string, string>> = { chat: 'chat', embeddings: 'embeddings', images: 'generate_content' };

const findOperation = (opening: ExchangeOpening | undefined): string => {
  const endpoint = opening?.endpoint ?? '';
  return OPERATIONS[endpoint] ?? endpoint;
};

const findError = ({ ending, error_code: code }: AttemptSettlement | ExchangeSettlement): string | undefined =>
  ending === 'answered' ? undefined : (code ?? ending);

const listUsage = (end: AttemptSettlement): Attributes => ({
  'gen_ai.usage.input_tokens': end.input_tokens,
  'gen_ai.usage.output_tokens': end.output_tokens,
  'gen_ai.usage.cache_read.input_tokens': end.cache_read_tokens,
  'gen_ai.usage.cache_creation.input_tokens': end.cache_creation_tokens,
  'gen_ai.usage.reasoning.output_tokens': end.reasoning_tokens,
  'sluice.cost_usd': typeof end.cost_micros === 'number' ? end.cost_micros / 1e6 : undefined,
});

const NO_ADDRESS = { hostname: '', port: '', protocol: '' } as const;

const MAX_TEXT = 256;

/** As W3C Trace Context advises. */
const MAX_STATE = 512;

const MAX_CONTENT = 64 * 1024;

/** The messages of a request, as its protocol has them; empty for other bodies. */
function readMessages(body: string | Uint8Array): string {
  try {
    const parsed: unknown = JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString());
    if (typeof parsed !== 'object' || parsed === null) return '';
    const { messages, input, contents }: { messages?: unknown; input?: unknown; contents?: unknown } = parsed;
    return JSON.stringify(messages ?? input ?? contents) ?? '';
  } catch {
    return '';
  }
}

/** The beginning of a text, as a copy: V8 keeps the whole text for as long as a slice of it is used. */
const cutText = (text: string, length: number): string =>
  text.length > length ? Buffer.from(text.slice(0, length)).toString() : text;

const createId = (bytes: number): string => randomBytes(bytes).toString('hex');

interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** W3C Trace Context. Later versions may have more parts. */
function parseTraceparent(text: string | undefined): Parent | undefined {
  const [, version, traceId = '', spanId = '', flags = ''] =
    /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/.exec(text?.trim() ?? '') ?? [];
  if (version === undefined || version === 'ff' || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  if (version === '00' && text?.trim().length !== 55) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The same decision on every node, by the last 56 bits of the id. */
const isInRatio = (traceId: string, ratio: number): boolean => Number.parseInt(traceId.slice(18), 16) < ratio * 2 ** 56;
