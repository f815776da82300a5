/** Who is measured. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { portkey } from './portkey.js';
import { here } from './processes.js';

export const UPSTREAM_PORT = 9411;
const FIRST_PORT = 9412;
const UPSTREAM = `http://127.0.0.1:${UPSTREAM_PORT}`;

const messages = [{ role: 'user', content: 'Hi' }];
const OPENAI = { path: '/v1/chat/completions', body: (model, stream) => ({ model, stream, messages }) };
const ANTHROPIC = { path: '/v1/messages', body: (model, stream) => ({ model, stream, max_tokens: 100, messages }) };
const same = (model) => model;

const CONFIG = `log: { level: silent }
limits: { streams: 100000 }
providers:
  pass: { protocol: openai-chat, base_url: "${UPSTREAM}/v1", repair: false }
`;

/** All subjects, the pipe second: everything is compared with it. `isOurs`: held to the goals. */
export async function subjects() {
  const config = join(tmpdir(), `sluice-bench-${process.pid}.yaml`);
  writeFileSync(config, CONFIG);
  const sluice = (port) => [here('../../packages/gateway/bin/sluice.js'), 'serve', '--config', config, '--port', String(port)];
  const reference = (file) => () => [here(`../reference/${file}`)];
  const named = (model) => `pass/${model}`;
  const rows = [
    { name: 'direct', client: OPENAI, model: same },
    { name: 'node pipe', argv: reference('pipe.mjs'), client: OPENAI, model: same },
    { name: 'Portkey, passing', argv: portkey, client: OPENAI, model: same, headers: PORTKEY_HEADERS },
    { name: 'Sluice, passing', argv: sluice, client: OPENAI, model: named, goal: 'passing' },
    { name: 'hand-written, converting', argv: reference('hand-convert.mjs'), client: ANTHROPIC, model: same },
    { name: 'Sluice, converting', argv: sluice, client: ANTHROPIC, model: named, goal: 'converting' },
  ];
  const found = [];
  for (const [i, row] of rows.entries()) {
    const port = row.argv ? FIRST_PORT + i : UPSTREAM_PORT;
    const argv = row.argv && (await row.argv(port));
    if (argv || !row.argv)
      found.push({ ...row, port, argv, env: { PORT: String(port), UPSTREAM, TRUSTED_CUSTOM_HOSTS: '127.0.0.1' } });
  }
  return found;
}

const PORTKEY_HEADERS = `x-portkey-provider: openai\r\nx-portkey-custom-host: ${UPSTREAM}/v1\r\n`;
