/** Probes a live server with small requests and examines its responses. */

import {
  type AccumulatedError,
  type AccumulatedMessage,
  type CanonicalError,
  type Codec,
  convertError,
  convertRequest,
  type Examination,
  Examiner,
  type ProtocolId,
  type Provider,
  type ProviderProfile,
} from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { openaiChatCodec } from '@sluice/core/openai-chat/codec';
import { Agent, buildConnector, request } from 'undici';
import type { Network } from '../config/network.ts';
import { listForms } from '../config/secrets.ts';
import { explainConnectError } from '../http/connect-errors.ts';
import { completeBaseUrl } from '../providers/base-url.ts';
import { NO_ENDPOINT, NO_RESPONSE } from '../terminal/errors.ts';
import { createTunnelConnector, ProxyError } from '../upstream/tunnel.ts';
import type { Checkup, Outcome } from './checkup.ts';

/** Sends every probe, one after the other, and yields each checkup; returns what was learned of the provider. */
export async function* probeLive(options: LiveOptions): AsyncGenerator<Checkup, Partial<ProviderProfile>, undefined> {
  const address = readAddress(options.url);
  const protocol = options.protocol ?? address.protocol;
  const codecs: readonly Codec[] = protocol === undefined ? Object.values(CODECS) : [CODECS[protocol]];
  const agent = createAgent(options.network);
  try {
    return yield* sendProbes(codecs.map((codec) => createTarget(codec, address.url, agent, options)));
  } finally {
    await agent.destroy();
  }
}

const createAgent = ({ proxy }: Network): Agent => {
  const connect = buildConnector({ timeout: CONNECT_MS });
  return new Agent({ connect: proxy ? createTunnelConnector(proxy, CONNECT_MS, connect) : connect });
};

const CONNECT_MS = 10_000;

async function* sendProbes(targets: readonly Target[]): AsyncGenerator<Checkup, Partial<ProviderProfile>, undefined> {
  const { target, first } = await findProtocol(targets);
  yield first;
  if (first.probe?.outcome === 'refused' || first.probe?.outcome === 'failed') return target.profile;
  for (const name of Object.keys(PROBES) as ProbeName[]) if (name !== 'text') yield await probe(name, PROBES[name], target);
  yield await probeError(target);
  return target.profile;
}

/** The server to probe. */
export interface LiveOptions {
  url: string;
  model: string;
  /** Undefined: all protocols are tried. */
  protocol: ProtocolId | undefined;
  key: string | undefined;
  /** How the server is reached. */
  network: Network;
}

/** Cuts a pasted endpoint off the address and derives the protocol from it. */
function readAddress(text: string): { url: string; protocol?: ProtocolId } {
  const url = new URL(text);
  const found = ENDPOINT_PATHS.find(([end]) => end.test(url.pathname));
  if (!found) return { url: url.origin + url.pathname };
  return { url: url.origin + url.pathname.replace(found[0], ''), protocol: found[1] };
}

/** The protocol that the end of an address implies. */
const ENDPOINT_PATHS: readonly (readonly [end: RegExp, protocol: ProtocolId])[] = [
  [/\/chat\/completions\/?$/, 'openai-chat'],
  [/\/responses\/?$/, 'openai-responses'],
  [/\/messages\/?$/, 'anthropic-messages'],
  [/\/models\/[^/]+:(?:streamG|g)enerateContent\/?$/, 'gemini'],
];

const createTarget = (codec: Codec, url: string, agent: Agent, { model, key }: LiveOptions): Target => ({
  codec,
  agent,
  ...completeBaseUrl(url, { protocol: codec.id }),
  model,
  key,
  profile: {},
});

/** The first protocol in which the server responds to the simplest probe. */
async function findProtocol(targets: readonly Target[]): Promise<{ target: Target; first: Checkup }> {
  const tried: { target: Target; first: Checkup }[] = [];
  for (const target of targets) {
    const first = await probe('text', PROBES.text, target);
    // Without a response, the other protocols would wait for the same address.
    if (first.probe?.outcome === 'shown' || first.probe?.status === null) return { target, first };
    tried.push({ target, first });
  }
  if (tried.length > 1 && tried.every(({ first }) => first.error?.code === NO_ENDPOINT)) return reportNoEndpoint(tried);
  // Reports the attempt with the best outcome; the sort is stable, so the first one if the server is unreachable.
  const [one] = tried.toSorted((a, b) => rankCheckup(a.first) - rankCheckup(b.first));
  if (!one) throw new TypeError('no protocol was tried');
  return one;
}

