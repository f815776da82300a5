import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProtocolId } from '../../packages/core/src/index.ts';
import { type Recording, readManifest, readRecording, SHARED } from '../shared.ts';
import { type Clean, cleanOf } from './properties/mutation.ts';
import { CODECS, framesOf, streamOf } from './wire.ts';

export interface Recorded extends Recording {
  protocolId: ProtocolId;
  bytes: Uint8Array;
}

const isKnown = (protocol: string): protocol is ProtocolId => Object.hasOwn(CODECS, protocol);

/** Every recorded stream, the smallest first: a run that stops early has seen the most of them. */
export function recordedStreams(): Recorded[] {
  return readManifest()
    .filter(({ stream }) => stream)
    .flatMap((recording) => {
      const { protocol } = recording;
      return isKnown(protocol)
        ? [{ ...recording, protocolId: protocol, bytes: new Uint8Array(readRecording(recording.file)) }]
        : [];
    })
    .toSorted((a, b) => a.bytes.length - b.bytes.length);
}

/** The sizes of the network reads in which some of them arrived. */
export const readSizes = (): Record<string, number[]> =>
  SHARED ? (JSON.parse(readFileSync(join(SHARED, 'recordings', 'packets.json'), 'utf8')) as Record<string, number[]>) : {};

/** A recording as a clean stream; undefined when it departs from the standard by itself. */
export function cleanRecording({ protocolId, bytes }: Recorded): Clean | undefined {
  const frames = framesOf(bytes);
  if (frames.some(({ bare }) => bare)) return undefined;
  const isUnended = protocolId === 'openai-chat' && frames.at(-1)?.data !== '[DONE]';
  return cleanOf(streamOf(protocolId, isUnended ? [...frames, { data: '[DONE]' }] : frames));
}
