import {
  type Assembled,
  type AssembledError,
  type CanonicalError,
  CODECS,
  type Codec,
  convertError,
  convertRequest,
  type Examination,
  Examiner,
  openaiChatCodec,
  type ProtocolId,
  type Provider,
  type ProviderProfile,
} from '@sluice/core';
import { request } from 'undici';
import { listForms } from '../config/secrets.ts';
import { completeBaseUrl } from '../providers/base-url.ts';
import type { Checkup, Outcome } from './checkup.ts';

interface Adaptation {
  protocols: readonly ProtocolId[];
  /** What a refusal says. */
  when: RegExp;
  learn: Partial<ProviderProfile>;
}

/** What a refusal teaches of a provider: the field it names, and how it is avoided. The first that fits and is not known yet counts. */
const ADAPTATIONS: readonly Adaptation[] = [
  {
    protocols: ['openai-chat'],
    when: /max_completion_tokens.{0,200}instead|use .?max_completion_tokens/i,
    learn: { max_tokens_field: 'max_completion_tokens' },
  },
  { protocols: ['openai-chat'], when: /max_completion_tokens/i, learn: { max_tokens_field: 'max_tokens' } },
  { protocols: ['openai-chat'], when: /max_tokens/i, learn: { max_tokens_field: 'max_completion_tokens' } },
  { protocols: ['openai-chat'], when: /stream_options|include_usage/i, learn: { stream_usage: false } },
  { protocols: ['openai-chat', 'openai-responses'], when: /temperature/i, learn: { supports_sampling: false } },
  { protocols: ['anthropic-messages'], when: /temperature|top_p/i, learn: { rejects_sampling: true } },
  { protocols: ['anthropic-messages'], when: /adaptive/i, learn: { thinking_mode: 'budget' } },
  { protocols: ['anthropic-messages'], when: /budget_tokens|thinking/i, learn: { thinking_mode: 'adaptive' } },
];

/** What to try next after a refusal; undefined when it teaches nothing. */
export function adaptTo(
  { message, param }: CanonicalError,
  protocol: ProtocolId,
  known: Partial<ProviderProfile>,
): Partial<ProviderProfile> | undefined {
  const words = `${param ?? ''} ${message}`;
  const isNew = (learn: Partial<ProviderProfile>): boolean => Object.keys(learn).every((field) => !Object.hasOwn(known, field));
  return ADAPTATIONS.find(({ protocols, when, learn }) => protocols.includes(protocol) && when.test(words) && isNew(learn))
    ?.learn;
}

/** Puts stars in the place of a key that the other side repeats, in whatever form. */
class KeyHider {
  readonly #pattern: RegExp | undefined;

  constructor(key: string | undefined) {
    if (key === undefined || key === '') return;
    // The body is searched byte by byte, as Latin-1.
    const forms = [key, Buffer.from(key).toString('latin1')].flatMap((text) => [
      spelledIn(text),
      ...listForms(text).map(literal),
    ]);
    // The longest first, or a form that begins another would leave its tail.
    const alternatives = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
    this.#pattern = new RegExp(alternatives.join('|'), 'g');
  }

  /** Star by star: places in the body stay what they are. */
  bytes(chunks: readonly Uint8Array[]): Uint8Array[] {
    if (!this.#pattern) return [...chunks];
    const body = Buffer.concat(chunks).toString('latin1');
    return [Buffer.from(this.text(body), 'latin1')];
  }

  text(text: string): string {
    return this.#pattern ? text.replace(this.#pattern, (found) => '*'.repeat(found.length)) : text;
  }

  /** Every text in a value: what was escaped in the body is not any more once it is parsed. */
  value<T>(value: T): T {
    return this.#pattern ? (this.#walk(value) as T) : value; // the same shape, with other texts
  }

  #walk(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.#walk(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [this.text(name), this.#walk(one)]));
  }
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** A text of which each character may be written as it is, with a backslash, as \uXXXX or as %XX. */
const spelledIn = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => {
    const code = text.charCodeAt(at);
    const unicode = `\\\\u${anyCase(code.toString(16).padStart(4, '0'))}`;
    const percent = code < 256 ? `|%${anyCase(code.toString(16).padStart(2, '0'))}` : '';
    return `(?:\\\\?${literal(text.charAt(at))}|${unicode}${percent})`;
  }).join('');

const anyCase = (hex: string): string => hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);

/** Longer than any small answer takes, also of a model that thinks and of a server that loads it first. */
const PATIENCE_MS = 180_000;

const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

interface Sent {
  url: string;
  headers: Record<string, string>;
  body: string;
}

