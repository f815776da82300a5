import { oneLine } from '@sluice/lab/text';
import { createLineFormat } from '../../observe/log.ts';
import type { Running } from '../../server/run.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { type CliIo, untilStopped } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { buildWelcome, formatWelcome, parsePort, startGateway } from '../serve.ts';

interface Options {
  config: string | undefined;
  host: string | undefined;
  port: string | undefined;
  data: string | undefined;
  json: boolean;
}

/** `sluice serve`: starts the gateway. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const { config, host, port, data = 'default', json } = options;
  if (words[0] !== undefined)
    throw new UsageError(`unexpected argument "${oneLine(words[0])}"; name the configuration with --config FILE`);
  const listen = { ...(host !== undefined && { host }), ...(port !== undefined && { port: parsePort(port) }) };
  const formatLog = io.stderr.isTTY && !json ? createLineFormat(chooseColors(io.stderr, io.env)) : undefined;
  const running = await startGateway({ config, listen, data, ...(formatLog && { formatLog }) }, io);
  // Before the first output, because a reader of the output may send a signal at once.
  const hasTerminal = io.stdin.isTTY || io.stdout.isTTY;
  const stopped = untilStopped(() => stop(running), { stopsOnHangup: hasTerminal });
  if (!hasTerminal) process.on('SIGHUP', () => void running.reload());
  const { url, file, state, log } = running;
  log.info({ url, ...(file !== undefined && { config: file }), providers: state.providers.size }, 'listening');
  await io.stdout.write(
    json ? (formatJsonLine(buildWelcome(running))?.join('') ?? '') : formatWelcome(running, chooseColors(io.stdout, io.env)),
  );
  // Node 20 aborts (exit code 134) at a normal exit without its terminal, whose settings it cannot restore.
  if ((await stopped) === 'SIGHUP') process.kill(process.pid, 'SIGHUP');
  return EXIT.ok;
}

async function stop({ log, state, close }: Running): Promise<void> {
  log.info({ deadline_ms: state.limits.drainMs }, 'draining');
  await close();
  log.info('stopped');
}
