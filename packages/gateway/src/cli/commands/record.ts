import { join } from 'node:path';
import { oneLine, systemCode } from '@sluice/lab/text';
import type { Saved } from '../../tape/recorder.ts';
import { TapeWriter } from '../../tape/write.ts';
import { untilStopped } from '../../terminal/io.ts';
import { type Colors, chooseColors, formatBytes, formatJsonLine } from '../../terminal/text.ts';
import { type Command, defineCommand, UsageError } from '../command.ts';
import { listenOn, parsePort } from '../serve.ts';

const OPTIONS = {
  upstream: { type: 'string', value: 'URL', summary: 'the provider: where everything is passed on to' },
  port: { type: 'string', value: 'N', summary: 'the port to listen on, on 127.0.0.1 (4142)' },
  out: { type: 'string', value: 'DIR', summary: 'the tape: a folder, made when absent, added to when there (tapes)' },
  json: { type: 'boolean', summary: 'one JSON object a line and exchange, on stdout; everything else on stderr' },
} as const;

const DEFAULT_PORT = '4142';

const DEFAULT_OUT = 'tapes';

/** `sluice record`: a proxy that records exchanges as a tape. */
export const record: Command = defineCommand({
  summary: 'a proxy that saves exchanges: requests, response bytes, read sizes and timing, without keys',
  usage: 'record --upstream URL [--port N] [--out DIR] [--json]',
  about:
    'Stands between a client and its provider and passes on what both say, byte for byte. Each exchange becomes a readable folder (docs/tapes.md): the request, the answer as it came, the sizes and times of the network reads, and how it ended. The client keeps its own key and sends it as usual: it is passed on and never written down. Neither are cookies, nor who asks. Listens on 127.0.0.1 only. SIGINT and SIGTERM wait for exchanges under way; a second one does not.',
  options: OPTIONS,
  examples: [
    { line: 'sluice record --upstream https://api.openai.com', what: 'then let the client ask http://127.0.0.1:4142/v1' },
    { line: 'sluice record --upstream http://127.0.0.1:11434 --out ollama', what: 'a local model server' },
    { line: 'OPENAI_BASE_URL=http://127.0.0.1:4142/v1 node app.js', what: 'an app whose SDK reads its base URL there' },
    { line: 'sluice replay tapes', what: 'afterwards: the same answers, without the provider' },
  ],
  run: async ({ options, words }, io) => {
    if (words.length > 0) throw new UsageError(`"${oneLine(words[0] ?? '')}" is not expected: the tape is named with --out`);
    const { upstream: url, out = DEFAULT_OUT, port = DEFAULT_PORT, json: isJson } = options;
    const upstream = parseUpstream(url);
    const colors = chooseColors(io.stdout, io.env);
    const print = (saved: Saved): void => {
      const line = isJson ? formatJsonLine(buildRecord(saved))?.join('') : formatLine(saved, out, colors);
      void io.stdout.write(line ?? '').catch(() => undefined);
    };
    const { Recorder } = await import('../../tape/recorder.ts');
    const recorder = new Recorder({ upstream, writer: await openTape(out), onExchange: print });
    const address = await listenOn(recorder, parsePort(port));
    const stopped = untilStopped(() => recorder.close());
    const output = isJson ? io.stderr : io.stdout;
    await output.write(welcome(address, upstream, out, isJson ? chooseColors(io.stderr, io.env) : colors));
    await stopped;
    return 0;
  },
});

function parseUpstream(text: string | undefined): URL {
  if (text === undefined)
    throw new UsageError('--upstream is missing: name the provider, such as --upstream https://api.openai.com');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`--upstream must be a URL (https://…), not "${oneLine(text).slice(0, 80)}"`);
  if (url.username || url.password) throw new UsageError('--upstream must not hold a key: the client sends its own');
  return url;
}

async function openTape(folder: string): Promise<TapeWriter> {
  try {
    return await TapeWriter.open(folder);
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    throw new UsageError(`the folder ${oneLine(folder)} cannot be made or read: ${code}`, { cause: error });
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
  upstream_cut: 'the upstream broke off',
  client_gone: 'the client left',
  too_large: 'longer than is kept',
  unreachable: 'the upstream could not be reached',
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
  ...(failure !== undefined && { error: String(failure) }),
});
