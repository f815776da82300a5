/** Who is measured: programs that pass requests on or convert them, with what it takes to start each and to send it a request. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildRequest } from '../data/requests.js';
import { ROOT } from '../method/commits.js';
import { findPortkey, PORTKEY_VERSION } from './portkey.js';
import { CORES, findPort, here, start, startNode, stop, waitForPort } from './processes.js';

/** A client protocol in front, an upstream protocol behind. */
export const DIRECTIONS = [
  { id: 'pass', client: 'openai-chat', upstream: 'chat' },
  { id: 'anthropic>chat', client: 'anthropic-messages', upstream: 'chat' },
  { id: 'chat>anthropic', client: 'openai-chat', upstream: 'anthropic' },
  { id: 'responses>chat', client: 'openai-responses', upstream: 'chat' },
  { id: 'gemini>chat', client: 'gemini', upstream: 'chat' },
];
const findDirection = (id) => DIRECTIONS.find((direction) => direction.id === id);

const PATHS = {
  'openai-chat': () => '/v1/chat/completions',
  'anthropic-messages': () => '/v1/messages',
  'openai-responses': () => '/v1/responses',
  gemini: (model, stream) => `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
};

/** Every file of a run is in here. */
export const FOLDER = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
process.on('exit', () => rmSync(FOLDER, { recursive: true, force: true }));

let upstreamPort;
const upstreamUrl = () => `http://127.0.0.1:${upstreamPort}`;

/** Starts the scripted upstream; every subject that is launched later uses it. */
export async function startUpstream() {
  upstreamPort = await findPort();
  const child = startNode([here('./upstream.js')], { core: CORES.others, env: { PORT: String(upstreamPort) } });
  await waitForPort(upstreamPort, child);
  return child;
}

function writeFile(name, text) {
  const file = join(FOLDER, name);
  writeFileSync(file, text);
  return file;
}

const reference = (file) => ({ launch: () => ({ args: [here(`../reference/${file}`)] }) });

const NGINX = (
  port,
  folder,
) => `daemon off; master_process off; worker_processes 1; pid ${folder}/nginx.pid; error_log /dev/null crit;
events { worker_connections 20000; }
http { access_log off; client_max_body_size 64m; client_body_buffer_size 2m; keepalive_requests 100000000;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  upstream up { server 127.0.0.1:${upstreamPort}; keepalive 8192; keepalive_requests 100000000; }
  server { listen 127.0.0.1:${port} backlog=8192; location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header connection ""; proxy_buffering off; proxy_read_timeout 600s; } } }
`;

const HAPROXY = (port) => `global
  nbthread 1
  maxconn 9000
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
  option http-no-delay
frontend front
  bind 127.0.0.1:${port} backlog 8192
  default_backend back
backend back
  server up 127.0.0.1:${upstreamPort} pool-max-conn 8192
`;

function findProgram(name) {
  const found = ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin']
    .map((folder) => join(folder, name))
    .find(existsSync);
  return found;
}

/** A program of the system, or why it is left out. */
function systemProgram(name, buildArgs) {
  return {
    processes: 1,
    signal: 'SIGTERM',
    missing: () =>
      findProgram(name) ? undefined : `${name} is not installed (apt-get install ${name === 'nginx' ? 'nginx-light' : name})`,
    launch: (port) => ({ program: findProgram(name), args: buildArgs(port) }),
  };
}

const CONFIG = () => `limits: { streams: 100000 }
providers:
  chat: { protocol: openai-chat, base_url: "${upstreamUrl()}/v1", repair: false }
  anthropic: { protocol: anthropic-messages, base_url: "${upstreamUrl()}", repair: false }
`;
const SILENT = 'log: { level: silent }\n';
const NO_RING = 'capture: { ring: off }\n';
/** Prices, so that budgets count. */
const BUDGETS = 'default_price: { input: 1, output: 1 }\nbudgets: [{ tag: team=a, limit: 1000000usd/month }]\n';
const KEY_LIMITS = [
  '--budget',
  '1000000usd/month',
  '--rpm',
  '1000000000',
  '--tpm',
  '1000000000',
  '--concurrency',
  '1000000',
  '--tag',
  'team=a',
];

const binary = (checkout) => join(checkout, 'packages/gateway/bin/sluice.js');

/** A data folder with one client key: `{ folder, key }`. It is made once, and copied for every process. */
const templates = new Map();
export function createDataFolder(checkout, hasKey) {
  const folder = mkdtempSync(join(FOLDER, 'data-'));
  if (!hasKey) return { folder };
  if (!templates.has(checkout)) {
    const template = mkdtempSync(join(FOLDER, 'template-'));
    const key = execFileSync(process.execPath, [binary(checkout), 'keys', 'create', 'bench', ...KEY_LIMITS, '--data', template], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    templates.set(checkout, { template, key });
  }
  const { template, key } = templates.get(checkout);
  cpSync(template, folder, { recursive: true });
  return { folder, key };
}

/** `sluice serve`, with what its configuration adds. `more`: flags of the command. */
export function serve({ checkout = ROOT, config, hasKey = false, data, more = [] }) {
  const file = writeFile(`${Math.random().toString(36).slice(2)}.yaml`, CONFIG() + config);
  const { folder, key } = data ?? createDataFolder(checkout, hasKey);
  return (port) => ({
    args: [binary(checkout), 'serve', '--config', file, '--port', String(port), '--data', folder, ...more],
    key,
  });
}

/** What operators run: ledger on disk, a client key with limits, budgets, log lines. With keys, captures are off until somebody asks for them. */
export const FULL = { config: BUDGETS, hasKey: true };

/** Built when it is launched: each process has a data folder of its own. */
export const sluice = (way, build) => ({ way, isSluice: true, launch: (port) => build()(port) });

function serveBare() {
  const file = writeFile('bare.yaml', SILENT + CONFIG());
  return (port) => ({ args: [here('./without-ledger.mjs'), file, String(port)] });
}

const PORTKEY = {
  prepare: findPortkey,
  launch: (port, program) => ({ args: [...program, `--port=${port}`, '--headless'], env: { TRUSTED_CUSTOM_HOSTS: '127.0.0.1' } }),
  headers: ({ upstream }) => [
    `x-portkey-provider: ${upstream === 'chat' ? 'openai' : 'anthropic'}`,
    `x-portkey-custom-host: ${upstreamUrl()}/v1`,
  ],
};

/**
 * All subjects by name and way. `way`: `pass` or `convert` for those that have processes of their own for it, so that what the compiler learnt from
 * one does not affect the other. Three processes each, unless `processes` says otherwise: they settle in different compiler states.
 */
const SUBJECTS = [
  {
    name: 'nginx',
    ...systemProgram('nginx', (port) => ['-c', writeFile(`nginx-${port}.conf`, NGINX(port, createRunFolder())), '-p', FOLDER]),
  },
  { name: 'haproxy', ...systemProgram('haproxy', (port) => ['-db', '-f', writeFile(`haproxy-${port}.cfg`, HAPROXY(port))]) },
  { name: 'undici', ...reference('undici.mjs') },
  { name: 'pipe', ...reference('pipe.mjs') },
  { name: 'hand', ...reference('hand-convert.mjs') },
  { name: 'portkey', ...PORTKEY },
  ...['pass', 'convert'].flatMap((way) => [
    { name: 'sluice', ...sluice(way, serveBare) },
    { name: 'sluice-full', ...sluice(way, () => serve(FULL)) },
  ]),
  { name: 'sluice+ledger', ...sluice('pass', () => serve({ config: SILENT + NO_RING })) },
  { name: 'sluice+ring', ...sluice('pass', () => serve({ config: SILENT })) },
  { name: 'sluice+captures', ...sluice('pass', () => serve({ ...FULL, config: `${BUDGETS}capture: { models: ["*"] }\n` })) },
  { name: 'sluice+key', ...sluice('pass', () => serve({ config: SILENT + NO_RING + BUDGETS, hasKey: true })) },
];

function createRunFolder() {
  const folder = mkdtempSync(join(FOLDER, 'run-'));
  mkdirSync(join(folder, 'body'));
  return folder;
}

/** What a subject needs is there, or a word why not: `{ found, missing }`. */
export async function findSubjects() {
  const found = [];
  const missing = {};
  for (const subject of SUBJECTS) {
    const reason = subject.missing?.();
    const prepared = reason === undefined && subject.prepare ? await subject.prepare() : {};
    if (reason ?? prepared.missing) missing[subject.name] = reason ?? prepared.missing;
    else found.push({ processes: 3, ...subject, prepared: prepared.found });
  }
  return { found, missing };
}

/**
 * Subjects are idle while others have their turns. After some seconds V8 would collect what it thinks is no longer used, the code of their functions
 * with it, and each slice would measure how it is compiled again.
 */
const KEEP_CODE = ['--no-flush-bytecode', '--no-memory-reducer'];

/** Makes everything ready, such as data folders; the function starts the process. `flags`: of node. `isColdLater`: with the usual settings of V8. */
export function prepare(subject, port, { flags = [], env: more = {}, core = CORES.gateway, isColdLater = false } = {}) {
  const { program, args, env, key } = subject.launch(port, subject.prepared);
  const options = { core, env: { PORT: String(port), UPSTREAM: upstreamUrl(), ...env, ...more }, isQuiet: true };
  const begin = () =>
    program ? start(program, args, options) : startNode([...(isColdLater ? [] : KEEP_CODE), ...flags, ...args], options);
  return { begin, key };
}

/** Starts one process of a subject, and waits until it listens. */
export async function launch(subject, options) {
  const port = await findPort();
  const { begin, key } = prepare(subject, port, options);
  const child = begin();
  await waitForPort(port, child);
  return { subject, child, pid: child.pid, port, key, end: () => stop(child, subject.signal) };
}

/** The upstream itself, as a subject whose requests go there directly. */
export const directInstance = () => ({ subject: { name: 'direct' }, port: upstreamPort });

/** What the load generator sends to an instance. `model`: of script.js; `request`: of data/requests.js. */
export function buildTarget(instance, { direction: id, request = '0.1k', model, stream = false }) {
  const direction = findDirection(id);
  const { subject, port, key } = instance;
  const named = stream ? `${model}-k%k` : model;
  const sent = subject.isSluice ? `${direction.upstream}/${named}` : named;
  const isPassing = id === 'pass';
  return {
    port,
    key,
    headers: subject.headers?.(direction) ?? [],
    path: PATHS[direction.client](sent, stream),
    body: JSON.stringify(buildRequest(request, direction.client, { model: sent, stream })),
    protocol: direction.client,
    model: named,
    isExact: isPassing,
  };
}

export function listVersions() {
  const versionOf = (program, args, pattern) => {
    const path = findProgram(program);
    if (!path) return undefined;
    const text = execFileSync('sh', ['-c', `${path} ${args} 2>&1`], { encoding: 'utf8' });
    return pattern.exec(text)?.[1];
  };
  const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/gateway/node_modules/undici/package.json'), 'utf8'));
  return {
    nginx: versionOf('nginx', '-v', /nginx\/([\d.]+)/),
    haproxy: versionOf('haproxy', '-v', /version ([\d.]+)/),
    undici: version,
    '@portkey-ai/gateway': PORTKEY_VERSION,
  };
}
