/** What official SDKs do with violating streams, without the repair and with it. */
import { expect, test } from 'vitest';
import { REPAIRS } from '../packages/core/src/protocols/index.ts';
import { RepairStream } from '../packages/core/src/repair/stream.ts';
import { SDK_READERS, type SdkReader } from './doctor/sdk-readers.ts';
import { effectOf, type Violating, violatingStreams, words } from './doctor/violating-streams.ts';
import { IS_NIGHT } from './night.ts';

const decode = (chunk: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(chunk);

function repair({ protocol, chunks }: Violating): Uint8Array[] {
  const stage = new RepairStream({ codec: REPAIRS[protocol], model: 'm-1' });
  return [...chunks.flatMap((chunk) => [...stage.push(chunk)]), ...stage.end()];
}

/** What is wrong with what an SDK reads. Throwing at an error, or at a response that was cut, is right. */
const findEffect = ({ read }: SdkReader, chunks: readonly Uint8Array[], { message }: Violating): Promise<string | undefined> =>
  read(chunks.map(decode)).then(
    (heard) => effectOf(heard, message),
    (error) => (message.error || !message.complete ? undefined : `throws: ${words(error)}`),
  );

/** A call that has no name, or that changes after it was complete, cannot be repaired in a stream. */
const LEFT: ReadonlySet<string> = new Set(['anthropic/tool-name-missing', 'anthropic/input-after-stop', 'gemini/nameless-call']);

test('every violation that breaks an official SDK is repaired', { timeout: 120_000 }, async () => {
  const broken = new Set<string>();
  const left: string[] = [];
  for (const violating of violatingStreams({ most: IS_NIGHT ? Number.POSITIVE_INFINITY : 2 })) {
    const { rule, protocol, chunks } = violating;
    for (const reader of SDK_READERS[protocol]) {
      if ((await findEffect(reader, chunks, violating)) !== undefined) broken.add(`${reader.client} ${rule}`);
      const effect = await findEffect(reader, repair(violating), violating);
      if (effect !== undefined && !LEFT.has(rule)) left.push(`${reader.client} ${rule}: ${effect}`);
    }
  }
  console.log(`${broken.size} pairs of SDK and violation break without the repair, ${left.length} with it`);
  expect(broken.size).toBeGreaterThan(50);
  expect([...new Set(left)]).toEqual([]);
});
