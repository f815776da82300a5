import {
  type AssembledError,
  type CanonicalError,
  type Codec,
  convertError,
  convertRequest,
  type Examination,
  Examiner,
  openaiChatCodec,
  type Provider,
  type ProviderProfile,
} from '@sluice/core';
import { KeyHider } from './hide.ts';
import { type Received, send } from './send.ts';

/** Who is asked. */
export interface Patient {
  codec: Codec;
  base_url: string;
  path?: string;
  model: string;
  key: string | undefined;
  /** What was learned of it so far. */
  profile: Partial<ProviderProfile>;
}

/** What came: an answer that was examined, a refusal, or nothing. */
export type Answer =
  | { kind: 'answer'; status: number; contentType: string; examination: Examination }
  | { kind: 'refusal'; status: number; error: CanonicalError; body: unknown }
  | { kind: 'nothing'; reason: string };

/** Asks one question, given as a chat body, and reads the answer. The key is in nothing that comes back. */
export async function ask(question: object, patient: Patient): Promise<Answer> {
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

export const describeRefusal = ({ code, message }: CanonicalError, status: number): AssembledError => ({
  code: status,
  message,
  canonical: code,
});
