import { CODECS } from '../packages/core/src/engine/index.ts';
import type { Codec } from '../packages/core/src/index.ts';
import { type Recording, readCapturedRequests, readManifest, readRecording } from './corpus.ts';

/** A request as it was sent. */
export interface Source {
  name: string;
  codec: Codec;
  body: unknown;
  model: string;
  /** Only of those that were caught on the way. */
  path?: string;
}

export const codecs: readonly Codec[] = Object.values(CODECS);

export const codecOf = (id: string): Codec | undefined => codecs.find((codec) => codec.id === id);

/** Everything with the full set (`SLUICE_FULL=1`); otherwise a sample that is the same in every run. */
export function sampled<T extends { name: string }>(rows: readonly T[], one: number): T[] {
  if (process.env['SLUICE_FULL'] === '1') return [...rows];
  return rows.filter(({ name }) => [...name].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 9973, 7) % one === 0);
}

type Requested = Recording & { request?: string };

/** The requests of the recordings, each once. */
export function recordedRequests(): Source[] {
  const seen = new Set<string>();
  return (readManifest() as Requested[]).flatMap(({ request, protocol, model }) => {
    const codec = codecOf(protocol);
    if (request === undefined || seen.has(request) || !codec) return [];
    seen.add(request);
    return [{ name: request.replace('.request.json', ''), codec, body: JSON.parse(readRecording(request).toString()), model }];
  });
}

/** The requests of real clients. */
export function clientRequests(): Source[] {
  return readCapturedRequests().flatMap(({ name, path, headers, body }) => {
    const codec = codecs.find(({ detectInterface }) => detectInterface(path, headers) === 'CHAT');
    if (!codec || typeof body !== 'object' || body === null) return [];
    const model = 'model' in body && typeof body.model === 'string' ? body.model : 'mock-model';
    return [{ name: `clients/${name}`, codec, body, model, path }];
  });
}
