import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProtocolId } from '../../packages/core/src/index.ts';
import { type Running, run } from '../../packages/gateway/src/server/run.ts';

/** The end of a base URL of each protocol. */
const ROOTS = { 'openai-chat': '/v1', 'anthropic-messages': '', 'openai-responses': '/v1', gemini: '/v1beta' } as const;
ROOTS satisfies Record<ProtocolId, string>;

export const UPSTREAMS = Object.keys(ROOTS) as ProtocolId[]; // a record has the keys it is typed with

/** Who answers with a variant of a protocol. */
export const modelOf = (protocol: ProtocolId, variant = 'default'): string => `${providerOf(protocol, variant)}/mock-model`;
const providerOf = (protocol: ProtocolId, variant: string): string => `${protocol}-${variant}`;

/** A gateway in this process, in front of the scripted upstream in another. */
export interface Stage {
  url: string;
  /** The providers that were asked, and answered 200, as the gateway counts them. */
  asked(): Promise<ReadonlySet<string>>;
  close(): Promise<void>;
}

/** `clients`: the folder of the scripted upstream; `variants`: what it can be asked to do. */
export async function setStage(clients: string, variants: readonly string[]): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-clients-'));
  const mock = spawn(process.execPath, [join(clients, 'mock', 'mock.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const gateway = await startGateway(folder, await addressOf(mock), variants);
  return {
    url: gateway.url,
    asked: async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      return new Set(
        [...metrics.matchAll(/^sluice_requests_total\{provider="([^"]+)".*status="200"/gm)].map(([, id = '']) => id),
      );
    },
    close: async () => {
      await gateway.close(0);
      mock.kill();
      await once(mock, 'exit');
      rmSync(folder, { recursive: true });
    },
  };
}

async function addressOf(mock: ChildProcess): Promise<string> {
  const [line] = mock.stdout ? await once(mock.stdout, 'data') : [];
  const address = /http:\S+/.exec(String(line))?.[0];
  if (address === undefined) throw new Error(`the scripted upstream does not say where it is: ${line}`);
  return address;
}

function startGateway(folder: string, mock: string, variants: readonly string[]): Promise<Running> {
  const providers = UPSTREAMS.flatMap((protocol) =>
    ['default', ...variants].map((variant) => [
      providerOf(protocol, variant),
      { protocol, base_url: `${mock}/_v/${variant}${ROOTS[protocol]}`, api_key: 'sk-fake-0000', repair: true },
    ]),
  );
  const config = join(folder, 'sluice.json');
  writeFileSync(config, JSON.stringify({ providers: Object.fromEntries(providers) }));
  return run({ config, folder, env: {}, listen: { port: 0 }, log: 'silent' });
}
