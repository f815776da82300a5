// Runs every `$ sluice …` of the console blocks in the named pages, in a terminal of 100 columns, and writes down what it said.
// A gateway with the demo model listens on port 4199 meanwhile. Needs a build, and `script` of util-linux.
//   node scripts/transcripts.js docs/doctor.md
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const sluice = `${root}packages/gateway/bin/sluice.js`;
const MOST_LINES = 60;
/** A program of the system that runs another one in a terminal. */
const terminal = 'script';

/** Without the keys of whoever runs this: the demo answers. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/_(API_)?KEY$|_TOKEN$/.test(name)));

/** Progress shows and clears itself. */
const CLEAR = '\r\u001b[K';
const plain = (text) =>
  stripVTControlCharacters(
    text
      .replaceAll('\r\n', '\n')
      .split('\n')
      .map((line) => line.split(CLEAR).at(-1))
      .join('\n'),
  );

function run(command) {
  const line = `stty cols 100; sluice() { node ${sluice} "$@"; }; ${command}`;
  try {
    return plain(
      execFileSync(terminal, ['-qec', line, '/dev/null'], { cwd: root, env: { ...env, SHELL: '/bin/bash' }, encoding: 'utf8' }),
    );
  } catch (error) {
    return plain(error.stdout); // an exit code is part of the story
  }
}

function shortened(text) {
  if (text.trim() === '') return [];
  const lines = text.trimEnd().split('\n');
  return lines.length <= MOST_LINES
    ? lines
    : [...lines.slice(0, MOST_LINES - 1), `… ${lines.length - MOST_LINES + 1} more lines`];
}

function filled(block) {
  const commands = block.split('\n').filter((line) => line.startsWith('$ '));
  return commands.flatMap((line) => [line, ...shortened(run(line.slice(2)))]).join('\n');
}

const gateway = spawn(process.execPath, [sluice, 'serve', '--port', '4199'], { env, cwd: root });
await new Promise((resolve) => gateway.stdout.once('data', resolve));
for (const page of process.argv.slice(2)) {
  const text = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    text.replaceAll(/```console\n([\s\S]*?)\n```/g, (_, block) => `\`\`\`console\n${filled(block)}\n\`\`\``),
  );
}
gateway.kill();