/** No protocol has an endpoint here: one report instead of the first of four. */
function reportNoEndpoint(tried: readonly { target: Target; first: Checkup }[]): { target: Target; first: Checkup } {
  const [{ target, first }] = tried as [(typeof tried)[number]]; // every protocol is tried, and there are four
  const paths = tried.map((one) => new URL(buildEndpoint(one.target)).pathname);
  const message = `${new URL(target.base_url).host} has none of POST ${paths.join(', ')}; correct the path of --url: most servers need /v1`;
  return { target, first: { ...first, ...(first.error && { error: { ...first.error, message } }) } };
}

const RANKS = { shown: 0, 'not-shown': 1, refused: 2, failed: 3 } as const;

RANKS satisfies Record<Outcome, number>;

const rankCheckup = ({ probe, error }: Checkup): number =>
  // "Not found" means that the endpoint does not exist; any other refusal means that it does.
  (probe ? RANKS[probe.outcome] : 9) + (error?.canonical === 'NOT_FOUND' ? 0.5 : 0);

/** Sends one probe. A refusal that names a field is retried without it; what helps becomes part of the profile. */
async function probe(name: ProbeName, { title, body, isShown, missing }: Probe, target: Target): Promise<Checkup> {
  // Usage has its own probe, so that a refusal of the first one has another reason.
  const isCounted = name !== 'text';
  const probed = { ...target, profile: { ...(isCounted ? {} : { stream_usage: false }), ...target.profile } };
  let response = await sendProbe(body, probed);
  for (let tries = 0; response.kind === 'refusal' && tries < 3; tries++) {
    const learned = adaptTo(response.error, target.codec.id, target.profile);
    if (!learned) break;
    const next = await sendProbe(body, { ...probed, profile: { ...probed.profile, ...learned } });
    if (next.kind === 'refusal' && next.error.message === response.error.message) break;
    Object.assign(target.profile, learned);
    response = next;
  }
  return buildCheckup(name, title, explainNoEndpoint(response, target), (examination) =>
    isShown(examination.message) ? undefined : missing,
  );
}

/** A "not found" that is not an error of the protocol is one of the path, not of the model. */
function explainNoEndpoint(response: ProbeResponse, target: Target): ProbeResponse {
  if (response.kind !== 'refusal' || !NOT_SERVED.has(response.status) || isErrorForm(target.codec.id, response.body))
    return response;
  const { pathname, host } = new URL(buildEndpoint(target));
  const message = `${host} has no POST ${pathname} (${response.status}); correct the path of --url, or name another protocol with --protocol`;
  return { ...response, isEndpointMissing: true, error: { ...response.error, message } };
}

/** Statuses of a server without the endpoint. */
const NOT_SERVED: ReadonlySet<number> = new Set([404, 405, 501]);

type Judge = (examination: Extract<ProbeResponse, { kind: 'response' }>['examination']) => string | undefined;

function buildCheckup(name: string, title: string, response: ProbeResponse, judge: Judge): Checkup {
  if (response.kind === 'nothing')
    return {
      name,
      error: { code: NO_RESPONSE, message: response.reason, canonical: 'UPSTREAM_ERROR' },
      probe: { title, status: null, outcome: 'failed', note: '' },
    };
  const { status } = response;
  if (response.kind === 'refusal')
    return { name, error: describeRefusal(response), probe: { title, status, outcome: 'refused', note: '' } };
  const { examination, contentType } = response;
  const lack = examination.message.error ? undefined : judge(examination);
  const outcome = examination.message.error ? 'failed' : lack === undefined ? 'shown' : 'not-shown';
  const note = [lack, noteContentType(contentType)].filter((part) => part !== undefined).join(' · ');
  return { name, examination, error: examination.message.error, probe: { title, status, outcome, note } };
}