interface Received {
  status: number;
  contentType: string;
  chunks: Uint8Array[];
  /** The connection broke before the end. */
  broken?: string;
}

/** Sends one question. No redirect is followed: the key belongs to this address and to no other. */
async function send({ url, headers, body }: Sent): Promise<Received> {
  const {
    statusCode,
    headers: answered,
    body: stream,
  } = await request(url, {
    method: 'POST',
    headers: { ...headers, 'accept-encoding': 'identity' },
    body,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const chunks: Uint8Array[] = [];
  const received = { status: statusCode, contentType: String(answered['content-type'] ?? ''), chunks };
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_RESPONSE_BYTES) return { ...received, broken: 'the answer is longer than 32 MB' };
    }
    return received;
  } catch (error) {
    return { ...received, broken: error instanceof Error ? error.message : String(error) };
  }
}

/** Who is asked. */
interface Patient {
  codec: Codec;
  base_url: string;
  path?: string;
  model: string;
  key: string | undefined;
  /** What was learned of it so far. */
  profile: Partial<ProviderProfile>;
}

/** What came: an answer that was examined, a refusal, or nothing. */
type Answer =
  | { kind: 'answer'; status: number; contentType: string; examination: Examination }
  | { kind: 'refusal'; status: number; error: CanonicalError; body: unknown }
  | { kind: 'nothing'; reason: string };

/** Asks one question, given as a chat body, and reads the answer. The key is in nothing that comes back. */
async function ask(question: object, patient: Patient): Promise<Answer> {
  const { codec, model, key, profile, base_url, path } = patient;
  const provider: Provider = {
    id: 'doctor',
    protocol: codec.id,
    base_url,
    ...(key !== undefined && { api_key: key }),
    ...(path !== undefined && { adapter_config: { path } }),
  };
  const body = { ...question, model, stream: true };
  const wire = convertRequest(body, { from: openaiChatCodec, to: codec, model, stream: true, provider, profile });
  const sent = {
    url: codec.buildUrl('CHAT', { provider, model, stream: true }),
    headers: { ...wire.headers, ...codec.buildHeaders(provider, true) },
    body: JSON.stringify(wire.body),
  };
  const hider = new KeyHider(key);
  const received = await send(sent).catch((error: unknown) => reasonOf(error));
  if (typeof received === 'string') return { kind: 'nothing', reason: hider.text(received) };
  const hidden = { ...received, chunks: hider.bytes(received.chunks) };
  return hider.value(received.status >= 300 ? refusalOf(hidden, patient) : answerOf(hidden, patient));
}

function answerOf({ status, contentType, chunks, broken }: Received, { codec }: Patient): Answer {
  const examiner = new Examiner({ protocol: codec, strict: true });
  for (const chunk of chunks) examiner.push(chunk);
  return { kind: 'answer', status, contentType, examination: broken === undefined ? examiner.end() : examiner.fail(broken) };
}

function refusalOf({ status, chunks }: Received, { codec }: Patient): Answer {
  const body = parsed(Buffer.concat(chunks).toString());
  return { kind: 'refusal', status, body, error: convertError({ status, headers: {}, body }, { from: codec, to: codec }).error };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** An error of undici has its cause inside. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  const message =
    error instanceof AggregateError ? (error.errors as Error[]).map((one) => one.message).join(', ') : error.message;
  return code !== '' && message.startsWith(code.slice(0, -2)) ? message : `${code}${message}`;
}

const describeRefusal = ({ code, message }: CanonicalError, status: number): AssembledError => ({
  code: status,
  message,
  canonical: code,
});

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

const inner = (body: unknown): Record<string, unknown> => {
  const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined;
  return typeof error === 'object' && error !== null ? { ...error } : {};
};

/** What the official SDKs read of an error. */
const FORMS = {
  'openai-chat': (body) => isText(inner(body)['message']),
  'openai-responses': (body) => isText(inner(body)['message']),
  'anthropic-messages': (body) =>
    typeof body === 'object' && body !== null && 'type' in body && body.type === 'error' && isText(inner(body)['type']),
  gemini: (body) => isText(inner(body)['message']) && isText(inner(body)['status']),
} as const satisfies Record<ProtocolId, (body: unknown) => boolean>;

/** Whether an error is said in the words of a protocol. */
const isErrorForm = (protocol: ProtocolId, body: unknown): boolean => FORMS[protocol](body);

