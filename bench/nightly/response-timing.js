/**
 * The time of a look-up must not show that another client key has a response or an item: Welch's t between ids of another key and
 * unknown ids stays below 4.5, as it does between two unknown ids. Run `npm run build` first.
 */
import { randomBytes } from 'node:crypto';
import { createResponseEntry } from '../../packages/gateway/out/responses/request-state.js';
import { createTurn, ResponseStore } from '../../packages/gateway/out/responses/store.js';
import { compareTimes } from './timing.js';

const ENTRIES = 1000;
const OWNER = 'owner';
const OTHER = 'other';

const createId = (prefix) => `${prefix}_${randomBytes(24).toString('hex')}`;

const store = new ResponseStore({ ttlMs: 3.6e6, maxBytes: 1e9, maxBytesPerKey: 1e9 }, performance);
const ids = { resp: [], msg: [] };
for (const caller of [OWNER, OTHER])
  for (let i = 0; i < ENTRIES; i++) {
    const [id, item] = [createId('resp'), createId('msg')];
    const turn = createTurn({ key: id, parent: undefined, input: '[]', body: '{}', ids: [item], holder: '' });
    store.put(createResponseEntry({ id, caller, holder: '', body: '', turn }));
    if (caller === OWNER) {
      ids.resp.push(id);
      ids.msg.push(item);
    }
  }

const LOOKUPS = {
  resp: (id) => store.find('response', id, OTHER),
  msg: (id) => store.findItem(id, OTHER),
};

const comparisons = Object.entries(LOOKUPS).flatMap(([kind, find]) => {
  const pick = () => ids[kind][Math.floor(Math.random() * ENTRIES)];
  const unknown = () => createId(kind);
  const run = (id) => {
    if (find(id) !== undefined) throw new Error('an object of another key was found');
  };
  return [
    { name: `${kind}: of another key against unknown`, first: pick, second: unknown, run },
    { name: `${kind}: unknown against unknown`, first: unknown, second: unknown, run },
  ];
});
process.exitCode = compareTimes(comparisons) ? 0 : 1;
