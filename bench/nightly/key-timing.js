/**
 * The time of a check of a client key must not show what is wrong with it: Welch's t between a known id with a wrong secret and an
 * unknown id stays below 4.5, as it does between two unknown ids. Run `npm run build` first.
 */
import { Gatekeeper } from '../../packages/gateway/out/keys/gatekeeper.js';
import { KeyBook } from '../../packages/gateway/out/keys/key-book.js';
import { createKeyText } from '../../packages/gateway/out/keys/key-text.js';
import { openStore } from '../../packages/gateway/out/store/index.js';

const TRIES = 10_000;
const KEYS = 1000;
const MAX_T = 4.5;
/** A measurement of a shared machine may be disturbed; a leak shows every time. */
const ROUNDS = 5;

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

/** Made before they are measured, and measured in random order, so that both classes meet the same disturbances. */
function measure(first, second) {
  const samples = [[], []];
  // In turns, so that neither class has the older memory.
  const queue = Array.from({ length: 2 * TRIES }, (_, i) => ({
    at: i % 2,
    headers: { 'x-api-key': flatten(i % 2 === 0 ? first() : second()) },
  }));
  for (let i = queue.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [queue[i], queue[j]] = [queue[j], queue[i]];
  }
  for (const { at, headers } of queue) {
    const begun = process.hrtime.bigint();
    const { admitted } = gatekeeper.admit(headers, '/');
    samples[at].push(Number(process.hrtime.bigint() - begun));
    if (admitted) throw new Error('a wrong key was admitted');
  }
  return computeT(...samples.map(dropSlowest));
}

/** As a key arrives from a socket: one piece of memory, not a rope of the pieces it was made of. */
const flatten = (text) => Buffer.from(text).toString('latin1');

/** Collections and interrupts are no property of a key. */
const dropSlowest = (values) => values.toSorted((a, b) => a - b).slice(0, Math.floor(values.length * 0.9));

function computeT(a, b) {
  const describe = (values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return { mean, error: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1) / values.length };
  };
  const [one, other] = [describe(a), describe(b)];
  return { t: (one.mean - other.mean) / Math.sqrt(one.error + other.error), ns: one.mean };
}

let worst = 0;
let ns = 0;
const names = Object.keys(CLASSES);
for (const [first, second] of [
  [names[0], names[1]],
  [names[1], names[2]],
]) {
  measure(CLASSES[first], CLASSES[second]);
  const rounds = Array.from({ length: ROUNDS }, () => measure(CLASSES[first], CLASSES[second]));
  const median = rounds.map(({ t }) => Math.abs(t)).sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
  ns = rounds[0].ns;
  console.log(`${first} against ${second}: |t| ${median.toFixed(2)}`);
  worst = Math.max(worst, median);
}
await book.close();
await store.close();
console.log(`|t| ${worst.toFixed(2)} of at most ${MAX_T}, ${(ns / 1000).toFixed(1)} us a check`);
process.exitCode = worst < MAX_T ? 0 : 1;