/** A small question, as an OpenAI Chat client would ask it; every other protocol gets it converted. */
interface Probe {
  title: string;
  body: Readonly<Record<string, unknown>>;
  /** Whether the answer has what was asked for. */
  isShown(answer: Assembled): boolean;
  /** Said when it has not. */
  missing: string;
}

const userMessage = (content: string): object[] => [{ role: 'user', content }];

const tool = (name: string, description: string, properties: Record<string, object>): object => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required: Object.keys(properties) } },
});

const WEATHER = tool('get_weather', 'The weather of a city', { city: { type: 'string' } });

const TIME = tool('get_time', 'The time in a city', { city: { type: 'string' } });

const PING = tool('ping', 'Checks that tools work; takes no arguments', {});

/** Enough for a model that thinks first, and little for any other. */
const ROOM = 1024;

const PROBES = {
  text: {
    title: 'plain text',
    body: { messages: userMessage('Say "hello" and nothing else.'), max_tokens: ROOM, temperature: 0 },
    isShown: ({ text }) => text !== '',
    missing: 'the answer has no text',
  },
  tool: {
    title: 'one tool',
    body: {
      messages: userMessage('What is the weather in Paris? Use the tool.'),
      tools: [WEATHER],
      tool_choice: 'required',
      max_tokens: ROOM,
    },
    isShown: ({ tool_calls: calls }) => calls.length > 0,
    missing: 'no tool was called',
  },
  'parallel-tools': {
    title: 'two tools at once',
    body: {
      messages: userMessage('What are the weather and the time in Paris? Call both tools at once, in one turn.'),
      tools: [WEATHER, TIME],
      max_tokens: ROOM,
    },
    isShown: ({ tool_calls: calls }) => calls.length > 1,
    missing: 'fewer than two calls came in one answer',
  },
  'tool-without-arguments': {
    title: 'a tool without arguments',
    body: { messages: userMessage('Call the tool ping.'), tools: [PING], tool_choice: 'required', max_tokens: ROOM },
    isShown: ({ tool_calls: calls }) => calls.length > 0,
    missing: 'no tool was called',
  },
  reasoning: {
    title: 'thinking first',
    body: { messages: userMessage('How many of the numbers 1 to 30 are prime?'), reasoning_effort: 'low', max_tokens: 4 * ROOM },
    isShown: ({ reasoning, usage }) => reasoning !== '' || (usage?.reasoning_tokens ?? 0) > 0,
    missing: 'no reasoning came, neither as text nor in the usage',
  },
  usage: {
    title: 'token counts',
    body: { messages: userMessage('Say "hello" and nothing else.'), max_tokens: ROOM, stream_options: { include_usage: true } },
    isShown: ({ usage }) => usage !== null,
    missing: 'the stream has no usage',
  },
} as const satisfies Record<string, Probe>;

type ProbeName = keyof typeof PROBES;

/** A model that nobody has: what does an error look like? */
const ERROR_PROBE = { title: 'an error', model: 'sluice-doctor-no-such-model' } as const;

export interface LiveOptions {
  url: string;
  model: string;
  /** Undefined: tried one after the other. */
  protocol: ProtocolId | undefined;
  key: string | undefined;
}

/** What the end of an address says of the protocol. */
const ENDPOINTS: readonly (readonly [end: RegExp, protocol: ProtocolId])[] = [
  [/\/chat\/completions\/?$/, 'openai-chat'],
  [/\/responses\/?$/, 'openai-responses'],
  [/\/messages\/?$/, 'anthropic-messages'],
  [/\/models\/[^/]+:(?:streamG|g)enerateContent\/?$/, 'gemini'],
];

/** People paste the whole address of an endpoint: it is cut before it, and tells the protocol. */
function readAddress(text: string): { url: string; protocol?: ProtocolId } {
  const url = new URL(text);
  const found = ENDPOINTS.find(([end]) => end.test(url.pathname));
  if (!found) return { url: url.origin + url.pathname };
  return { url: url.origin + url.pathname.replace(found[0], ''), protocol: found[1] };
}

/** Asks a server every question, one after the other, and hands out each answer as it comes; gives back what was learned of the provider. */
export async function* probeLive(options: LiveOptions): AsyncGenerator<Checkup, Partial<ProviderProfile>, undefined> {
  const address = readAddress(options.url);
  const protocol = options.protocol ?? address.protocol;
  const codecs: readonly Codec[] = protocol === undefined ? Object.values(CODECS) : [CODECS[protocol]];
  const patients = codecs.map((codec) => patientOf(codec, address.url, options));
  const { patient, first } = await firstToAnswer(patients);
  yield first;
  if (first.probe?.outcome === 'refused' || first.probe?.outcome === 'failed') return patient.profile;
  for (const name of Object.keys(PROBES) as ProbeName[]) if (name !== 'text') yield await probe(name, PROBES[name], patient);
  yield await probeError(patient);
  return patient.profile;
}

