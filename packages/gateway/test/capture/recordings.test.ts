import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Recording, readManifest, readRecording } from '../../../../test/corpus.ts';
import { deriveClientBytes } from '../../src/capture/derive.ts';
import { Faultd } from '../gateway/faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from '../gateway/http.ts';
import { providersAt } from '../gateway/pairs.ts';
import { ask } from '../gateway/start.ts';
import { type Capturing, startCapturing } from './start.ts';

/** Every recording with `SLUICE_CAPTURE_ALL=1`, as in the nightly run; otherwise a few of each protocol. */
const IS_FULL = process.env['SLUICE_CAPTURE_ALL'] === '1';
const SAMPLES = 12;
/** Larger ones say nothing more, and take seconds. */
const MAX_SAMPLE_BYTES = 200_000;

const CLIENTS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

interface Recorded extends Recording {
  bytes: Buffer;
}

/** Evenly over the list, so that a sample has recordings of many providers. */
function pick(recordings: readonly Recording[]): Recorded[] {
  const step = IS_FULL ? 1 : Math.max(1, Math.floor(recordings.length / SAMPLES));
  return recordings
    .filter((_, index) => index % step === 0)
    .map((recording) => ({ ...recording, bytes: readRecording(recording.file) }))
    .filter(({ bytes }) => IS_FULL || bytes.length <= MAX_SAMPLE_BYTES);
}

describe('recorded responses', () => {
  let faultd: Faultd;
  let gateway: Capturing;

  beforeAll(async () => {
    faultd = await Faultd.start();
    gateway = await startCapturing({
      config: {
        providers: providersAt(faultd),
        capture: { exchange_bytes: '30MB' },
        limits: { retries_per_provider: 0, retries: 0 },
      },
    });
  });

  afterAll(async () => {
    await gateway.close();
    await faultd.stop();
  });

  test.each(CLIENTS)(
    'of %s give every client the bytes that its capture derives',
    async (upstream) => {
      const recordings = pick(readManifest().filter(({ protocol }) => protocol === upstream));
      expect(recordings.length).toBeGreaterThan(5);
      const wrong: string[] = [];
      for (const recording of recordings)
        for (const client of CLIENTS) {
          const fault = await check(client, upstream, recording);
          if (fault !== undefined) wrong.push(`${client} <- ${recording.file}: ${fault}`);
        }
      console.log(`${recordings.length * CLIENTS.length} exchanges with ${upstream} derived`);
      expect(wrong).toEqual([]);
    },
    1_800_000,
  );

  async function check(client: ProtocolId, upstream: ProtocolId, recorded: Recorded): Promise<string | undefined> {
    const { status, stream, bytes } = recorded;
    faultd.play(
      stream && status < 400
        ? [{ send: streamHead() }, { send: chunk(bytes) }, { send: LAST_CHUNK }]
        : [{ send: whole(status, bytes) }],
    );
    const { headers, body } = await ask(gateway.url, { client, model: `mend-${upstream}/${recorded.model}`, stream });
    const id = headers['x-sluice-request-id'];
    await gateway.ended(id);
    await gateway.captures.settled();
    const capture = await gateway.captures.get(id ?? '');
    if (!capture) return 'not captured';
    if (!Buffer.from(capture.response?.body ?? []).equals(body)) return 'the captured bytes are not those that the client read';
    const derived = deriveClientBytes(capture);
    if (derived.is === 'unknown') return derived.reason;
    if (derived.is === 'equal') return derived.isPrefix ? 'only a prefix' : undefined;
    const { at } = derived;
    const show = (text: Uint8Array): string => Buffer.from(text).toString('utf8', Math.max(0, at - 80), at + 80);
    return `differs at ${at}: …${show(derived.bytes)}… instead of …${show(derived.recorded)}…`;
  }
});
