/** The same work again and again: when it takes longer, the machine is slower. Each line of input is answered with the microseconds of nine runs. */
import { createInterface } from 'node:readline';

const TEXT = JSON.stringify(
  Array.from({ length: 300 }, (_, i) => ({ id: i, name: `entry ${i}`, tags: ['a', 'b', 'c'], nested: { value: i / 3 } })),
);

function work() {
  let sum = 0;
  for (let i = 0; i < 20; i++) sum += JSON.stringify(JSON.parse(TEXT)).length;
  return sum;
}

function time() {
  const { user, system } = process.cpuUsage();
  work();
  const spent = process.cpuUsage({ user, system });
  return spent.user + spent.system;
}

for (let i = 0; i < 60; i++) work();
createInterface({ input: process.stdin }).on('line', () => {
  const times = Array.from({ length: 9 }, time).sort((a, b) => a - b);
  process.stdout.write(`${JSON.stringify({ result: times[4] })}\n`);
});
