import { describe, expect, test } from 'vitest';
import { convertResponseToStream, convertStreamToResponse, StreamAccumulator } from '../packages/core/src/engine/index.ts';
import {
  type AccumulatedMessage,
  type Codec,
  CodecError,
  convertResponse,
  createStreamConverter,
  type ResponseOptions,
} from '../packages/core/src/index.ts';
import { codecOf, codecs, sampled } from './convert-sources.ts';
import { type Recording, readCases, readManifest, readRecording } from './corpus.ts';
import { bytesOf, splitEvery } from './run.ts';

interface Row {
  name: string;
  from: Codec;
  to: Codec;
  bytes: Uint8Array;
}

const toAll = (name: string, protocol: string, read: () => Uint8Array): Row[] => {
  const from = codecOf(protocol === 'sse' ? 'openai-chat' : protocol);
  return from ? codecs.map((to) => ({ name: `${name} as ${to.id}`, from, to, bytes: read() })) : [];
};

const recordings = readManifest().filter(({ stream, status }) => stream && status < 400);
const streams = sampled(
  recordings.map((recording) => ({ ...recording, name: recording.file })),
  3,
).flatMap(({ file, protocol }) => toAll(file, protocol, () => readRecording(file)));
const cases = readCases().flatMap(({ id, protocol, raw }) => toAll(id, protocol, () => bytesOf(raw)));

function convert(chunks: Iterable<Uint8Array>, options: ResponseOptions): Uint8Array {
  const converter = createStreamConverter(options);
  const out: Uint8Array[] = [];
  for (const chunk of chunks) out.push(...converter.push(chunk));
  out.push(...converter.end());
  expect([...converter.end()], 'end is idempotent').toEqual([]);
  return Buffer.concat(out);
}

function read(protocol: Codec, bytes: Uint8Array): AccumulatedMessage {
  const accumulator = new StreamAccumulator({ protocol });
  accumulator.push(bytes);
  return accumulator.finish();
}

/** What an answer says, however it came: the normal form in which two protocols can be compared. */
function said({ text, reasoning, refusal, tool_calls: calls, finish_reason: finish, usage }: AccumulatedMessage, isCut = false) {
  const counts = usage && {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cached: usage.cache_read_tokens ?? 0,
    reasoning: usage.reasoning_tokens ?? 0,
  };
  return {
    text,
    // Blocks of thinking are paragraphs in one protocol and one text in another.
    reasoning: reasoning.replace(/\s+/g, ''),
    refusal,
    calls: calls.map(({ id, name, arguments: text, type }) => ({
      id,
      name,
      type,
      arguments: jsonOf(text, isCut || finish === 'length'),
    })),
    finish,
    usage: counts,
  };
}

/** Protocols with objects for arguments write them anew, and have no words for arguments that were cut. */
function jsonOf(text: string, isCut: boolean): unknown {
  try {
    return isCut ? 'cut' : JSON.parse(text === '' ? '{}' : text);
  } catch {
    return 'cut';
  }
}

const namesOf = ({ tool_calls: calls }: AccumulatedMessage): string[] => calls.map(({ name }) => name).toSorted();

/** Streams in which something is settled after it was passed on: a client that has read it cannot be told otherwise. */
const SETTLED_LATE: Readonly<Record<string, string>> = {
  'own-name-grows-after-arguments': 'the name grows when the arguments have begun',
  'own-growing-name-repeated-object': 'the name grows when the arguments are whole',
  'own-id-after-arguments': 'the id comes behind the arguments',
  'own-ids-after-all-calls': 'the ids come behind all calls',
  'own-second-document-after-another-call': 'a call goes on when another has begun',
  'tc-args-two-documents-one-call': 'the arguments turn out to be two documents',
  'tc-args-null-drops-siblings': 'arguments that are null',
};

const isLate = (name: string): boolean => Object.keys(SETTLED_LATE).some((id) => name.includes(id));

describe.each([...streams, ...cases].map((row) => [row.name.replaceAll('/', ' '), row] as const))(
  '%s',
  (name, { from, to, bytes }) => {
    const converted = convert([bytes], { from, to });
    const streamed = read(to, converted);
    const original = read(from, bytes);
    // Gemini has no words for half a call.
    const isCut = original.invalid_arguments.length > 0 || original.finish_reason !== 'tool_calls';

    if (!isLate(name))
      test('converting then collecting equals collecting then converting', () => {
        let whole: unknown;
        try {
          whole = convertStreamToResponse([bytes], { from, to }).body;
        } catch (error) {
          if (!(error instanceof CodecError)) throw error;
          expect(streamed.error ?? (streamed.complete ? 'complete' : 'cut')).not.toBe('complete');
          return;
        }
        const isBroken = original.invalid_arguments.length > 0;
        expect(said(streamed, isBroken)).toEqual(said(read(to, bytesOf(JSON.stringify(whole))), isBroken));
        expect(said(read(to, convertResponseToStream(whole, { from: to, to }).body), isBroken)).toEqual(said(streamed, isBroken));
      });

    test('the client reads what the upstream sent', () => {
      expect(streamed.text.length).toBeGreaterThanOrEqual(original.text.length);
      if (isCut && to.id === 'gemini') expect(namesOf(original)).toEqual(expect.arrayContaining(namesOf(streamed)));
      else if (!isLate(name)) expect(namesOf(streamed)).toEqual(namesOf(original));
      if (original.error || !original.complete || original.finish_reason === 'error')
        expect(streamed.error ?? streamed.finish_reason).not.toBe('stop');
      else expect(streamed.error).toBeNull();
    });

    if (bytes.length <= 20_000)
      test('other chunk boundaries give the same result', () => {
        expect(Buffer.from(convert(splitEvery(bytes, 7), { from, to })).equals(Buffer.from(converted))).toBe(true);
      });
  },
);

/** Bodies that are no finished response, although their status says so. */
const UNFINISHED: ReadonlySet<string> = new Set([
  'openai-responses/chatgpt-codex-8d8fd637.json',
  'openai-responses/chatgpt-codex-ecc5ca74.json',
  'gemini/google-03c2ad7a.json',
  'gemini/google-vertex-d2b3fed2.json',
]);
const isFailed = ({ file, features }: Recording): boolean => UNFINISHED.has(file) || features.includes('error');

const bodies = readManifest().filter(({ stream, status, recorder }) => !stream && status < 400 && !recorder.includes('not-json'));

describe.each(
  sampled(
    bodies.map((body) => ({ ...body, name: body.file })),
    4,
  ),
)('$file', (recording) => {
  const { file, protocol } = recording;
  const from = codecOf(protocol);
  test.each(codecs)('whole and as a stream of $id', (to) => {
    if (!from) throw new Error('no codec');
    const body: unknown = JSON.parse(readRecording(file).toString());
    if (isFailed(recording)) {
      expect(() => convertResponse(body, { from, to })).toThrow(CodecError);
      expect(() => convertResponseToStream(body, { from, to })).toThrow(CodecError);
      return;
    }
    const { body: whole } = convertResponse(body, { from, to });
    const replayed = convertResponseToStream(body, { from, to });
    expect(said(read(to, replayed.body))).toEqual(said(read(to, bytesOf(JSON.stringify(whole)))));
  });
});
