/**
 * The time of a check of a client key must not show what is wrong with it: Welch's t between a known id with a wrong secret and an
 * unknown id stays below 4.5, as it does between two unknown ids. Run `npm run build` first.
 */
import { Gatekeeper } from '../../packages/gateway/out/keys/gatekeeper.js';
import { KeyBook } from '../../packages/gateway/out/keys/key-book.js';
import { createKeyText } from '../../packages/gateway/out/keys/key-text.js';
import { openStore } from '../../packages/gateway/out/store/index.js';
import { compareTimes } from './timing.js';

const KEYS = 1000;

const store = await openStore({ folder: null });
const book = await KeyBook.open({ store, pepperFile: null, requiresPepper: true });
const issued = [];
for (let i = 0; i < KEYS; i++) issued.push(await book.create(`k${i}`, {}, 'cli'));
const gatekeeper = new Gatekeeper([], book);

const pick = () => issued[Math.floor(Math.random() * KEYS)];

/** Keys with the right checksum, which differ in what is wrong. */
const CLASSES = {
  'known id, wrong secret': () => createKeyText(pick().record.id).text,
  'unknown id': () => createKeyText().text,
  'another unknown id': () => createKeyText().text,
};

const run = (text) => {
  if (gatekeeper.admit({ 'x-api-key': text }, '/').admitted) throw new Error('a wrong key was admitted');
};
const names = Object.keys(CLASSES);
const compare = (first, second) => ({ name: `${first} against ${second}`, first: CLASSES[first], second: CLASSES[second], run });
const isEqual = compareTimes([compare(names[0], names[1]), compare(names[1], names[2])]);
await book.close();
await store.close();
process.exitCode = isEqual ? 0 : 1;
