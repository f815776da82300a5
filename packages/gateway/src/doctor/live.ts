import { CODECS, type Codec, type ProtocolId, type ProviderProfile } from '@sluice/core';
import { completeBaseUrl } from '../providers/base-url.ts';
import { adaptTo } from './adapt.ts';
import { type Answer, ask, describeRefusal, type Patient } from './ask.ts';
import type { Checkup, Outcome } from './checkup.ts';
import { isErrorForm } from './error-form.ts';
import { ERROR_PROBE, PROBES, type Probe, type ProbeName } from './probes.ts';

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
