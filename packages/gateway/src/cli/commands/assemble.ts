import {
  type AccumulatedError,
  type AccumulatedMessage,
  type CanonicalStreamEvent,
  type Diagnostic,
  Examiner,
  type Protocol,
  RULES,
} from '@sluice/core';
import { openaiChatWithCompletion, StreamAccumulator } from '@sluice/core/engine';
import { StreamValidator } from '@sluice/core/internal';
import { oneLine } from '@sluice/lab/text';
import { describeFailure, EXIT, UnreadableError } from '../../terminal/errors.ts';
import { chooseProtocols, findSources, forEachSource, isSkipped, type Source } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { formatInternalError } from '../help.ts';
import { formatDivider, showMessage } from '../show.ts';

interface Options {
  protocol: string | undefined;
  json: boolean;
  'split-think': boolean;
}

/** `sluice assemble`: prints the complete message of each recorded stream. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const protocols = chooseProtocols(options.protocol).map(withCompletion);
  const job: Job = { protocols, isJson: options.json, isSplit: options['split-think'], printed: 0 };
  return forEachSource(await findSources(words, io), io, (source) => assembleOne(source, job, io));
}

interface Job {
  protocols: readonly Protocol[];
  isJson: boolean;
  isSplit: boolean;
  /** Number of messages printed so far. */
  printed: number;
}

/** Adds the complete chat completion to the extras of chat streams. */
const withCompletion = (protocol: Protocol): Protocol =>
  protocol.id === openaiChatWithCompletion.id ? openaiChatWithCompletion : protocol;

/** Reads and prints one input. */
async function assembleOne(source: Source, job: Job, io: CliIo): Promise<number | 'skipped'> {
  const { message, isUnreadable } = await readMessage(source, job.protocols, io);
  if (isSkipped(source, message.error)) return 'skipped';
  const { file } = source;
  const split = job.isSplit ? withSplit(message) : message;
  const shown = job.isJson ? await printJson(file, split, job, io) : await printReport(file, split, job, io);
  job.printed++;
  const failure = describeFailure(shown);
  // On a terminal the report already shows the error.
  const isReported = !job.isJson && io.stdout.isTTY;
  if (failure !== undefined && !isReported) await io.stderr.write(`sluice: ${oneLine(file)}: ${oneLine(failure)}\n`);
  if (failure === undefined) return EXIT.ok;
  return isUnreadable ? EXIT.unusable : EXIT.failed;
}

/** Reads an input to its end. An input that cannot be read results in a message with an error. */
async function readMessage(source: Source, protocols: readonly Protocol[], io: CliIo): Promise<ReadResult> {
  // The examiner instead of the assembler, so that diagnostics equal those of `sluice doctor`.
  const examiner = new Examiner({ protocol: protocols, ...(io.env['SLUICE_DEBUG'] === '1' && { onEvent: createValidator() }) });
  try {
    for await (const chunk of source.read()) {
      examiner.push(chunk);
      if (examiner.hasFailed) break;
    }
    return { message: examiner.end().message, isUnreadable: false };
  } catch (error) {
    // What was read before a read error is kept; after an internal error the partial message is not reliable.
    if (error instanceof UnreadableError)
      return { message: buildFailedMessage(examiner, protocols, error.failure), isUnreadable: true };
    await io.stderr.write(formatInternalError(error, io));
    return { message: createEmptyMessage(protocols, INTERNAL), isUnreadable: false };
  }
}

interface ReadResult {
  message: AccumulatedMessage;
  isUnreadable: boolean;
}

const INTERNAL: AccumulatedError = { code: 'internal_error', message: 'internal error: a bug in sluice', canonical: 'INTERNAL' };

/** Debug mode checks every event of the decoder against the canonical stream grammar. */
function createValidator(): (event: CanonicalStreamEvent) => void {
  const validator = new StreamValidator();
  return (event) => void validator.push(event);
}

function buildFailedMessage(examiner: Examiner, protocols: readonly Protocol[], error: AccumulatedError): AccumulatedMessage {
  const partial = examiner.fail(error.message).message;
  const isEmpty = partial.message.content.length === 0 && partial.id === '';
  return isEmpty ? createEmptyMessage(protocols, error) : withError(partial, error);
}

/** The result for an input without any content. */
function createEmptyMessage(protocols: readonly Protocol[], error: AccumulatedError): AccumulatedMessage {
  const [protocol] = protocols;
  const empty = new StreamAccumulator({ protocol: protocols }).finish();
  return { ...withError(empty, error), protocol: protocols.length === 1 && protocol ? protocol.id : null };
}

function withError(result: AccumulatedMessage, error: AccumulatedError): AccumulatedMessage {
  const { code, message, canonical } = error;
  return { ...result, error, message: { ...result.message, error: { code: canonical, message, details: { code } } } };
}

/** Prints one line of JSON and returns the message that it holds. */
async function printJson(
  file: string,
  result: AccumulatedMessage,
  { protocols }: Pick<Job, 'protocols'>,
  { stdout }: Pick<CliIo, 'stdout'>,
): Promise<AccumulatedMessage> {
  const diagnostics = result.diagnostics.map(withSeverity);
  const line = formatJsonLine({ file, ...result, diagnostics });
  if (!line) return printJson(file, createEmptyMessage(protocols, TOO_LONG), { protocols }, { stdout });
  for (const piece of line) await stdout.write(piece);
  return result;
}

/** Severity is part of a diagnostic only where it differs from that of its rule. */
const withSeverity = (diagnostic: Diagnostic): Diagnostic => ({
  ...diagnostic,
  severity: diagnostic.severity ?? RULES[diagnostic.rule].severity,
});

/** For a message with a field longer than the maximum string length (512 Mi characters). */
const TOO_LONG: AccumulatedError = {
  code: 'too_large',
  message: 'the message is too long for a line of JSON; omit --json to print it',
  canonical: 'PAYLOAD_TOO_LARGE',
};

async function printReport(
  file: string,
  result: AccumulatedMessage,
  { isSplit, printed }: Job,
  { stdout, env }: CliIo,
): Promise<AccumulatedMessage> {
  const style = { colors: chooseColors(stdout, env), columns: stdout.columns, isSplit };
  if (printed > 0) await stdout.write(formatDivider(style));
  for (const piece of showMessage(file, result, style)) await stdout.write(piece);
  return result;
}

/** Always adds `think_split`, even for a text without `<think>` sections. */
function withSplit(result: AccumulatedMessage): AccumulatedMessage {
  const think_split = result.extras['think_split'] ?? { reasoning: '', text: result.text };
  return { ...result, extras: { ...result.extras, think_split } };
}
