import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccumulatedMessage, ProtocolId, SseFrame } from '../../packages/core/src/index.ts';
import type { Failure } from '../../packages/lab/src/prove/failure.ts';
import { assemble, convert, decodeBody, PROTOCOL_IDS, readFrames } from '../../packages/lab/src/prove/wire.ts';
import { eventsOf, portableTold, type Told } from './generate/events.ts';
import { ORACLES } from './oracles.ts';
import { recordedBodies } from './recordings.ts';
import { SEED, scale, Tally } from './tally.ts';
import { chunksOf, encode, streamOf } from './wire.ts';

const sdks = PROTOCOL_IDS.flatMap((protocol) =>
  ORACLES[protocol].sdks.map(({ name, read }) => ({ protocol, name, subject: `${name}, ${protocol}`, read })),
);

const HEARD = 'official SDK';

type Read = (typeof sdks)[number]['read'];

/** Google's readers hear the calls that Google ran itself, too. */
const namesOf = (protocol: ProtocolId, { message, tool_calls: calls }: AccumulatedMessage): string[] =>
  protocol === 'gemini'
    ? message.content.flatMap((block) => (block.type === 'tool_use' ? [block.name] : []))
    : calls.map(({ name }) => name);

/** What a reader cannot read whoever writes it, and why. */
const UNREADABLE: Record<string, { when: RegExp; why: string }> = {
  'openai 6.49': { when: /"type":"custom"/, why: 'its stream helper for chat knows no custom tools; 7.53 does' },
};

/** The official reader hears what our own reads, or both fail. */
async function checkHeard(
  protocol: ProtocolId,
  sdk: string,
  read: Read,
  frames: readonly SseFrame[],
): Promise<Failure | undefined> {
  const chunks = chunksOf(streamOf(protocol, frames));
  const own = assemble(protocol, chunks);
  const failure = (message: string): Failure => ({
    property: 'sdk',
    id: `sdk/${sdk}`,
    message,
    protocol,
    raw: decodeBody(chunks),
    expected: own,
  });
  const hasFailed = own.error !== null || !own.complete;
  try {
    const { text, calls } = await read(frames);
    if (hasFailed) return failure('the official reader saw nothing wrong with a failed stream');
    if (text !== own.text) return failure(`the official reader heard ${JSON.stringify(text)}`);
    const names = namesOf(protocol, own);
    return calls.toSorted().join() === names.toSorted().join() ? undefined : failure(`the official reader heard ${calls.join()}`);
  } catch (error) {
    if (protocol === 'openai-chat' && UNREADABLE[sdk]?.when.test(decodeBody(chunks))) return undefined;
    return hasFailed ? undefined : failure(`the official reader threw: ${error}`);
  }
}

const framesOfTold = (protocol: ProtocolId, { answer, seed }: Told): SseFrame[] =>
  encode(protocol, eventsOf(answer, seed), [], protocol);

test.each(sdks)('$subject: reads what we write', async ({ protocol, name, subject, read }) => {
  const tally = new Tally();
  for (const told of fc.sample(portableTold, { numRuns: scale(40, 1500), seed: SEED }))
    tally.check(HEARD, subject, await checkHeard(protocol, name, read, framesOfTold(protocol, told)), SEED);
  for (const { protocolId, bytes } of recordedBodies().filter((_, at) => at % scale(25, 1) === 0)) {
    const frames = convert(protocolId, protocol, [bytes]).flatMap(readFrames);
    tally.check(`${HEARD} of recordings`, subject, await checkHeard(protocol, name, read, frames));
  }
  expect(tally.finish(`sdk-${subject.replaceAll(/[^\w.]+/g, '-')}`)).toEqual([]);
});
