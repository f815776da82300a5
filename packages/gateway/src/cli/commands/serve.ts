import { untilStopped } from '../../terminal/io.ts';
import { chooseColors } from '../../terminal/text.ts';
import { type Command, defineCommand } from '../command.ts';
import { formatWelcome, parsePort, startGateway } from '../serve.ts';

const OPTIONS = {
  config: {
    type: 'string',
    value: 'FILE',
    summary: 'the configuration; sluice.yaml of this folder when left out, else the environment alone',
  },
  host: { type: 'string', value: 'H', summary: 'where to listen (127.0.0.1); elsewhere only with client keys' },
  port: { type: 'string', value: 'N', summary: 'the port (4141)' },
} as const;

/** `sluice serve`: starts the gateway. */
export const serve: Command = defineCommand({
  summary: 'the gateway: any client, any upstream, on one port',
  usage: 'serve [--config FILE] [--host H] [--port N]',
  about:
    'Answers clients of all four protocols and asks whoever is configured. Providers whose keys are in the environment are there without a file; without any key, a built-in demo model answers. Reloads its configuration when the file changes, or on SIGHUP. SIGTERM and SIGINT let running streams finish; a second one stops at once. If stdin or stdout is a terminal at start, SIGHUP stops the gateway like SIGTERM: it does not outlive its terminal.',
  options: OPTIONS,
  examples: [
    { line: 'sluice serve', what: 'with the keys of the environment, or the demo model' },
    { line: 'sluice serve --config sluice.yaml --port 8080', what: 'with a file' },
  ],
  run: async ({ options }, io) => {
    const { config, host, port } = options;
    const listen = { ...(host !== undefined && { host }), ...(port !== undefined && { port: parsePort(port) }) };
    const running = await startGateway({ config, listen }, io);
    // Before the first output, because a reader of the output may send a signal at once.
    const hasTerminal = io.stdin.isTTY || io.stdout.isTTY;
    const stopped = untilStopped(() => running.close(), { stopsOnHangup: hasTerminal });
    if (!hasTerminal) process.on('SIGHUP', () => void running.reload());
    await io.stdout.write(formatWelcome(running, chooseColors(io.stdout, io.env)));
    // Node 20 aborts (exit code 134) at a normal exit without its terminal, whose settings it cannot restore.
    if ((await stopped) === 'SIGHUP') process.kill(process.pid, 'SIGHUP');
    return 0;
  },
});
