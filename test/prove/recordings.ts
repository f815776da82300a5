import type { ProtocolId } from '../../packages/core/src/index.ts';
import { readFrames } from '../../packages/lab/src/prove/wire.ts';
import { type Recording, readManifest, readRecording } from '../corpus.ts';
import { type Clean, cleanOf } from './properties/mutation.ts';
import { CODECS, streamOf } from './wire.ts';

export interface Recorded extends Recording {
  protocolId: ProtocolId;
  bytes: Uint8Array;
}

const isKnown = (protocol: string): protocol is ProtocolId => Object.hasOwn(CODECS, protocol);

/** Every recorded body, streams and whole ones, the smallest first: a run that stops early has seen the most of them. */
export function recordedBodies(): Recorded[] {
  return readManifest()
    .flatMap((recording) => {
      const { protocol } = recording;
      return isKnown(protocol)
        ? [{ ...recording, protocolId: protocol, bytes: new Uint8Array(readRecording(recording.file)) }]
        : [];
    })
    .toSorted((a, b) => a.bytes.length - b.bytes.length);
}

export const recordedStreams = (): Recorded[] => recordedBodies().filter(({ stream }) => stream);

interface RecordedRequest extends Recording {
  protocolId: ProtocolId;
  body: unknown;
}

/** The request that led to each body, where it is known; one that led to several counts once. */
export function recordedRequests(): RecordedRequest[] {
  const taken = new Set<string>();
  return recordedBodies().flatMap(({ request, bytes: _, ...recording }) => {
    if (request === undefined || taken.has(request)) return [];
    taken.add(request);
    return [{ ...recording, file: request, body: JSON.parse(readRecording(request).toString()) as unknown }];
  });
}

/** A recording as a clean stream; undefined when it violates the standard by itself. */
export function cleanRecording({ protocolId, bytes }: Recorded): Clean | undefined {
  const frames = readFrames(bytes);
  if (frames.some(({ bare }) => bare)) return undefined;
  const isUnended = protocolId === 'openai-chat' && frames.at(-1)?.data !== '[DONE]';
  return cleanOf(streamOf(protocolId, isUnended ? [...frames, { data: '[DONE]' }] : frames));
}
