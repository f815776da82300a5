/** Who is measured. */
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
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

const reference = (file) => () => [here(`../reference/${file}`)];
const DIRECT = { name: 'direct', client: OPENAI, model: same };
const PIPE = { name: 'node pipe', argv: reference('pipe.mjs'), client: OPENAI, model: same };

const HERE = here('../..');
const BIN = 'packages/gateway/bin/sluice.js';
const FOLDER = mkdtempSync(join(tmpdir(), 'sluice-bench-'));

function writeConfig(name, text = '') {
  const file = join(FOLDER, name);
  writeFileSync(file, CONFIG + text);
  return file;
}

/** Checkouts before 0.2 record nothing. */
const hasLedger = (checkout) => existsSync(join(checkout, 'packages/gateway/src/store'));

/** Each process has a data folder of its own. */
const serve = (checkout, config) => (port) => [
  join(checkout, BIN),
  'serve',
  ...['--config', config, '--port', String(port)],
  ...(hasLedger(checkout) ? ['--data', mkdtempSync(join(FOLDER, 'data-'))] : []),
];

/** What a gateway on a laptop does more than one with keys: it keeps the newest bodies in memory for the console. */
const RING_OFF = 'capture: { ring: off }\n';

/**
 * Sluice with its ledger on disk, beside the same without it; and with the bodies for the console, beside the ledger alone. `plain`: the
 * subject that it is compared with.
 */
function ledgersOf(plain) {
  const build = (name, beside, text) => ({
    ...plain,
    name: `${plain.name}, ${name}`,
    goal: undefined,
    plain: beside,
    argv: serve(HERE, writeConfig(`${name}.yaml`, text)),
  });
  const strict = build('strict ledger', plain.name, RING_OFF);
  const relaxed = build('relaxed ledger', plain.name, `durability: relaxed\n${RING_OFF}`);
  const ring = build('strict ledger and bodies', strict.name, '');
  return [strict, relaxed, { ...ring, atMost: {} }];
}

/** Sluice with a ledger and a key with every kind of limit, beside the same program with a key that has none. */
function limitsOf(plain) {
  const prices = 'default_price: { input: 1, output: 1 }\n';
  const config = writeConfig('limits.yaml', `${prices}budgets: [{ tag: team=a, limit: 1000000usd/month }]\n`);
  const name = (limits) => `${plain.name}, key ${limits === 'on' ? 'with' : 'without'} limits`;
  return ['off', 'on'].map((limits) => ({
    ...plain,
    name: name(limits),
    goal: undefined,
    argv: (port) => [here('./with-limits.mjs'), config, String(port), mkdtempSync(join(FOLDER, 'data-')), limits],
    ...(limits === 'on' && { plain: name('off'), atMost: { requestLoop: 1.3 } }),
  }));
}

/** Sluice of a checkout, passing and converting: as it is, or this one without a ledger. */
function sluiceOf(checkout) {
  const config = writeConfig('sluice.yaml');
  const argv = checkout ? serve(checkout, config) : (port) => [here('./without-ledger.mjs'), config, String(port)];
  const model = (name) => `pass/${name}`;
  return {
    passing: { name: 'Sluice, passing', argv, client: OPENAI, model, goal: 'passing' },
    converting: { name: 'Sluice, converting', argv, client: ANTHROPIC, model, goal: 'converting' },
  };
}

/** All subjects, the pipe second: everything is compared with it. `goal`: which goals the subject is held to. */
export function subjects() {
  const { passing, converting } = sluiceOf(undefined);
  return placed([
    DIRECT,
    PIPE,
    { name: 'Portkey, passing', argv: portkey, client: OPENAI, model: same, headers: PORTKEY_HEADERS },
    passing,
    ...ledgersOf(passing),
    ...limitsOf(passing),
    { name: 'hand-written, converting', argv: reference('hand-convert.mjs'), client: ANTHROPIC, model: same },
    converting,
    ...ledgersOf(converting),
    ...limitsOf(converting),
  ]);
}

/** Sluice of another checkout and of this one. `before`: the name of the subject to compare with. */
export function comparedSubjects(other) {
  // Like with like: this one has no ledger either when the other has none.
  const [before, after] = [sluiceOf(other), sluiceOf(hasLedger(other) ? HERE : undefined)];
  return placed([
    DIRECT,
    PIPE,
    ...['passing', 'converting'].flatMap((way) => [
      { ...before[way], name: `Sluice, ${way}, before` },
      { ...after[way], name: `Sluice, ${way}, after`, before: `Sluice, ${way}, before` },
    ]),
  ]);
}

/** The subjects that can be started, each with its port and command line. */
async function placed(rows) {
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
