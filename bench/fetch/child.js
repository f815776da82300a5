/**
 * One side of a row in this process: `node child.js ID SIDE '{"sliceMs":…,"warmMs":…}'`. Prints `0` when it is warm, and after every line of its
 * input the nanoseconds a chunk of one slice.
 */
import { createInterface } from 'node:readline';
import { measureSlice, prepareSubject, warmUp } from '../library/measure.js';
import { ROWS } from './rows.js';

const [, , id, side, options] = process.argv;
const { sliceMs, warmMs } = JSON.parse(options);
const row = ROWS.find((one) => one.id === id);
const input = row.buildInput();
const prepared = await prepareSubject(
  row.subjects.find(({ name }) => name === side),
  { row, input },
);
// The first run is cold and takes several times as long, so it does not show whether the side is slow.
const subject = { ...prepared, isSlow: false };
checkResult();
await warmUp(subject, warmMs, sliceMs);
console.log(0);

for await (const _ of createInterface({ input: process.stdin })) {
  console.log(await measureSlice(subject));
  checkResult();
}
// Some SDKs keep timers.
process.exit(0);

function checkResult() {
  if (!row.check(subject.last, input)) throw new Error(`${id}, ${side} the repair: wrong result`);
}
