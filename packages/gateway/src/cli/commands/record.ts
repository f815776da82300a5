import { join } from 'node:path';
import { oneLine } from '@sluice/lab/text';
import { chooseEnvNetwork } from '../../config/network.ts';
import { Recorder, type Saved } from '../../tape/recorder.ts';
import { TapeWriter } from '../../tape/write.ts';
import { describeWriteError, EXIT, UsageError } from '../../terminal/errors.ts';
import { type CliIo, untilStopped } from '../../terminal/io.ts';
import { type Colors, chooseColors, formatBytes, formatJsonLine } from '../../terminal/text.ts';
import { listenOn, parsePort } from '../serve.ts';

interface Options {
  upstream: string | undefined;
  port: string | undefined;
  out: string | undefined;
  json: boolean;
}

const DEFAULT_PORT = '4142';

const DEFAULT_OUT = 'tapes';

/** `sluice record`: a proxy that records exchanges as a tape. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  if (words[0] !== undefined) throw new UsageError(`unexpected argument "${oneLine(words[0])}"; name the tape with --out DIR`);
  const { upstream: url, out = DEFAULT_OUT, port = DEFAULT_PORT, json: isJson } = options;
  const upstream = parseUpstream(url);
  const colors = chooseColors(io.stdout, io.env);
  const print = (saved: Saved): void => {
    const line = isJson ? formatJsonLine(buildRecord(saved))?.join('') : formatLine(saved, out, colors);
    void io.stdout.write(line ?? '').catch(() => undefined);
  };
  const network = chooseEnvNetwork(upstream.origin, io.env, (message) => void io.stderr.write(`sluice: ${message}\n`));
  const recorder = new Recorder({ upstream, network, writer: await openTape(out), onExchange: print });
  const address = await listenOn(recorder, parsePort(port));
  const stopped = untilStopped(() => recorder.close());
  const output = isJson ? io.stderr : io.stdout;
  await output.write(welcome(address, upstream, out, isJson ? chooseColors(io.stderr, io.env) : colors));
  await stopped;
  return EXIT.ok;
}

function parseUpstream(text: string | undefined): URL {
  if (text === undefined)
    throw new UsageError('--upstream is required: name the provider, such as --upstream https://api.openai.com');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`--upstream must be a URL (https://…), not "${oneLine(text).slice(0, 80)}"`);
  if (url.username || url.password) throw new UsageError('--upstream must not contain a key; the client sends its own');
  return url;
}

async function openTape(folder: string): Promise<TapeWriter> {
  try {
    return await TapeWriter.open(folder);
  } catch (error) {
    const message = describeWriteError(error);
    if (message === undefined) throw error;
    throw new UsageError(`the tape ${oneLine(folder)} cannot be used: ${message}`, { cause: error });
  }
}

const welcome = (address: string, { href }: URL, out: string, { bold, dim, red }: Colors): string =>
  [
    `${red('●')} Recording ${bold(address)} → ${bold(href)} to ${bold(oneLine(out))}`,
    dim(`  base URL for OpenAI's SDKs: ${address}/v1   for Anthropic's and Google's: ${address}   Stop: Ctrl-C`),
    '',
  ].join('\n');

const END_REMARKS = {
  complete: '',
  upstream_cut: 'the upstream closed the connection',
  client_gone: 'the client disconnected',
  too_large: 'longer than the recorded limit',
  unreachable: 'the upstream is unreachable',
} as const satisfies Record<Saved['draft']['end'], string>;

function formatLine({ draft, name, failure, ms }: Saved, out: string, { dim, green, red, yellow }: Colors): string {
  const { request, response, model, end } = draft;
  const status = response ? String(response.status) : '---';
  const paint = response && response.status < 400 ? green : red;
  const facts = [
    ...(model === null ? [`${request.method} ${request.path.split('?', 1).join()}`] : [model]),
    ...(response
      ? [formatBytes(response.body.length), `${response.reads.length} read${response.reads.length === 1 ? '' : 's'}`]
      : []),
    `${(ms / 1000).toFixed(1)} s`,
  ];
  const remark = END_REMARKS[end] === '' ? '' : `  ${yellow(END_REMARKS[end])}`;
  const where = name === undefined ? red(`not saved: ${oneLine(String(failure))}`) : dim(oneLine(join(out, name)));
  return `${paint(status)}  ${oneLine(facts.join('  '))}${remark}  ${where}\n`;
}

const buildRecord = ({ draft, name, failure, ms }: Saved): object => ({
  exchange: name ?? null,
  protocol: draft.protocol,
  model: draft.model,
  stream: draft.stream,
  method: draft.request.method,
  path: draft.request.path,
  status: draft.response?.status ?? null,
  bytes: draft.response?.body.length ?? 0,
  reads: draft.response?.reads.length ?? 0,
  end: draft.end,
  ms: Math.round(ms),
  error: failure === undefined ? null : String(failure),
});
