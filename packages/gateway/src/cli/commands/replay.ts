import { MUTATIONS, SHORT_NAMES } from '@sluice/lab/mutate';
import { FAULTS, FaultError, type Faults, parseFaults } from '@sluice/lab/replay';
import { type Exchange, readTape, TapeError } from '@sluice/lab/tape';
import { oneLine } from '@sluice/lab/text';
import { EXCHANGE_HEADER, FAULT_HEADER, Replayer, type Served } from '../../tape/replayer.ts';
import { type CliIo, untilStopped } from '../../terminal/io.ts';
import { type Colors, chooseColors, formatColumns, formatJsonLine } from '../../terminal/text.ts';
import { type Command, defineCommand, UsageError } from '../command.ts';
import { listenOn, parsePort } from '../serve.ts';

const OPTIONS = {
  port: { type: 'string', value: 'N', summary: 'the port to listen on, on 127.0.0.1 (4143)' },
  speed: { type: 'string', value: 'N', summary: '1: as slowly as it was recorded, 10: ten times faster; at once when left out' },
  fault: {
    type: 'string',
    value: 'F',
    summary: 'what goes wrong: cut=300, status=429,times=2, sse/crlf … (--faults lists them)',
  },
  repair: { type: 'boolean', summary: 'conforming answers also in the protocol of the tape, instead of its very bytes' },
  strict: { type: 'boolean', summary: 'answer only requests that the tape knows, or whose model it knows' },
  list: { type: 'boolean', summary: 'show the exchanges of the tape, and serve nothing' },
  faults: { type: 'boolean', summary: 'show what can go wrong, and serve nothing' },
  json: { type: 'boolean', summary: 'one JSON object a line and request (or row), on stdout; everything else on stderr' },
} as const;

const DEFAULT_PORT = '4143';

/** `sluice replay`: a mock provider that replays recorded exchanges. */
export const replay: Command = defineCommand({
  summary: 'a mock provider out of recorded exchanges, in any of the four protocols, with faults on request',
  usage: 'replay [--port N] [--speed N] [--fault F] [--repair] [--strict] [--list] [--faults] [--json] DIR',
  about: `Answers clients out of a tape: a folder that "sluice record" made, saved streams (*.sse), or one of them. A client of the recorded protocol gets the recorded bytes in the recorded reads, any other client gets them converted. The answer is that of the same request; else of the same model; else the next in order. A fault is asked for by --fault for all, by the header "${FAULT_HEADER}" for one request, or behind the name of the model ("gpt-5!cut=300"). The header "${EXCHANGE_HEADER}" names an exchange. Listens on 127.0.0.1 only.`,
  options: OPTIONS,
  examples: [
    { line: 'sluice replay tapes', what: 'then let the client ask http://127.0.0.1:4143' },
    { line: 'sluice replay --list tapes', what: 'what is on the tape?' },
    { line: 'sluice replay --speed 1 tapes', what: 'with the delays of then' },
    { line: 'sluice replay --fault status=429,times=2 tapes', what: 'does the app retry, and heal?' },
    { line: 'sluice replay --fault chat/ids-blank,slow=20 answer.sse', what: 'one saved stream, in the dialect of some server' },
    { line: `curl -H "${FAULT_HEADER}: reset=500" http://127.0.0.1:4143/v1/chat/completions …`, what: 'this request only' },
  ],
  run: async ({ options, words }, io) => {
    if (options.faults) return listFaults(options.json, io);
    const exchanges = await openTape(words);
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
    return 0;
  },
});

async function openTape([path, another]: readonly string[]): Promise<Exchange[]> {
  if (path === undefined) throw new UsageError('name the tape: a folder of "sluice record", or a saved stream');
  if (another !== undefined) throw new UsageError(`one tape at a time: "${oneLine(another)}" is not expected`);
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
  throw new UsageError(`--speed must be a number above 0, not "${oneLine(text).slice(0, 40)}"; without it there is no delay`);
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
  const faults = Object.entries(FAULTS).map(([name, { value, title }]) => ({ fault: `${name}=${value}`, title }));
  const short = new Map([...SHORT_NAMES].map(([name, id]) => [id, name]));
  const dialects = MUTATIONS.map(({ id, title, protocols }) => ({ fault: id, short: short.get(id), title, protocols }));
  if (isJson) {
    for (const row of [...faults, ...dialects]) await io.stdout.write(formatJsonLine(row)?.join('') ?? '');
    return 0;
  }
  const line = (rows: string[][]): string =>
    formatColumns(rows, [cyan])
      .map((text) => `  ${text}\n`)
      .join('');
  const named = dialects.map((row) => [row.fault, `${row.title}${row.short === undefined ? '' : dim(`  (${row.short})`)}`]);
  await io.stdout.write(
    `${bold('What happens to the answer')} (joined with commas)\n${line(faults.map((row) => [row.fault, row.title]))}\n`,
  );
  await io.stdout.write(`${bold('What stands in the stream')}: ${named.length} dialects of real servers\n${line(named)}`);
  return 0;
}

function printServed(served: Served, isJson: boolean, io: CliIo): void {
  const line = isJson ? formatJsonLine(served)?.join('') : formatLine(served, chooseColors(io.stdout, io.env));
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
    ...(skipped.length === 0 ? [] : [yellow(`left out, as they do not fit: ${skipped.join(', ')}`)]),
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
