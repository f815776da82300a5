/** The same stream through the readers of others and through ours. */
import { isDeepStrictEqual } from 'node:util';
import { type AccumulatedMessage, type ProtocolId, RULES, type RuleId } from '@sluice/core';
import { READERS as AI_READERS } from '../../packages/ai-sdk/test/readers.ts';
import { SDK_BREAKAGE } from '../../packages/core/src/doctor/sdk-breakage.ts';
import { CODECS } from '../../packages/core/src/protocols/index.ts';
import { assemble } from '../../packages/lab/src/prove/wire.ts';
import { examine } from '../doctor/examine.ts';
import { anthropicHeard, chatHeard, geminiHeard, type Heard, responsesHeard, SDK_READERS } from '../doctor/sdk-readers.ts';
import { effectOf } from '../doctor/violating-streams.ts';
import { serve } from '../frameworks.ts';
import { bytesOf } from '../run.ts';
import * as anthropic from './anthropic.ts';
import * as chat from './chat.ts';
import * as gemini from './gemini.ts';
import { NEWEST } from './newest.ts';
import * as responses from './responses.ts';

interface OtherReader {
  client: string;
  read(raw: string, own: AccumulatedMessage): Promise<Heard>;
}

const official = (protocol: ProtocolId): OtherReader[] =>
  SDK_READERS[protocol].map(({ client, read }) => ({ client, read: (raw) => read([raw]) }));

/** Versions that the pages of the rules do not show. */
const others = (protocol: ProtocolId): OtherReader[] => [
  ...(protocol === 'anthropic-messages'
    ? anthropic.SDKS.slice(1).map(({ name, stream }) => ({
        client: name,
        read: async (raw: string) => anthropicHeard(await stream(raw)),
      }))
    : []),
  ...(NEWEST ? [createNewest(NEWEST)[protocol]] : []),
];

/** The newest version of each SDK. */
function createNewest({ openai, anthropic: { name, SDK }, google }: NonNullable<typeof NEWEST>): Record<ProtocolId, OtherReader> {
  const { stream: readChat } = chat.createReaders(openai.OpenAI);
  const { stream: readResponses } = responses.createReaders(openai.OpenAI);
  const { stream: readGemini } = gemini.createSdk(google.name, google.SDK);
  return {
    'openai-chat': { client: openai.name, read: async (raw) => chatHeard(await readChat(raw)) },
    'openai-responses': { client: openai.name, read: async (raw) => responsesHeard(await readResponses(raw)) },
    'anthropic-messages': { client: name, read: async (raw) => anthropicHeard(await anthropic.readStream(raw, SDK)) },
    gemini: { client: google.name, read: async (raw) => geminiHeard(await readGemini([raw])) },
  };
}

const aiSdk = (protocol: ProtocolId): OtherReader[] =>
  AI_READERS.filter((reader) => reader.protocol === protocol).map(({ client, read }) => ({
    client: `AI SDK, ${client}`,
    read: async (raw, own) => {
      const { text, calls } = await read(serve([bytesOf(raw)]), own);
      return { text, calls };
    },
  }));

const readersOf = (protocol: ProtocolId): OtherReader[] => [...official(protocol), ...others(protocol), ...aiSdk(protocol)];

/** The official SDKs of every protocol, and the AI SDK. */
export const OTHER_READERS: Record<ProtocolId, OtherReader[]> = {
  'openai-chat': readersOf('openai-chat'),
  'anthropic-messages': readersOf('anthropic-messages'),
  'openai-responses': readersOf('openai-responses'),
  gemini: readersOf('gemini'),
};

/** What a reader has of a stream: undefined when it fails. */
type Result = Heard | undefined;

/** A stream of which all others have one result, and we another, without a rule or an error that says why. */
export interface Difference {
  stream: string;
  raw: string;
  /** What we name, none of which is known to have this effect. */
  rules: RuleId[];
  theirs: Result;
  ours: Heard;
}

export interface Comparison {
  /** How many of the others could read it. */
  readers: number;
  /** Whether these have one result. */
  isAgreed: boolean;
  difference?: Difference;
}