/** Clients that check the content type reject streams without this one. */
const noteContentType = (contentType: string): string | undefined =>
  /^text\/event-stream\b/i.test(contentType) ? undefined : `content-type is ${contentType === '' ? 'missing' : contentType}`;

const describeRefusal = ({ error, status, isEndpointMissing }: Refusal): AccumulatedError => ({
  code: isEndpointMissing ? NO_ENDPOINT : status,
  message: error.message,
  canonical: isEndpointMissing ? 'NOT_FOUND' : error.code,
});

/** Probes for an error: its status, and whether its body has the form of the protocol. */
async function probeError(target: Target): Promise<Checkup> {
  const { title, model } = ERROR_PROBE;
  const response = await sendProbe(PROBES.text.body, { ...target, model });
  if (response.kind !== 'refusal')
    return buildCheckup('error', title, response, () => 'the server responded for a model that does not exist');
  const { status, body, error } = response;
  const isRight = isErrorForm(target.codec.id, body);
  const note = isRight
    ? `${error.code}: ${error.message}`
    : `the error is not in the form of ${target.codec.id}: ${error.message}`;
  return { name: 'error', error: null, probe: { title, status, outcome: isRight ? 'shown' : 'not-shown', note } };
}

/** A model that does not exist, to see what an error looks like. */
const ERROR_PROBE = { title: 'an error', model: 'sluice-doctor-no-such-model' } as const;

/** Whether an error body has the form of the protocol. */
const isErrorForm = (protocol: ProtocolId, body: unknown): boolean => ERROR_FORMS[protocol](body);

/** The fields of an error that the official SDKs read. */
const ERROR_FORMS = {
  'openai-chat': (body) => isNonEmptyString(readErrorField(body)['message']),
  'openai-responses': (body) => isNonEmptyString(readErrorField(body)['message']),
  'anthropic-messages': (body) =>
    typeof body === 'object' &&
    body !== null &&
    'type' in body &&
    body.type === 'error' &&
    isNonEmptyString(readErrorField(body)['type']),
  gemini: (body) => isNonEmptyString(readErrorField(body)['message']) && isNonEmptyString(readErrorField(body)['status']),
} as const satisfies Record<ProtocolId, (body: unknown) => boolean>;

const isNonEmptyString = (value: unknown): boolean => typeof value === 'string' && value !== '';

const readErrorField = (body: unknown): Record<string, unknown> => {
  const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined;
  return typeof error === 'object' && error !== null ? { ...error } : {};
};

/** The server and model that are probed. */
interface Target {
  codec: Codec;
  agent: Agent;
  base_url: string;
  path?: string;
  model: string;
  key: string | undefined;
  /** What was learned so far. */
  profile: Partial<ProviderProfile>;
}

/** An examined response, a refusal, or nothing. */
type ProbeResponse =
  | { kind: 'response'; status: number; contentType: string; examination: Examination }
  | Refusal
  | { kind: 'nothing'; reason: string };

interface Refusal {
  kind: 'refusal';
  status: number;
  error: CanonicalError;
  body: unknown;
  isEndpointMissing?: true;
}

/** Sends one probe, given as a chat body, and reads the response. The result never contains the key. */
async function sendProbe(chat: object, target: Target): Promise<ProbeResponse> {
  const { codec, model, key, profile, base_url } = target;
  const provider = describeProvider(target);
  const body = { ...chat, model, stream: true };
  const wire = convertRequest(body, { from: openaiChatCodec, to: codec, model, stream: true, provider, profile });
  const sent = {
    url: buildEndpoint(target),
    headers: { ...wire.headers, ...codec.buildHeaders(provider, true) },
    body: JSON.stringify(wire.body),
  };
  const hider = new KeyHider(key);
  const received = await sendRequest(sent, target.agent).catch((error: unknown) => describeSendError(error, base_url));
  if (typeof received === 'string') return { kind: 'nothing', reason: hider.text(received) };
  const hidden = { ...received, chunks: hider.bytes(received.chunks) };
  return hider.value(received.status >= 300 ? readRefusal(hidden, target) : examineResponse(hidden, target));
}

