/** A process that measures one side of a row, slice by slice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));

/** Resolves when the process is warm: `{ measure, end }`, where `measure` resolves with the nanoseconds a chunk of one slice. */
export async function startSide({ id }, { name }, effort) {
  const child = spawn(process.execPath, [CHILD, id, name, JSON.stringify(effort)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const readValue = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`bench/fetch/child.js ended while it measured ${id}, ${name} the repair`);
    return Number(value);
  };
  await readValue();
  return {
    measure: () => {
      child.stdin.write('\n');
      return readValue();
    },
    end: () => {
      const closed = once(child, 'close');
      child.stdin.end();
      return closed;
    },
  };
}
