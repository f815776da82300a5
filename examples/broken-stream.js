// A chat stream with the mistakes that real servers make, and what Sluice reads out of it.
import { createReadStream, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accumulate } from '@sluice/core';
import { main } from '../packages/gateway/dist/cli/main.js';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const path = fileURLToPath(new URL('broken-stream.sse', import.meta.url));
const file = relative(process.cwd(), path);

const isColored = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
const paint = (code) => (text) => (isColored ? `\u001b[${code}m${text}\u001b[0m` : text);
const [bold, dim, red, green] = ['1', '2', '31', '32'].map(paint);
const width = process.stdout.columns || 100;
const cut = (text) => (text.length > width - 4 ? `${text.slice(0, width - 5)}…` : text);
const title = (number, text) => console.log(`\n${bold(green(number))} ${bold(text)}\n`);

/** What to look at in the raw stream: a piece that only one line has, where the excerpt begins and ends, and what is wrong there. */
const MISTAKES = [
  ['Os"', '"id"', ']},', 'a blank id, and the name again: a second call, or "get_weatherget_weather"'],
  [': keep-alive', 'data', '\n', 'a keep-alive sent as data: JSON.parse throws'],
  ['Rome', '"id"', ']},', 'a new call: same index, no id, arguments not text: "[object Object]"'],
  ['"stop"', '"finish_reason"', ',"usage"', '"stop" although tools wait; no blank line, no [DONE]: readers drop it'],
];

title('1', `What the server sends: the odd lines of ${file}`);
const lines = readFileSync(path, 'utf8').split('\n');
for (const [piece, from, to, remark] of MISTAKES) {
  const line = lines.find((candidate) => candidate.includes(piece)) ?? '';
  const start = line.lastIndexOf(from);
  const end = line.indexOf(to, start);
  console.log(`  ${cut(`${start > 0 ? '… ' : ''}${line.slice(start, end < 0 ? undefined : end)}`)}`);
  console.log(`  ${red(cut(`↑ ${remark}`))}\n`);
}

title('2', `What it means: sluice assemble ${file}`);
process.exitCode = await main(['assemble', file]);

title('3', 'The same in a program');
console.log(`  ${dim("import { accumulate } from '@sluice/core';")}
  ${dim('const response = await fetch(url, { method, headers, body });')}
  ${dim('const { text, tool_calls, complete } = await accumulate(response.body);')}
`);
const { text, tool_calls, complete } = await accumulate(createReadStream(path));
console.log({ text, tool_calls: tool_calls.map((call) => `${call.name}(${call.arguments})`), complete });
