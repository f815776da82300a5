import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AccumulatedMessage } from '../../packages/core/src/index.ts';
import { EXCHANGE_HEADER, Replayer } from '../../packages/gateway/src/tape/replayer.ts';
import { readTape } from '../../packages/lab/src/tape/read.ts';
import { sampled } from '../convert-sources.ts';
import { readManifest, readRecording } from '../corpus.ts';
import { assemble, protocolOf } from '../run.ts';
import { type Heard, OLDER, READERS, type Reader } from './replay-sdks.ts';

// Every recording, served by "sluice replay" to the official SDKs of all four protocols.

const isFull = process.env['SLUICE_FULL'] === '1';
const readers = isFull ? [...READERS, ...OLDER] : READERS;
const recordings = sampled(
  readManifest().map((recording) => ({ ...recording, name: recording.file })),
  7,
);

/** Recordings that are no answers, each with the reason. */
const EXEMPT: Readonly<Record<string, string>> = {
  'gemini/google-03c2ad7a.json': 'embeddings, not a message',
  'gemini/google-vertex-d2b3fed2.json': 'a cached content, not a message',
};

/** A folder with a manifest, as recordings are published. */
function writeTape(folder: string): void {
  const manifest = readManifest();
  for (const { file, protocol } of manifest) {
    mkdirSync(join(folder, protocol), { recursive: true });
    writeFileSync(join(folder, file), readRecording(file));
  }
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest.map(({ request: _, ...entry }) => entry)));
}

describe('a replay of all recordings', () => {
  let url = '';
  const tape = mkdtempSync(join(tmpdir(), 'sluice-replay-'));
  const replayers: Replayer[] = [];
  const start = async (repair: boolean): Promise<string> => {
    const replayer = await Replayer.open({ exchanges: await readTape(tape), repair });
    replayers.push(replayer);
    return replayer.listen(0);
  };
  beforeAll(async () => {
    writeTape(tape);
    url = await start(true);
  });
  afterAll(async () => {
    await Promise.all(replayers.map((replayer) => replayer.close()));
    rmSync(tape, { recursive: true });
  });

  for (const reader of readers)
    for (const recording of recordings.filter(({ file }) => !EXEMPT[file]))
      test(`${reader.name}: ${recording.file}`, async () => {
        const { file, protocol, status, stream } = recording;
        const recorded = assemble(protocolOf(protocol), [readRecording(file)]);
        const heard = reader.read({ url, model: 'm', isStream: stream, headers: { [EXCHANGE_HEADER]: encodeURI(file) } });
        if (status >= 400) return expect(heard).rejects.toMatchObject({ status: expect.any(Number) });
        if (isFailure(reader, recorded, stream)) return expect(heard).rejects.toThrow();
        const { text, calls } = await heard;
        const expected = saidTo(reader, recorded);
        expect(calls.filter((name) => !serverCalls(recorded).includes(name))).toEqual(expected.calls);
        // Where there is no room for an image or a voice, words stand in its place.
        if (hasMedia(recorded)) expect(text).toContain(expected.text);
        else expect(text).toBe(expected.text);
      });

  test('clients of the same protocol get the recorded bytes', async () => {
    const raw = await start(false);
    for (const { file, protocol, model, stream } of recordings) {
      const { path, body } = questionOf(protocol, model, stream);
      const heard = await fetch(raw + path, { method: 'POST', headers: { [EXCHANGE_HEADER]: encodeURI(file) }, body });
      expect(Buffer.from(await heard.arrayBuffer()).equals(readRecording(file)), file).toBe(true);
    }
  });
});

/** Gemini's own SDK hands on a finish reason that is a failure; the others raise it. The streams of the older OpenAI know no calls of custom tools. */
function isFailure({ name, protocol }: Reader, recorded: AccumulatedMessage, isStream: boolean): boolean {
  // A whole response of Gemini needs no finish reason.
  const isWhole = !isStream && recorded.protocol === 'gemini';
  if (recorded.error || !(recorded.complete || isWhole)) return true;
  if (recorded.finish_reason === 'error' && protocol !== recorded.protocol) return true;
  const isOld = name === 'openai 6, chat' && isStream && recorded.protocol === 'openai-responses';
  return isOld && recorded.tool_calls.some(({ type }) => type === 'custom');
}

const hasMedia = ({ message }: AccumulatedMessage): boolean =>
  message.content.some(({ type }) => type === 'image' || type === 'audio');

/** Calls that the provider made itself: some protocols show them like those of a client. */
const serverCalls = ({ message, tool_calls: calls }: AccumulatedMessage): string[] =>
  message.content.flatMap((block) =>
    block.type === 'tool_use' && !calls.some(({ name }) => name === block.name) ? [block.name] : [],
  );

/** What a reader of this protocol can be told: only OpenAI's have a refusal beside the text, and Gemini's calls have no room for arguments that are cut off. */
function saidTo({ protocol }: Reader, { text, refusal, tool_calls: calls, invalid_arguments: cut }: AccumulatedMessage): Heard {
  const isOpenai = protocol === 'openai-chat' || protocol === 'openai-responses';
  const carried = protocol === 'gemini' ? calls.filter((_, at) => !cut.includes(at)) : calls;
  return { text: isOpenai ? text : text + (refusal ?? ''), calls: carried.map(({ name }) => name) };
}

function questionOf(protocol: string, model: string, stream: boolean): { path: string; body: string } {
  const verb = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  const paths: Record<string, string> = {
    'openai-chat': '/v1/chat/completions',
    'openai-responses': '/v1/responses',
    'anthropic-messages': '/v1/messages',
    gemini: `/v1beta/models/${encodeURIComponent(model)}:${verb}`,
  };
  return { path: paths[protocol] ?? '', body: JSON.stringify({ model, stream, messages: [], input: [], contents: [] }) };
}
