import { oneLine } from '@sluice/lab/text';
import { createLineFormat, createLog } from '../../observe/log.ts';
import type { Running, RunOptions } from '../../server/run.ts';
import type { WorkerLink } from '../../server/worker.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { type CliIo, untilStopped } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';
import { buildWelcome, explainMistakes, formatWelcome, parsePort, parseWorkers, startGateway } from '../serve.ts';

interface Options {
  config: string | undefined;
  host: string | undefined;
  port: string | undefined;
  data: string | undefined;
  workers: string | undefined;
  json: boolean;
}

/** `sluice serve`: starts the gateway. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const { config, host, port, data = 'default', workers = '1', json } = options;
  if (words[0] !== undefined)
    throw new UsageError(`unexpected argument "${oneLine(words[0])}"; name the configuration with --config FILE`);
  const listen = { ...(host !== undefined && { host }), ...(port !== undefined && { port: parsePort(port) }) };
  const formatLog = io.stderr.isTTY && !json ? createLineFormat(chooseColors(io.stderr, io.env)) : undefined;
  const count = parseWorkers(workers);
  const start: StartOptions = { config, listen, data, ...(formatLog && { formatLog }) };
  if (count === 1) return serveAlone(start, json, io);
  const { WorkerLink } = await import('../../server/worker.ts');
  const worker = WorkerLink.find(io.env);
  return worker ? serveAsWorker({ ...start, worker }, json, io) : superviseWorkers(start, count, io);
}

type StartOptions = Pick<RunOptions, 'listen' | 'formatLog'> & { config: string | undefined; data: string };

async function serveAlone(options: StartOptions, json: boolean, io: CliIo): Promise<number> {
  const running = await startGateway(options, io);
  // Before the first output, because a reader of the output may send a signal at once.
  const stopped = stopOnSignal(
    () => stop(running),
    () => void running.reload(),
    io,
  );
  logListening(running);
  await io.stdout.write(formatStart(running, json, io));
  return endBy(await stopped);
}

/** One of several processes on the same port. */
async function serveAsWorker(options: StartOptions & { worker: WorkerLink }, json: boolean, io: CliIo): Promise<number> {
  const { worker } = options;
  try {
    const running = await startGateway(options, io);
    logListening(running);
    await worker.serve(formatStart(running, json, io), { stop: () => stop(running), reload: () => running.reload() });
    return EXIT.ok;
  } finally {
    worker.leave();
  }
}

/** The process that starts the workers. It serves nothing itself. */
async function superviseWorkers({ config, listen, formatLog }: StartOptions, count: number, io: CliIo): Promise<number> {
  const [{ readState, Workers }, { createRedact }, { SecretRegistry }] = await Promise.all([
    import('../../server/workers.ts'),
    import('../../observe/redact.ts'),
    import('../../config/secrets.ts'),
  ]);
  const secrets = new SecretRegistry();
  const {
    limits,
    responses,
    log: logging,
  } = await explainMistakes(config, () => readState({ config, folder: io.folder, count }, { env: io.env, secrets, listen }));
  const log = createLog(logging.level, createRedact(secrets), undefined, formatLog);
  if (responses.store === 'memory')
    log.warn(
      { workers: count },
      'each worker keeps its own responses: previous_response_id, conversations and background responses work only on the worker that made them; use --workers 1 for clients that need them',
    );
  const workers = new Workers({ count, log, stopMs: limits.drainDelayMs + limits.drainMs });
  const stopped = stopOnSignal(
    () => workers.stop(),
    () => workers.reload(),
    io,
  );
  const started = await workers.start();
  // A worker that cannot start has printed why.
  if ('code' in started && !workers.isStopping) return started.code;
  if ('welcome' in started) await io.stdout.write(started.welcome);
  return endBy(await stopped);
}

/** SIGTERM and SIGINT stop the gateway. SIGHUP does so with a terminal, and reloads the configuration without one. */
function stopOnSignal(close: () => Promise<void>, reload: () => void, { stdin, stdout }: CliIo): Promise<NodeJS.Signals> {
  const hasTerminal = stdin.isTTY || stdout.isTTY;
  if (!hasTerminal) process.on('SIGHUP', reload);
  return untilStopped(close, { stopsOnHangup: hasTerminal });
}

/** Node 20 aborts (exit code 134) at a normal exit without its terminal, whose settings it cannot restore. */
function endBy(signal: NodeJS.Signals): number {
  if (signal === 'SIGHUP') process.kill(process.pid, 'SIGHUP');
  return EXIT.ok;
}

const logListening = ({ url, file, state, log }: Running): void =>
  log.info({ url, ...(file !== undefined && { config: file }), providers: state.providers.size }, 'listening');

const formatStart = (running: Running, json: boolean, io: CliIo): string =>
  json
    ? (formatJsonLine(buildWelcome(running))?.join('') ?? '')
    : formatWelcome(running, chooseColors(io.stdout, io.env), { columns: io.stdout.columns, env: io.env });

async function stop({ log, state, close }: Running): Promise<void> {
  log.info({ deadline_ms: state.limits.drainMs }, 'draining');
  await close();
  log.info('stopped');
}
