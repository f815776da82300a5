import { type IncomingMessage, request as startRequest } from 'node:http';
import { type Clock, sleep } from '../../src/http/clock.ts';
import { ANSWER, WALL_TIMES, type Wall, type WallRequest } from './wall.ts';

// The sixteen faults of the Failover Bench: how each is run, and how its result is graded.

/** One answer as a client of OpenAI Chat reads it. */
export interface Observed {
  status: number;
  text: string;
  /** A finish reason and `[DONE]` have arrived. */
  isFinished: boolean;
  /** The error, by its status or in the stream. */
  error: string | undefined;
  hasUsage: boolean;
  model: string | undefined;
  /** Until the first word. */
  firstMs: number | undefined;
  /** Until the end; undefined when there was none before the limit. */
  totalMs: number | undefined;
  /** What the wall was asked because of it. */
  requests: readonly WallRequest[];
}

/** `pass`: whole, every point met. `partial`: whole, a point missed. `safe`: a clean error. `fail`: all else. */
const GRADES = ['pass', 'partial', 'safe', 'fail'] as const;

export type Grade = (typeof GRADES)[number];

export interface Result {
  grade: Grade;
  /** What was missed or exceeded. */
  reason: string;
}

export interface Scenario {
  id: string;
  model: string;
  /** The fault and the points that a pass needs. */
  title: string;
  /** Points that are missed although the answer is whole; without any it is a pass. */
  missed?: (observed: Observed) => (string | false)[];
  /** Bounds that are exceeded, whatever was answered. */
  exceeded?: (observed: Observed) => (string | false)[];
  /** An error is the right answer. */
  isError?: true;
}

const countOf = ({ requests }: Observed, model: string): number => requests.filter((one) => one.model === model).length;

/** A finished answer that took longer counts as a hang. */
const LIMIT_MS = 150_000;

/** The most requests that one client request may cause: one and `limits.retries`. */
export const MAX_ATTEMPTS = 5;

export const SCENARIOS: readonly Scenario[] = [
  {
    id: 'S01',
    model: 'fb-s01-429-retry-after',
    title: '429 with Retry-After 2 s: the same target is retried after waiting',
    missed: (seen) => [seen.requests.at(-1)?.model !== 'fb-s01-429-retry-after' && 'same target not retried'],
    exceeded: ({ requests: [first, second] }) => [
      second?.model === 'fb-s01-429-retry-after' &&
        second.at - (first?.at ?? 0) < WALL_TIMES.retryAfter &&
        'retried before Retry-After',
    ],
  },
  {
    id: 'S02',
    model: 'fb-s02-429-persistent',
    title: 'persistent 429: bounded, no hammering',
    exceeded: (seen) => [countOf(seen, 'fb-s02-429-persistent') > 3 && 'hammered'],
  },
  {
    id: 'S03',
    model: 'fb-s03-500-then-200',
    title: '500, then 200: the same target is retried',
    missed: (seen) => [seen.requests.at(-1)?.model !== 'fb-s03-500-then-200' && 'same target not retried'],
  },
  { id: 'S04', model: 'fb-s04-503-persistent', title: 'persistent 503' },
  { id: 'S05', model: 'fb-s05-reset', title: 'connection reset once' },
  {
    id: 'S06',
    model: 'fb-s06-no-response',
    title: 'no response: not retried, within 100 s',
    missed: (seen) => [countOf(seen, 'fb-s06-no-response') > 1 && 'retried'],
    exceeded: ({ totalMs = 0 }) => [totalMs > 100_000 && 'more than 100 s'],
  },
  {
    id: 'S07',
    model: 'fb-s07-slow-ttft',
    title: 'slow first token: limit 15 s',
    missed: ({ firstMs = 0 }) => [firstMs > 15_000 && `first word after ${Math.round(firstMs / 1000)} s`],
  },
  { id: 'S08', model: 'fb-s08-stream-cut', title: 'cut at word 40 of 60' },
  { id: 'S09', model: 'fb-s09-stream-stall', title: 'stall at word 20' },
  { id: 'S10', model: 'fb-s10-malformed-chunk', title: 'malformed chunk at word 10' },
  {
    id: 'S11',
    model: 'fb-s11-no-done',
    title: 'no `[DONE]`: finished within 8 s',
    exceeded: ({ totalMs = 0 }) => [totalMs > 8000 && 'more than 8 s'],
  },
  {
    id: 'S12',
    model: 'fb-s12-context-length',
    title: 'context length: no retry on the same model; the next target may serve',
    missed: (seen) => [countOf(seen, 'fb-s12-context-length') > 1 && 'same model retried'],
  },
  {
    id: 'S13',
    model: 'fb-s13-content-filter',
    title: 'content filter: an error, no retry',
    isError: true,
    missed: ({ requests }) => [requests.length > 1 && 'retried'],
  },
  {
    id: 'S14',
    model: 'fb-s14-stream-cut',
    title: 'cut at word 40, the fallback refuses a prefill: no masked error',
    exceeded: ({ error = '' }) => [error.includes('prefill') && 'shows the refusal of the prefill'],
  },
  {
    id: 'S15',
    model: 'fb-s15-flap',
    title: 'the primary is down for 60 s: used within 30 s of its return, every request served meanwhile',
  },
  {
    id: 'S16',
    model: 'fb-s16-503-persistent',
    title: 'persistent 503: the answering model is reported',
    exceeded: ({ model }) => [model !== 'fb-ok' && `the response names ${model}`],
  },
];

