/** The recordings that the corpus is derived from. Only maintainers have them. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the notes of a recording say of how it was made. */
const RECORDER = [
  { word: 'done-not-kept', pattern: /keeps no \[DONE\]/ },
  { word: 'ids-replaced', pattern: /replaced/ },
  { word: 'edited', pattern: /by hand|hand-edited/ },
  { word: 'not-json', pattern: /not JSON|does not parse/ },
];

/**
 * @typedef {object} Recorded
 * @property {string} name The name of its shape. The names of the files belong to the authors of the recordings.
 * @property {string} file
 * @property {string} [request] The file of the request.
 * @property {string} protocol
 * @property {string} provider
 * @property {string} model
 * @property {boolean} stream
 * @property {number} status
 * @property {string[]} features
 * @property {string[]} [quirks]
 * @property {string} framing
 * @property {string} json
 * @property {string} capture
 * @property {{repo: string}} source
 * @property {string[]} recorder What its recorder changed.
 * @property {number[]} [reads] Sizes of the network reads in which it arrived.
 */

/**
 * The entries of a folder of recordings.
 * @param {string} folder
 * @returns {Recorded[]}
 */
export function readRecordings(folder) {
  const read = (file) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const packets = read('packets.json');
  return read('manifest.json').map(({ notes = [], ...entry }) => ({
    ...entry,
    name: `${entry.protocol}/${entry.provider}-${createHash('sha256').update(entry.file).digest('hex').slice(0, 8)}`,
    recorder: RECORDER.filter(({ pattern }) => notes.some((note) => pattern.test(note))).map(({ word }) => word),
    ...(packets[entry.file] && { reads: packets[entry.file] }),
  }));
}

/** The prompt of every capture, in the filler that replaced all prose. */
export const CAPTURED_PROMPT =
  'loremi dolo sit amet /cons/sadi/elitrse/diam/nonu.eir tem lore ipsu do sit ametc sadi elitrse di no.';

/**
 * The requests that real clients sent.
 * @param {string} folder
 * @returns {{name: string, method: string, path: string, headers: Record<string, string>, body?: unknown}[]}
 */
export function readCaptures(folder) {
  return ['requests-shape', 'requests-more'].flatMap((own) =>
    readdirSync(join(folder, own)).flatMap((file) => {
      const { requests } = JSON.parse(readFileSync(join(folder, own, file), 'utf8'));
      return requests.map((request, at) => ({ ...request, name: `${file.replace('.json', '')}#${at}` }));
    }),
  );
}