const describeProvider = ({ codec, key, base_url, path }: Target): Provider => ({
  id: 'doctor',
  protocol: codec.id,
  base_url,
  ...(key !== undefined && { api_key: key }),
  ...(path !== undefined && { adapter_config: { path } }),
});

/** Where requests of a protocol are sent. */
const buildEndpoint = (target: Target): string =>
  target.codec.buildUrl('CHAT', { provider: describeProvider(target), model: target.model, stream: true });

function examineResponse({ status, contentType, chunks, broken }: HttpResponse, { codec }: Target): ProbeResponse {
  const examiner = new Examiner({ protocol: codec, strict: true });
  for (const chunk of chunks) examiner.push(chunk);
  return { kind: 'response', status, contentType, examination: broken === undefined ? examiner.end() : examiner.fail(broken) };
}

function readRefusal({ status, chunks }: HttpResponse, { codec }: Target): ProbeResponse {
  const body = parseOrText(Buffer.concat(chunks).toString());
  return { kind: 'refusal', status, body, error: convertError({ status, headers: {}, body }, { from: codec, to: codec }).error };
}

function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Why there is no response, and what to check. */
function describeSendError(error: unknown, url: string): string {
  if (error instanceof ProxyError) return `the proxy ${error.message}; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY`;
  return explainConnectError(error, { place: new URL(url).host, setting: '--url' }) ?? String(error);
}

interface HttpRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

interface HttpResponse {
  status: number;
  contentType: string;
  chunks: Uint8Array[];
  /** Why the connection ended early. */
  broken?: string;
}

/** Sends one request. Redirects are not followed, because the key belongs to this address only. */
async function sendRequest({ url, headers, body }: HttpRequest, dispatcher: Agent): Promise<HttpResponse> {
  const {
    statusCode,
    headers: responseHeaders,
    body: stream,
  } = await request(url, {
    dispatcher,
    method: 'POST',
    headers: { ...headers, 'accept-encoding': 'identity' },
    body,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const chunks: Uint8Array[] = [];
  const received = { status: statusCode, contentType: String(responseHeaders['content-type'] ?? ''), chunks };
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_RESPONSE_BYTES) return { ...received, broken: 'the response is longer than 32 MB' };
    }
    return received;
  } catch (error) {
    return { ...received, broken: error instanceof Error ? error.message : String(error) };
  }
}

/** Enough for a small response, even if the server loads the model first and the model thinks. */
const TIMEOUT_MS = 180_000;

const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

/** Masks the key in whatever form the server repeats it. */
class KeyHider {
  readonly #pattern: RegExp | undefined;

  constructor(key: string | undefined) {
    if (key === undefined || key === '') return;
    // Bodies are searched as Latin-1, so the key is needed in that encoding as well.
    const forms = [key, Buffer.from(key).toString('latin1')].flatMap((text) => [
      buildSpellingPattern(text),
      ...listForms(text).map(escapeRegex),
    ]);
    // Longest first: a form that is a prefix of another would leave its rest unmasked.
    const alternatives = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
    this.#pattern = new RegExp(alternatives.join('|'), 'g');
  }

  /** Masks with equal length, so that offsets in the body do not change. */
  bytes(chunks: readonly Uint8Array[]): Uint8Array[] {
    if (!this.#pattern) return [...chunks];
    const body = Buffer.concat(chunks).toString('latin1');
    return [Buffer.from(this.text(body), 'latin1')];
  }

  text(text: string): string {
    return this.#pattern ? text.replace(this.#pattern, (found) => '*'.repeat(found.length)) : text;
  }

  /** Masks every string of a parsed value, where escapes of the body are resolved. */
  value<T>(value: T): T {
    return this.#pattern ? (this.#walk(value) as T) : value; // same shape, only strings differ
  }

  #walk(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.#walk(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [this.text(name), this.#walk(one)]));
  }
}

const escapeRegex = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** A pattern for a text whose characters may be literal, backslash-escaped, \uXXXX or %XX. */
const buildSpellingPattern = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => {
    const code = text.charCodeAt(at);
    const unicode = `\\\\u${ignoreHexCase(code.toString(16).padStart(4, '0'))}`;
    const percent = code < 256 ? `|%${ignoreHexCase(code.toString(16).padStart(2, '0'))}` : '';
    return `(?:\\\\?${escapeRegex(text.charAt(at))}|${unicode}${percent})`;
  }).join('');

