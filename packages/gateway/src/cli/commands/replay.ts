import { join } from 'node:path';
import { MUTATIONS, SHORT_NAMES } from '@sluice/lab/mutate';
import { FAULTS, FaultError, type Faults, parseFaults } from '@sluice/lab/replay';
import { type Exchange, readTape, TapeError } from '@sluice/lab/tape';
import { oneLine } from '@sluice/lab/text';
import { Replayer, type Served } from '../../tape/replayer.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { readFileBytes } from '../../terminal/inputs.ts';
import { type CliIo, untilStopped } from '../../terminal/io.ts';
import { type Colors, chooseColors, formatColumns, formatJsonLine } from '../../terminal/text.ts';
import { listenOn, parsePort } from '../serve.ts';

interface Options {
  port: string | undefined;
  speed: string | undefined;
  fault: string | undefined;
  repair: boolean;
  strict: boolean;
  list: boolean;
  faults: boolean;
  json: boolean;
}

const DEFAULT_PORT = '4143';

/** `sluice replay`: a mock provider that replays recorded exchanges. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (options.faults) return listFaults(options.json, io);
  const path = chooseTape(words);
  if (path !== '-') return replayTape(path, options, io);
  return io.inTemporaryFolder(async (folder) => {
    const file = join(folder, 'stdin.sse');
    const output = await io.createFile(file);
    await output.write(await readFileBytes('-', io));
    await output.commit();
    return replayTape(file, options, io).catch((error: unknown) => {
      // The name of the temporary file means nothing to the user.
      if (error instanceof UsageError) throw new UsageError(error.message.replaceAll(file, 'standard input'), { cause: error });
      throw error;
    });
  });
}

function chooseTape([path, another]: readonly string[]): string {
  if (path === undefined)
    throw new UsageError('no input; name a tape of "sluice record", a saved stream, or "-" for standard input');
  if (another !== undefined) throw new UsageError(`only one tape can be replayed; "${oneLine(another)}" is the second`);
  return path;
}

async function replayTape(path: string, options: Options, io: CliIo): Promise<number> {
  const exchanges = await openTape(path);
  if (options.list) return listExchanges(exchanges, options.json, io);
  const replayer = await Replayer.open({
    exchanges,
    speed: parseSpeed(options.speed),
    faults: parseFaultOption(options.fault),
    repair: options.repair,
    isStrict: options.strict,
    onServed: (served) => printServed(served, options.json, io),
  });
  const address = await listenOn(replayer, parsePort(options.port ?? DEFAULT_PORT));
  const stopped = untilStopped(() => replayer.close());
  const output = options.json ? io.stderr : io.stdout;
  await output.write(welcome(address, exchanges, options.fault, chooseColors(output, io.env)));
  await stopped;
  return EXIT.ok;
}

async function openTape(path: string): Promise<Exchange[]> {
  try {
    return await readTape(path);
  } catch (error) {
    if (error instanceof TapeError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

function parseSpeed(text: string | undefined): number {
  if (text === undefined) return 0;
  const speed = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && speed > 0) return speed;
  throw new UsageError(`--speed must be a number above 0, not "${oneLine(text).slice(0, 40)}"; omit it for no delay`);
}

function parseFaultOption(text: string | undefined): Faults {
  try {
    return parseFaults(text ?? '');
  } catch (error) {
    if (error instanceof FaultError)
      throw new UsageError(`${error.message}\n"sluice replay --faults" lists them`, { cause: error });
    throw error;
  }
}

async function listExchanges(exchanges: readonly Exchange[], isJson: boolean, io: CliIo): Promise<number> {
  const { bold, dim, green, red } = chooseColors(io.stdout, io.env);
  if (isJson) {
    for (const exchange of exchanges) await io.stdout.write(formatJsonLine(buildRow(exchange))?.join('') ?? '');
    return 0;
  }
  const rows = exchanges.map(({ name, protocol, model, isStream, ending, response }) => [
    oneLine(name),
    response ? String(response.status) : '---',
    protocol ?? 'other',
    isStream ? 'stream' : 'whole',
    ending === 'complete' ? '' : ending,
    oneLine(model),
  ]);
  const status = (cell: string): string => (/^[23]/.test(cell) ? green(cell) : red(cell));
  for (const line of formatColumns(rows, [bold, status, (cell) => cell, dim])) await io.stdout.write(`${line.trimEnd()}\n`);
  return 0;
}

const buildRow = ({ name, protocol, model, isStream, ending, request, response }: Exchange): object => ({
  exchange: name,
  protocol: protocol ?? null,
  model,
  stream: isStream,
  method: request.method,
  path: request.path,
  status: response?.status ?? null,
  end: ending,
});

async function listFaults(isJson: boolean, io: CliIo): Promise<number> {
  const { bold, cyan, dim } = chooseColors(io.stdout, io.env);
  const faults = Object.entries(FAULTS).map(([name, { value, title }]) => ({
    fault: `${name}=${value}`,
    title,
    short: null,
    protocols: null,
  }));
  const short = new Map([...SHORT_NAMES].map(([name, id]) => [id, name]));
  const dialects = MUTATIONS.map(({ id, title, protocols }) => ({
    fault: id,
    title,
    short: short.get(id) ?? null,
    protocols,
  }));
  if (isJson) {
    for (const row of [...faults, ...dialects]) await io.stdout.write(formatJsonLine(row)?.join('') ?? '');
    return 0;
  }
  const line = (rows: string[][]): string =>
    formatColumns(rows, [cyan])
      .map((text) => `  ${text}\n`)
      .join('');
  const named = dialects.map((row) => [row.fault, `${row.title}${row.short === null ? '' : dim(`  (${row.short})`)}`]);
  await io.stdout.write(
    `${bold('Faults of the response')} (joined with commas)\n${line(faults.map((row) => [row.fault, row.title]))}\n`,
  );
  await io.stdout.write(`${bold('Violations in the stream')}: ${named.length} dialects of real servers\n${line(named)}`);
  return 0;
}

function printServed(served: Served, isJson: boolean, io: CliIo): void {
  const line = isJson
    ? formatJsonLine({ ...served, exchange: served.exchange ?? null })?.join('')
    : formatLine(served, chooseColors(io.stdout, io.env));
  void io.stdout.write(line ?? '').catch(() => undefined);
}

function formatLine({ method, path, model, status, exchange, why, faults, skipped }: Served, colors: Colors): string {
  const { dim, green, red, yellow } = colors;
  const shown = status === 0 ? '---' : String(status);
  const parts = [
    (status >= 200 && status < 400 ? green : red)(shown),
    oneLine(`${method} ${path.split('?', 1).join()}${model === '' ? '' : `  ${model}`}`),
    ...(exchange === undefined ? [] : [`→ ${oneLine(exchange)}`]),
    dim(`(${oneLine(why)})`),
    ...(faults === '' ? [] : [yellow(oneLine(faults))]),
    ...(skipped.length === 0 ? [] : [yellow(`skipped, not applicable: ${skipped.join(', ')}`)]),
  ];
  return `${parts.join('  ')}\n`;
}

function welcome(
  address: string,
  exchanges: readonly Exchange[],
  fault: string | undefined,
  { bold, dim, green, yellow }: Colors,
): string {
  const models = [...new Set(exchanges.map(({ model }) => oneLine(model)))].filter((model) => model !== '');
  const few = models.slice(0, 6).join(', ') + (models.length > 6 ? ` and ${models.length - 6} more` : '');
  return [
    `${green('●')} Replaying ${bold(String(exchanges.length))} exchange${exchanges.length === 1 ? '' : 's'} on ${bold(address)}`,
    ...(few === '' ? [] : [dim(`  models: ${few}`)]),
    ...(fault === undefined ? [] : [yellow(`  fault: ${oneLine(fault)}`)]),
    dim(`  base URL for OpenAI's SDKs: ${address}/v1   for Anthropic's and Google's: ${address}   Stop: Ctrl-C`),
    '',
  ].join('\n');
}
