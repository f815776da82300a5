/** `sluice`: the gateway inside of another program. */

import type { LogLevel } from './config/options.ts';
import { type Running, run } from './server/run.ts';

export type { LogLevel } from './config/options.ts';
export { ConfigError } from './config/problems.ts';

/** How an embedded gateway runs. Everything is optional; without options it runs like `sluice serve`. */
export interface GatewayOptions {
  /** The configuration file. Default: `sluice.yaml` of the current folder, else the environment alone. */
  config?: string;
  /** Where the keys of providers come from. Default: `process.env`. */
  env?: Readonly<Record<string, string | undefined>>;
  /** The address to listen on. Default: that of the configuration, else 127.0.0.1. Others need client keys. */
  host?: string;
  /** The port to listen on; 0 takes a free one. Default: that of the configuration, else 4141. */
  port?: number;
  /** The log level. Default: that of the configuration. Logs are lines of JSON on stderr. */
  log?: LogLevel;
}

/** A gateway in this process. */
export interface EmbeddedGateway {
  /** Where clients reach the gateway; undefined while it does not listen. */
  readonly url: string | undefined;
  /**
   * Starts to listen and resolves with the URL. Rejects with a `ConfigError` when the configuration is invalid, and with node's
   * error when the address cannot be used. A gateway that listens already keeps its URL.
   */
  listen(): Promise<string>;
  /** Reads the configuration file again. An invalid one is logged, and the previous one stays in force. */
  reload(): Promise<void>;
  /** Stops to listen and waits for running requests, at most `deadlineMs` (default: `limits.drain` of the configuration). */
  close(deadlineMs?: number): Promise<void>;
}

/**
 * Creates a gateway for use inside of another program.
 *
 * ```ts
 * import { createGateway } from 'sluice';
 *
 * const gateway = createGateway({ config: 'sluice.yaml', port: 0 });
 * const url = await gateway.listen();
 * // … new OpenAI({ baseURL: `${url}/v1` })
 * await gateway.close();
 * ```
 */
export function createGateway(options: GatewayOptions = {}): EmbeddedGateway {
  let starting: Promise<Running> | undefined;
  let running: Running | undefined;

  return {
    get url() {
      return running?.url;
    },
    async listen() {
      starting ??= start(options);
      try {
        running = await starting;
        return running.url;
      } catch (error) {
        starting = undefined;
        throw error;
      }
    },
    async reload() {
      await running?.reload();
    },
    async close(deadlineMs) {
      // Also one that is about to listen. Why it could not is the business of `listen`.
      const started = await starting?.catch(() => undefined);
      starting = undefined;
      running = undefined;
      await started?.close(deadlineMs);
    },
  };
}

function start({ config, env = process.env, host, port, log }: GatewayOptions): Promise<Running> {
  return run({
    ...(config !== undefined && { config }),
    ...(log !== undefined && { log }),
    folder: process.cwd(),
    env,
    listen: { ...(host !== undefined && { host }), ...(port !== undefined && { port }) },
  });
}