const patientOf = (codec: Codec, url: string, { model, key }: LiveOptions): Patient => ({
  codec,
  ...completeBaseUrl(url, { protocol: codec.id }),
  model,
  key,
  profile: {},
});

/** The protocol that the server speaks: the first in which it answers the simplest question. */
async function firstToAnswer(patients: readonly Patient[]): Promise<{ patient: Patient; first: Checkup }> {
  const tried: { patient: Patient; first: Checkup }[] = [];
  for (const patient of patients) {
    const first = await probe('text', PROBES.text, patient);
    if (first.probe?.outcome === 'shown') return { patient, first };
    tried.push({ patient, first });
  }
  // A server that nobody reaches is told in the words of the first attempt; one that answers, in the words of the best.
  const [one] = tried.toSorted((a, b) => rankOf(a.first) - rankOf(b.first));
  if (!one) throw new TypeError('no protocol was tried');
  return one;
}

const RANKS = { shown: 0, 'not-shown': 1, refused: 2, failed: 3 } as const;

RANKS satisfies Record<Outcome, number>;

const rankOf = ({ probe, error }: Checkup): number =>
  // "Not found" says that the endpoint is another one; any other refusal, that it is this one.
  (probe ? RANKS[probe.outcome] : 9) + (error?.canonical === 'NOT_FOUND' ? 0.5 : 0);

/** A refusal that names a field is answered once by doing without it; what was done is part of the profile then. */
async function probe(name: ProbeName, { title, body, isShown, missing }: Probe, patient: Patient): Promise<Checkup> {
  // The counts are asked for in a question of their own, so that a refusal of the first has another reason.
  const isCounted = name !== 'text';
  const question = { ...patient, profile: { ...(isCounted ? {} : { stream_usage: false }), ...patient.profile } };
  let answer = await ask(body, question);
  for (let tries = 0; answer.kind === 'refusal' && tries < 3; tries++) {
    const learned = adaptTo(answer.error, patient.codec.id, patient.profile);
    if (!learned) break;
    const next = await ask(body, { ...question, profile: { ...question.profile, ...learned } });
    if (next.kind === 'refusal' && next.error.message === answer.error.message) break;
    Object.assign(patient.profile, learned);
    answer = next;
  }
  return checkupOf(name, title, answer, (examination) => (isShown(examination.message) ? undefined : missing));
}

type Judge = (examination: Extract<Answer, { kind: 'answer' }>['examination']) => string | undefined;

function checkupOf(name: string, title: string, answer: Answer, judge: Judge): Checkup {
  if (answer.kind === 'nothing')
    return {
      name,
      error: { code: 'no_answer', message: answer.reason, canonical: 'UPSTREAM_ERROR' },
      probe: { title, status: null, outcome: 'failed', note: '' },
    };
  const { status } = answer;
  if (answer.kind === 'refusal')
    return { name, error: describeRefusal(answer.error, status), probe: { title, status, outcome: 'refused', note: '' } };
  const { examination, contentType } = answer;
  const lack = examination.message.error ? undefined : judge(examination);
  const outcome = examination.message.error ? 'failed' : lack === undefined ? 'shown' : 'not-shown';
  const note = [lack, typeNote(contentType)].filter((part) => part !== undefined).join(' · ');
  return { name, examination, error: examination.message.error, probe: { title, status, outcome, note } };
}

/** Streams have a type of their own; clients that check it refuse others. */
const typeNote = (contentType: string): string | undefined =>
  /^text\/event-stream\b/i.test(contentType) ? undefined : `content-type is ${contentType === '' ? 'missing' : contentType}`;

/** What an error looks like: its status, and whether its body is in the words of the protocol. */
async function probeError(patient: Patient): Promise<Checkup> {
  const { title, model } = ERROR_PROBE;
  const answer = await ask(PROBES.text.body, { ...patient, model });
  if (answer.kind !== 'refusal') return checkupOf('error', title, answer, () => 'a model that does not exist was answered for');
  const { status, body, error } = answer;
  const isRight = isErrorForm(patient.codec.id, body);
  const note = isRight
    ? `${error.code}: ${error.message}`
    : `the error is not in the form of ${patient.codec.id}: ${error.message}`;
  return { name: 'error', error: null, probe: { title, status, outcome: isRight ? 'shown' : 'not-shown', note } };
}