interface Exception {
  why: string;
  is(difference: Difference): boolean;
}

/** Differences in which nobody is wrong. */
export const EXPECTED: Record<string, Exception> = {
  'custom tools': {
    why: 'OpenAI streams calls of custom tools, which the stream helpers for chat cannot read',
    is: ({ raw, theirs }) => theirs === undefined && /"type":\s*"custom"/.test(raw),
  },
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text || '{}');
  } catch {
    return text;
  }
};

/** Google's readers hear the calls that Google ran itself, too. */
function hearOwn(protocol: ProtocolId, { text, message, tool_calls: calls }: AccumulatedMessage): Heard {
  if (protocol !== 'gemini') return { text, calls: calls.map(({ name, arguments: args }) => ({ name, input: parse(args) })) };
  const blocks = message.content.flatMap((block) =>
    block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [],
  );
  return { text, calls: blocks };
}

/** The rules that we name in a stream. */
const rulesOf = (protocol: ProtocolId, bytes: Uint8Array): RuleId[] => [
  ...new Set(examine([bytes], { protocol: CODECS[protocol] }).findings.map(({ rule }) => rule)),
];

/**
 * Whether a rule makes official readers fail, or read what these read. Where they fail on one stream, they lose something of another. No
 * stream violates some rules alone: their severity says it.
 */
function explains(rule: RuleId, theirs: Result, own: AccumulatedMessage, ours: Heard): boolean {
  const measured = SDK_BREAKAGE[rule];
  if (!measured) return RULES[rule].severity === 'error';
  const isLess = !theirs || (theirs.text.length <= ours.text.length && theirs.calls.length <= ours.calls.length);
  const seen = theirs && effectOf(theirs, own);
  return Object.values(measured).some((effect) => (effect.startsWith('throws') ? isLess : isAlike(effect, seen)));
}

/** Whether two effects concern the same part, or both lose something: one violation splits a call here and renames it there. */
const isAlike = (measured: string, seen: string | undefined): boolean =>
  seen !== undefined && (concernsText(measured) === concernsText(seen) || (isLoss(measured) && isLoss(seen)));

const concernsText = (effect: string): boolean => /\btext\b/.test(effect);
const isLoss = (effect: string): boolean => effect.startsWith('loses');

/** Without prototypes, `undefined` and half characters, which are none to us. */
const plain = ({ text, calls }: Heard): unknown => JSON.parse(JSON.stringify({ text: text.toWellFormed(), calls }));

const isSame = (one: Heard, other: Heard): boolean => isDeepStrictEqual(plain(one), plain(other));

/** Reads a stream with every other reader of its protocol, and with ours. */
export async function compareReaders(
  protocol: ProtocolId,
  stream: string,
  raw: string,
  readOwn: typeof assemble = assemble,
): Promise<Comparison> {
  const bytes = bytesOf(raw);
  const own = readOwn(protocol, [bytes]);
  const heard: Heard[] = [];
  // One after the other: readers of Google replace the global `fetch`.
  for (const { read } of OTHER_READERS[protocol]) {
    const result = await read(raw, own).catch(() => undefined);
    if (result) heard.push(result);
  }
  const [theirs] = heard;
  const readers = heard.length;
  if (readers === 1 || (theirs && !heard.every((one) => isSame(one, theirs)))) return { readers, isAgreed: false };
  const ours = hearOwn(protocol, own);
  const isEqual = theirs !== undefined && isSame(theirs, ours);
  if (isEqual || own.error !== null || !own.complete) return { readers, isAgreed: true };
  const rules = rulesOf(protocol, bytes);
  if (rules.some((rule) => explains(rule, theirs, own, ours))) return { readers, isAgreed: true };
  return { readers, isAgreed: true, difference: { stream, raw, rules, theirs, ours } };
}

const shorten = (result: Result): string => (result ? JSON.stringify(result).slice(0, 160) : 'nothing');

export const describeDifference = ({ stream, rules, theirs, ours }: Difference): string =>
  `${stream} [${rules.join()}]: all others read ${shorten(theirs)}, Sluice reads ${shorten(ours)}`;