const ignoreHexCase = (hex: string): string => hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);

/** What to try next after a refusal; undefined when it teaches nothing new. */
export function adaptTo(
  { message, param }: CanonicalError,
  protocol: ProtocolId,
  known: Partial<ProviderProfile>,
): Partial<ProviderProfile> | undefined {
  const text = `${param ?? ''} ${message}`;
  const isNew = (learn: Partial<ProviderProfile>): boolean => Object.keys(learn).every((field) => !Object.hasOwn(known, field));
  return ADAPTATIONS.find(({ protocols, when, learn }) => protocols.includes(protocol) && when.test(text) && isNew(learn))?.learn;
}

interface Adaptation {
  protocols: readonly ProtocolId[];
  /** Matches the message of the refusal. */
  when: RegExp;
  learn: Partial<ProviderProfile>;
}

/** What a refusal teaches: the field it names, and how to avoid it. The first match that is not yet known counts. */
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

/** A small request as an OpenAI Chat body; it is converted for other protocols. */
interface Probe {
  title: string;
  body: Readonly<Record<string, unknown>>;
  /** Whether the response has what was requested. */
  isShown(message: AccumulatedMessage): boolean;
  /** The note when it does not. */
  missing: string;
}

type ProbeName = keyof typeof PROBES;

const userMessage = (content: string): object[] => [{ role: 'user', content }];

const createTool = (name: string, description: string, properties: Record<string, object>): object => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required: Object.keys(properties) } },
});

const WEATHER = createTool('get_weather', 'The weather of a city', { city: { type: 'string' } });

const TIME = createTool('get_time', 'The time in a city', { city: { type: 'string' } });

const PING = createTool('ping', 'Checks that tools work; takes no arguments', {});

/** Enough for a model that thinks first, and cheap for any other. */
const MAX_TOKENS = 1024;

const PROBES = {
  text: {
    title: 'plain text',
    body: { messages: userMessage('Say "hello" and nothing else.'), max_tokens: MAX_TOKENS, temperature: 0 },
    isShown: ({ text }) => text !== '',
    missing: 'the response has no text',
  },
  tool: {
    title: 'one tool',
    body: {
      messages: userMessage('What is the weather in Paris? Use the tool.'),
      tools: [WEATHER],
      tool_choice: 'required',
      max_tokens: MAX_TOKENS,
    },
    isShown: ({ tool_calls: calls }) => calls.length > 0,
    missing: 'no tool was called',
  },
  'parallel-tools': {
    title: 'two tools at once',
    body: {
      messages: userMessage('What are the weather and the time in Paris? Call both tools at once, in one turn.'),
      tools: [WEATHER, TIME],
      max_tokens: MAX_TOKENS,
    },
    isShown: ({ tool_calls: calls }) => calls.length > 1,
    missing: 'the response has fewer than two tool calls',
  },
  'tool-without-arguments': {
    title: 'a tool without arguments',
    body: { messages: userMessage('Call the tool ping.'), tools: [PING], tool_choice: 'required', max_tokens: MAX_TOKENS },
    isShown: ({ tool_calls: calls }) => calls.length > 0,
    missing: 'no tool was called',
  },
  reasoning: {
    title: 'thinking first',
    body: {
      messages: userMessage('How many of the numbers 1 to 30 are prime?'),
      reasoning_effort: 'low',
      max_tokens: 4 * MAX_TOKENS,
    },
    isShown: ({ reasoning, usage }) => reasoning !== '' || (usage?.reasoning_tokens ?? 0) > 0,
    missing: 'the response has no reasoning, neither as text nor in the usage',
  },
  usage: {
    title: 'token counts',
    body: {
      messages: userMessage('Say "hello" and nothing else.'),
      max_tokens: MAX_TOKENS,
      stream_options: { include_usage: true },
    },
    isShown: ({ usage }) => usage !== null,
    missing: 'the stream has no usage',
  },
} as const satisfies Record<string, Probe>;