/** Grades one answer. */
function grade(scenario: Scenario, seen: Observed): Result {
  const { isError = false, missed = () => [], exceeded = () => [] } = scenario;
  const fail = (reason: string): Result => ({ grade: 'fail', reason });
  if (seen.totalMs === undefined) return fail('hang');
  const [bound] = [seen.requests.length > MAX_ATTEMPTS && `${seen.requests.length} requests`, ...exceeded(seen)].filter(isText);
  if (bound !== undefined) return fail(bound);
  if (seen.error !== undefined && !isError) return { grade: 'safe', reason: seen.error.slice(0, 120) };
  if (isError) return seen.error === undefined ? fail('no error') : gradePoints(missed(seen));
  if (!seen.isFinished) return fail('cut without an error');
  if (seen.text !== ANSWER) return fail('a wrong response shown as success');
  return gradePoints([...missed(seen), !seen.hasUsage && 'no usage']);
}

function gradePoints(points: (string | false)[]): Result {
  const reason = points.filter(isText).join(', ');
  return { grade: reason === '' ? 'pass' : 'partial', reason };
}

const isText = (value: string | false): value is string => value !== false;

export interface Bench {
  /** Of the gateway. */
  url: string;
  wall: Wall;
  clock: Clock;
}

/** Runs one fault and grades it. Faults of different models may run at the same time. */
export async function runScenario(scenario: Scenario, bench: Bench): Promise<Result> {
  return scenario.id === 'S15' ? runFlap(scenario, bench) : grade(scenario, await ask(scenario, bench));
}

/** A request every second, from the start of the outage until 30 s after it. */
async function runFlap(scenario: Scenario, bench: Bench): Promise<Result> {
  const { wall, clock } = bench;
  let usedAt: number | undefined;
  let worst: Result = { grade: 'pass', reason: '' };
  while (wall.age < WALL_TIMES.down + 30_000) {
    const seen = await ask(scenario, bench);
    const result = grade(scenario, seen);
    if (GRADES.indexOf(result.grade) > GRADES.indexOf(worst.grade)) worst = result;
    if (wall.age >= WALL_TIMES.down && seen.requests.at(-1)?.model === scenario.model) usedAt ??= wall.age - WALL_TIMES.down;
    await sleep(clock, 1000);
  }
  if (worst.grade !== 'pass') return worst;
  return usedAt === undefined
    ? { grade: 'fail', reason: 'not used within 30 s of its return' }
    : { grade: 'pass', reason: `used ${(usedAt / 1000).toFixed(1)} s after its return` };
}

let asked = 0;

/** Asks for the model of a scenario as a client of OpenAI Chat. The wall finds its requests again by a mark in the text. */
export function ask({ model }: Pick<Scenario, 'model'>, { url, wall, clock }: Bench): Promise<Observed> {
  const mark = `ask-${++asked}`;
  const startedAt = clock.now();
  const body = JSON.stringify({
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: `What is a sluice? (${mark})` }],
  });
  const reader = new AnswerReader(() => clock.now() - startedAt);
  return new Promise((resolve) => {
    const end = (totalMs: number | undefined): void => {
      limit.close();
      resolve({ ...reader.observed, totalMs, requests: wall.requests.filter((one) => one.mark === mark) });
      request.destroy();
    };
    const limit = clock.setTimer(() => end(undefined), LIMIT_MS);
    const request = startRequest(`${url}/v1/chat/completions`, { method: 'POST', agent: false });
    const onEnd = (): void => end(clock.now() - startedAt);
    request.setHeader('content-type', 'application/json');
    request.on('response', (response) => reader.read(response, onEnd));
    request.on('error', onEnd);
    request.end(body);
  });
}

/** Reads a stream leniently, as most clients do: chunks that are not JSON are skipped. */
class AnswerReader {
  readonly #elapsed: () => number;
  readonly observed: Omit<Observed, 'totalMs' | 'requests'> = {
    status: 0,
    text: '',
    isFinished: false,
    error: undefined,
    hasUsage: false,
    model: undefined,
    firstMs: undefined,
  };
  #rest = '';
  #hasReason = false;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  read(response: IncomingMessage, onEnd: () => void): void {
    this.observed.status = response.statusCode ?? 0;
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      if (this.observed.status >= 400) this.#readError(this.#rest);
      onEnd();
    };
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#push(text));
    for (const event of ['end', 'error', 'close']) response.on(event, end);
  }

  #push(text: string): void {
    this.#rest += text;
    if (this.observed.status >= 400) return;
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data:')) this.#readData(line.slice('data:'.length).trim());
  }

  #readData(data: string): void {
    if (data === '[DONE]') this.observed.isFinished = this.#hasReason;
    else if (data.includes('"error"')) this.#readError(data);
    else this.#readChunk(data);
  }

  #readChunk(data: string): void {
    const { choices, usage, model } = parse(data) ?? {};
    const { observed } = this;
    observed.model ??= model;
    if (usage) observed.hasUsage = true;
    const [choice] = choices ?? [];
    if (choice?.finish_reason) this.#hasReason = true;
    const text = choice?.delta?.content ?? '';
    if (text !== '') observed.firstMs ??= this.#elapsed();
    observed.text += text;
  }

  #readError(text: string): void {
    this.observed.error ??= parse(text)?.error?.message ?? `status ${this.observed.status}`;
  }
}

interface Chunk {
  model?: string;
  usage?: object | null;
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  error?: { message?: string };
}

function parse(text: string): Chunk | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
