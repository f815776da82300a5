import { type AccumulatedError, type AccumulatedMessage, findProtocol, PROTOCOLS, type Protocol } from '@sluice/core';
import { openaiChatWithCompletion } from '@sluice/core/engine';
import { oneLine } from '@sluice/lab/text';
import { type CliIo, describeFailure } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { type Command, createUnknownProtocolError, defineCommand, listProtocols } from '../command.ts';
import { chooseFiles, createEmptyMessage, readMessage } from '../inputs.ts';
import { formatDivider, showMessage } from '../show.ts';

const OPTIONS = {
  protocol: {
    type: 'string',
    value: 'P',
    summary: `the protocol of the inputs (${listProtocols()}); told from the bytes when left out`,
  },
  json: { type: 'boolean', summary: 'one JSON object a line and input, on stdout; everything else on stderr' },
  'split-think': { type: 'boolean', summary: 'take <think>…</think> out of the text (extras.think_split)' },
} as const;

/** `sluice assemble`: prints the complete message of each recorded stream. */
export const assemble: Command = defineCommand({
  summary: 'deltas to the whole message: text, reasoning, tool calls, usage, and what was wrong on the way',
  usage: 'assemble [--protocol P] [--json] [--split-think] FILE…',
  about:
    'Reads recorded response streams (SSE, NDJSON, JSON arrays, whole JSON bodies) and prints the message each of them carries. "-" is standard input, which is also read when no FILE is named. One bad input never stops the others; the exit code is 1 when at least one failed or ended early.',
  options: OPTIONS,
  examples: [
    { line: 'sluice assemble answer.sse', what: 'what did the model say?' },
    { line: 'sluice assemble --json *.sse | jq -r .text', what: 'many recordings, for a program' },
    { line: 'curl -sN https://… | sluice assemble --protocol anthropic', what: 'straight from a provider' },
    { line: 'sluice assemble --split-think local.sse', what: 'a local model that thinks aloud' },
  ],
  run: async ({ options, words }, io) => {
    const protocols = chooseProtocols(options.protocol);
    const files = chooseFiles(words, io);
    const job = { protocols, isJson: options.json, isSplit: options['split-think'] };
    let failed = 0;
    for (const [i, file] of files.entries()) if (!(await assembleOne(file, i === 0, job, io))) failed++;
    if (failed > 0 && files.length > 1) await io.stderr.write(`sluice: ${failed} of ${files.length} inputs failed\n`);
    return failed > 0 ? 1 : 0;
  },
});

interface Job {
  protocols: readonly Protocol[];
  isJson: boolean;
  isSplit: boolean;
}

function chooseProtocols(name: string | undefined): readonly Protocol[] {
  if (name === undefined) return Object.values(PROTOCOLS).map(withCompletion);
  const found = findProtocol(name);
  if (found) return [withCompletion(found)];
  throw createUnknownProtocolError(name);
}

/** Adds the complete chat completion to the extras of chat streams. */
const withCompletion = (protocol: Protocol): Protocol =>
  protocol.id === openaiChatWithCompletion.id ? openaiChatWithCompletion : protocol;

/** Reads and prints one input; false when it failed. */
async function assembleOne(file: string, isFirst: boolean, job: Job, io: CliIo): Promise<boolean> {
  const message = await readMessage(file, job.protocols, io);
  const split = job.isSplit ? withSplit(message) : message;
  const shown = job.isJson ? await printJson(file, split, job, io) : await printReport(file, split, isFirst, job, io);
  const failure = describeFailure(shown);
  // On a terminal the report already shows the error.
  const isReported = !job.isJson && io.stdout.isTTY;
  if (failure !== undefined && !isReported) await io.stderr.write(`sluice: ${oneLine(file)}: ${oneLine(failure)}\n`);
  return failure === undefined;
}

/** Prints one line of JSON and returns the message that it holds. */
async function printJson(
  file: string,
  result: AccumulatedMessage,
  { protocols }: Pick<Job, 'protocols'>,
  { stdout }: Pick<CliIo, 'stdout'>,
): Promise<AccumulatedMessage> {
  const line = formatJsonLine({ file, ...result });
  if (!line) return printJson(file, createEmptyMessage(protocols, TOO_LONG), { protocols }, { stdout });
  for (const piece of line) await stdout.write(piece);
  return result;
}

/** For a message with a field longer than the maximum string length (512 Mi characters). */
const TOO_LONG: AccumulatedError = {
  code: 'too_large',
  message: 'the message is too long for a line of JSON; without --json it can be shown',
  canonical: 'PAYLOAD_TOO_LARGE',
};

async function printReport(
  file: string,
  result: AccumulatedMessage,
  isFirst: boolean,
  { isSplit }: Job,
  { stdout, env }: CliIo,
): Promise<AccumulatedMessage> {
  const style = { colors: chooseColors(stdout, env), columns: stdout.columns, isSplit };
  if (!isFirst) await stdout.write(formatDivider(style));
  for (const piece of showMessage(file, result, style)) await stdout.write(piece);
  return result;
}

/** Always adds `think_split`, even for a text without `<think>` sections. */
function withSplit(result: AccumulatedMessage): AccumulatedMessage {
  const think_split = result.extras['think_split'] ?? { reasoning: '', text: result.text };
  return { ...result, extras: { ...result.extras, think_split } };
}
