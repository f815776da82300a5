import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { openStore } from '../../src/store/index.ts';
import { run, systemError, type World } from '../fake-io.ts';
import { createTestFolder } from '../real-parts/programs.js';
import { ADMIN_KEY, type Project, startProject } from './projects.ts';

// What a user sees after a mistake: what is wrong, where, and what to do about it. One row per mistake.

interface Mistake {
  /** The words after "sluice". `{files}`, `{data}`, `{url}` and `{port}` stand for what the tests have. */
  readonly argv: string;
  readonly code: number;
  /** What is wrong. */
  readonly wrong: string | RegExp;
  /** Where: the file, option, setting or address. */
  readonly where: string | RegExp;
  /** What to do. */
  readonly remedy: string | RegExp;
  readonly world?: World;
}

const FILES = {
  'broken.yaml': 'providers: {\n  mine: { api_key: hunter2-secret-0123',
  'broken.json': '{"listen": {"port": 4141',
  'types.yaml': 'listen: { port: 70000 }\n',
  'level.yaml': 'log: { level: inof }\n',
  'unknown.yaml': 'listen:\n  prot: 4141\n',
  'unset.yaml':
    'providers:\n  mine: { protocol: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: env:MINE_KEY }\nmodels: { fast: mine/llama }\n',
  'budget.yaml': 'budgets: [{ tag: team=a, limit: 100 }]\n',
  'nodes.yaml': 'store: postgres://sluice:hunter2-secret-0123@127.0.0.1:9/db\nauth: { pepper_file: pepper }\n',
  'empty.yaml': '',
  'empty.sse': '',
  'text.txt': 'hello\nworld\n',
  'half.json': '{"model":"x"',
  'binary.bin': Buffer.from(Array.from({ length: 400 }, (_, at) => (at * 7) % 256)),
  'good.sse':
    'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
} as const;

const DENIED = { files: { 'locked.yaml': systemError('EACCES') } };

/** `sluice serve` and `sluice run` read the file themselves, so they need it on the disk. */
const MISTAKES: readonly Mistake[] = [
  // the words
  { argv: 'serv', code: 2, wrong: 'unknown command', where: '"serv"', remedy: 'did you mean "serve"?' },
  { argv: 'serve --prot 1', code: 2, wrong: 'unknown option', where: '"--prot"', remedy: 'did you mean "--port"?' },
  { argv: 'serve --port', code: 2, wrong: 'needs a value', where: '"--port"', remedy: '--port N' },
  { argv: 'serve sluice.yaml', code: 2, wrong: 'unexpected argument', where: '"sluice.yaml"', remedy: '--config FILE' },
  { argv: 'help serv', code: 2, wrong: 'unknown command', where: '"serv"', remedy: 'did you mean "serve"?' },
  // serve: file, settings, address
  { argv: 'serve --config {files}/nope.yaml', code: 2, wrong: 'no such file', where: 'nope.yaml', remedy: 'check the path' },
  { argv: 'serve --config {files}/folder', code: 2, wrong: 'this is a directory', where: '/folder', remedy: 'name a file in it' },
  {
    argv: 'serve --config {files}/binary.bin',
    code: 2,
    wrong: 'must be a map of settings',
    where: 'binary.bin:1:1',
    remedy: '"sluice init FILE" writes an example',
  },
  { argv: 'serve --config {files}/empty.yaml', code: 2, wrong: 'has no settings', where: 'empty.yaml', remedy: 'add some' },
  { argv: 'serve --config {files}/broken.yaml', code: 2, wrong: 'is not closed', where: /broken\.yaml:2:\d+/, remedy: 'add }' },
  { argv: 'serve --config {files}/broken.json', code: 2, wrong: 'is not closed', where: /broken\.json:1:\d+/, remedy: 'add }' },
  {
    argv: 'serve --config {files}/types.yaml',
    code: 2,
    wrong: 'listen.port',
    where: 'types.yaml:1:17',
    remedy: 'must be at most 65535',
  },
  {
    argv: 'serve --config {files}/level.yaml',
    code: 2,
    wrong: 'log.level',
    where: 'level.yaml:1:15',
    remedy: 'did you mean "info"?',
  },
  {
    argv: 'serve --config {files}/unknown.yaml',
    code: 2,
    wrong: 'unknown key "prot"',
    where: 'unknown.yaml:2:3',
    remedy: 'did you mean "port"?',
  },
  {
    argv: 'serve --config {files}/unset.yaml',
    code: 2,
    wrong: 'MINE_KEY is not set',
    where: 'providers.mine.api_key',
    remedy: 'set it, or change the reference',
  },
  {
    argv: 'serve --config {files}/budget.yaml',
    code: 2,
    wrong: 'must be US dollars and a period',
    where: 'budgets[0].limit',
    remedy: '100usd/week',
  },
  {
    argv: 'serve --config {files}/nodes.yaml --port 0',
    code: 2,
    wrong: 'nothing listens at 127.0.0.1:9',
    where: 'store: the database 127.0.0.1:9/db',
    remedy: 'start the server, or correct its address',
  },
  { argv: 'serve --port 70000', code: 2, wrong: 'must be a number up to 65535', where: '--port', remedy: 'not "70000"' },
  {
    argv: 'serve --port {port}',
    code: 2,
    wrong: 'is already in use',
    where: /port \d+ on 127\.0\.0\.1/,
    remedy: 'choose another with --port',
  },
  {
    argv: 'serve --host 192.0.2.1',
    code: 2,
    wrong: 'reachable from other machines',
    where: 'listen.host',
    remedy: 'sluice keys create',
  },
  {
    argv: 'serve --port 0 --data {files}/text.txt',
    code: 2,
    wrong: 'not writable',
    where: /^sluice: data: data folder ".*text\.txt"/,
    remedy: 'set another folder',
  },
  { argv: 'serve --workers many', code: 2, wrong: 'must be "auto" or a number', where: '--workers', remedy: 'from 1 to 64' },
  // clients
  { argv: 'run', code: 2, wrong: 'name a client', where: 'claude', remedy: 'sluice run --help' },
  { argv: 'run cluade', code: 2, wrong: 'unknown client', where: '"cluade"', remedy: 'did you mean "claude"?' },
  { argv: 'run claude --config {files}/nope.yaml', code: 2, wrong: 'no such file', where: 'nope.yaml', remedy: 'check the path' },
  {
    argv: 'run claude --url http://127.0.0.1:1',
    code: 2,
    wrong: 'no gateway responds',
    where: 'http://127.0.0.1:1',
    remedy: 'start one with "sluice serve"',
  },
  { argv: 'env codexx', code: 2, wrong: 'unknown client', where: '"codexx"', remedy: 'did you mean "codex"?' },
  { argv: 'env claude --shell fihs', code: 2, wrong: 'unknown shell', where: '"fihs"', remedy: 'did you mean "fish"?' },
  {
    argv: 'env claude --url ftp://x',
    code: 2,
    wrong: 'must be an address',
    where: '--url',
    remedy: 'such as http://127.0.0.1:4141',
  },
  // configuration
  { argv: 'init {files}/unset.yaml', code: 2, wrong: 'exists', where: 'unset.yaml', remedy: 'use --force to overwrite it' },
  {
    argv: 'init {files}/nowhere/x.yaml',
    code: 1,
    wrong: 'its folder does not exist',
    where: 'nowhere/x.yaml',
    remedy: 'create that',
  },
  { argv: 'import litelm x.yaml', code: 2, wrong: 'unknown gateway', where: '"litelm"', remedy: 'did you mean "litellm"?' },
  { argv: 'import litellm {files}/nope.yaml', code: 2, wrong: 'no such file', where: 'nope.yaml', remedy: 'check the path' },
  { argv: 'config chek', code: 2, wrong: 'unknown action', where: '"chek"', remedy: 'did you mean "check"?' },
  {
    argv: 'config check locked.yaml',
    code: 2,
    wrong: 'permission denied',
    where: 'locked.yaml',
    remedy: 'check who may read the file',
    world: DENIED,
  },
  {
    argv: 'config check {files}/budget.yaml',
    code: 1,
    wrong: 'must be US dollars and a period',
    where: /budget\.yaml:1:\d+: budgets\[0\]\.limit/,
    remedy: '100usd/week',
  },
  { argv: 'config push {files}/unset.yaml', code: 2, wrong: 'name the database', where: '--store', remedy: 'set SLUICE_STORE' },
  {
    argv: 'config push {files}/unset.yaml --store postgres://u:hunter2-secret-0123@127.0.0.1:9/db',
    code: 1,
    wrong: 'nothing listens',
    where: '127.0.0.1:9',
    remedy: 'start the server, or correct its address',
  },
  {
    argv: 'prices gpt-5-turbo-nano',
    code: 1,
    wrong: 'no price is known',
    where: '"gpt-5-turbo-nano"',
    remedy: 'set one under "prices"',
  },
  { argv: 'prices --provider opnai', code: 2, wrong: 'unknown provider', where: '"opnai"', remedy: 'did you mean "openai"?' },
  {
    argv: 'route fats --config {files}/unset.yaml',
    code: 1,
    wrong: 'no provider is configured',
    where: '"fats"',
    remedy: 'did you mean "fast"?',
  },
  {
    argv: 'route fast --from chat',
    code: 2,
    wrong: 'must be one of',
    where: '--from',
    remedy: 'openai-chat, anthropic-messages',
  },
  {
    argv: 'route --request {files}/half.json',
    code: 2,
    wrong: 'is not JSON',
    where: 'half.json',
    remedy: '--request needs the body of a request',
  },
  // usage and keys
  { argv: 'usage --by modle --data {data}', code: 2, wrong: 'must be one of', where: '--by', remedy: 'did you mean "model"?' },
  {
    argv: 'usage --since yesterday --data {data}',
    code: 2,
    wrong: '"yesterday" is not a time',
    where: '--since',
    remedy: 'use 2h, 7d',
  },
  {
    argv: 'usage --data {files}/folder',
    code: 2,
    wrong: 'no usage data',
    where: '/folder',
    remedy: 'name the folder of the gateway with --data',
  },
  {
    argv: 'usage --url http://127.0.0.1:1',
    code: 2,
    wrong: 'no gateway responds',
    where: 'http://127.0.0.1:1',
    remedy: 'check --url',
  },
  {
    argv: 'usage --url {url} --key wrong-key',
    code: 2,
    wrong: /the admin API (requires a key|refused access)/,
    where: /the gateway at http/,
    remedy: /SLUICE_ADMIN_KEY|admin key/,
  },
  {
    argv: 'log stauts:error --data {data}',
    code: 2,
    wrong: 'unknown field',
    where: '"stauts"',
    remedy: 'did you mean "status"?',
  },
  { argv: 'log ms:slow --data {data}', code: 2, wrong: 'is not a number', where: 'ms: "slow"', remedy: 'use ms:>2000' },
  {
    argv: 'log deadbeef0000 --data {data}',
    code: 1,
    wrong: 'no exchange has the id',
    where: 'deadbeef0000',
    remedy: '"sluice log" lists the newest',
  },
  {
    argv: 'keys creat alice --data {data}',
    code: 2,
    wrong: 'unknown action',
    where: '"creat"',
    remedy: 'did you mean "create"?',
  },
  {
    argv: 'keys create alice --budget 100 --data {data}',
    code: 2,
    wrong: 'must be an amount and a period',
    where: '--budget',
    remedy: 'such as 20usd/month',
  },
  {
    argv: 'keys create alice --expires soon --data {data}',
    code: 2,
    wrong: 'must be a duration',
    where: '--expires',
    remedy: 'such as 90d',
  },
  {
    argv: 'keys create taken --data {data}',
    code: 2,
    wrong: 'there is a key with the name',
    where: '"taken"',
    remedy: 'choose another',
  },
  {
    argv: 'keys show bob --data {data}',
    code: 1,
    wrong: 'no key has the name or id',
    where: '"bob"',
    remedy: '"sluice keys list --all" lists them',
  },
  { argv: 'audit --limit many --data {data}', code: 2, wrong: 'must be a number', where: '--limit', remedy: 'from 1 to 100000' },
  { argv: 'backup {files}/text.txt --data {data}', code: 2, wrong: 'exists', where: 'text.txt', remedy: 'choose another name' },
  {
    argv: 'backup {files}/nowhere/x.db --data {data}',
    code: 2,
    wrong: 'its folder does not exist',
    where: 'nowhere/x.db',
    remedy: 'create that',
  },
  {
    argv: 'restore {files}/text.txt --data {data}',
    code: 1,
    wrong: 'not a database',
    where: 'text.txt',
    remedy: 'name a file that "sluice backup" has written',
  },
  {
    argv: 'restore {files}/folder --data {data}',
    code: 2,
    wrong: 'this is a directory',
    where: '/folder',
    remedy: 'name a file in it',
  },
  {
    argv: 'migrate --to postgres://u:hunter2-secret-0123@127.0.0.1:9/db --data {data}',
    code: 1,
    wrong: 'nothing listens',
    where: '127.0.0.1:9',
    remedy: 'start the server',
  },
  {
    argv: 'migrate --to env:NO_SUCH_STORE --data {data}',
    code: 2,
    wrong: 'NO_SUCH_STORE is not set',
    where: '--to',
    remedy: 'set it',
  },
  {
    argv: 'migrate --to mysql://x/y --data {data}',
    code: 1,
    wrong: 'the address of the database',
    where: 'address',
    remedy: 'must begin with postgres://',
  },
  // streams
  { argv: 'assemble {files}/nope.sse', code: 2, wrong: 'no such file', where: 'nope.sse', remedy: 'check the path' },
  {
    argv: 'assemble {files}/folder',
    code: 2,
    wrong: 'the folder is empty',
    where: '/folder',
    remedy: 'name one with recorded responses',
  },
  {
    argv: 'assemble {files}/good.sse --protocol opnai',
    code: 2,
    wrong: 'unknown protocol',
    where: '"opnai"',
    remedy: 'did you mean "openai"?',
  },
  {
    argv: 'convert request --from openai --to anthropic {files}/half.json',
    code: 1,
    wrong: 'not JSON',
    where: 'half.json',
    remedy: 'check that the file is whole',
  },
  { argv: 'convert stream {files}/good.sse', code: 2, wrong: '--to is required', where: '--to', remedy: 'name a protocol' },
  {
    argv: 'convert stream --to anthropic --out {files}/text.txt {files}/good.sse',
    code: 1,
    wrong: 'this is a file',
    where: 'text.txt',
    remedy: 'name another path',
  },
  {
    argv: 'doctor {files}/text.txt',
    code: 1,
    wrong: 'found text that is not an event stream',
    where: 'text.txt',
    remedy: 'Check that the file is the body of a response',
  },
  {
    argv: 'doctor {files}/empty.sse',
    code: 1,
    wrong: 'the body is empty',
    where: 'empty.sse',
    remedy: 'check that it was saved',
  },
  {
    argv: 'doctor --url http://127.0.0.1:1/v1 --model m',
    code: 1,
    wrong: 'nothing listens',
    where: '127.0.0.1:1',
    remedy: 'start the server, or correct --url',
  },
  {
    argv: 'doctor --url http://127.0.0.1:1/v1 --model m --key-env NO_SUCH_KEY',
    code: 2,
    wrong: 'NO_SUCH_KEY is not set',
    where: 'environment variable',
    remedy: 'name another with --key-env',
  },
  {
    argv: 'doctor rules chat/tool-index-resued',
    code: 2,
    wrong: 'unknown rule',
    where: '"chat/tool-index-resued"',
    remedy: 'did you mean "chat/tool-index-reused"?',
  },
  {
    argv: 'repair {files}/text.txt',
    code: 1,
    wrong: 'found text that is not an event stream',
    where: 'text.txt',
    remedy: 'check that the file is the body of a response',
  },
  {
    argv: 'prove {files}/binary.bin',
    code: 1,
    wrong: 'found binary data',
    where: 'binary.bin',
    remedy: 'check that the file is the body of a response',
  },
  {
    argv: 'diff {files}/good.sse',
    code: 2,
    wrong: 'name two inputs',
    where: 'files, folders, tapes',
    remedy: 'sluice diff --help',
  },
  {
    argv: 'inspect {files}/text.txt',
    code: 2,
    wrong: 'no protocol can be recognised',
    where: 'text.txt',
    remedy: 'choose its protocol',
  },
  {
    argv: 'shrink {files}/good.sse',
    code: 2,
    wrong: '--until is required',
    where: '--until',
    remedy: 'a RULE that the stream must still show',
  },
  { argv: 'record --upstream nowhere', code: 2, wrong: 'must be a URL', where: '--upstream', remedy: 'https://' },
  {
    argv: 'record --upstream http://127.0.0.1:1 --out {files}/text.txt',
    code: 2,
    wrong: 'a folder is needed',
    where: 'text.txt',
    remedy: 'name another path',
  },
  {
    argv: 'replay {files}/text.txt',
    code: 2,
    wrong: 'is not a response stream',
    where: 'text.txt',
    remedy: 'name a tape of "sluice record"',
  },
  {
    argv: 'replay --fault ctu=300 {files}/good.sse',
    code: 2,
    wrong: 'unknown fault',
    where: '"ctu"',
    remedy: /did you mean|--faults" lists them/,
  },
  { argv: 'completion csh', code: 2, wrong: 'unknown shell', where: '"csh"', remedy: 'bash, zsh, fish' },
];

const files = createTestFolder('mistakes');
const data = join(files, 'data');
let gateway: Project;
let taken: Server;

beforeAll(async () => {
  mkdirSync(join(files, 'folder'), { recursive: true });
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(files, name), content);
  await (await openStore({ folder: data, ballastBytes: 0 })).close();
  expect(await run(['keys', 'create', 'taken', '--data', data], { hasDisk: true })).toMatchObject({ code: 0 });
  gateway = await startProject();
  taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
});

afterAll(async () => {
  taken.close();
  await gateway.running.close();
});

function fill(word: string): string {
  const address = taken.address();
  const port = typeof address === 'object' && address ? String(address.port) : '';
  return word.replace('{files}', files).replace('{data}', data).replace('{url}', gateway.url).replace('{port}', port);
}

describe('a mistake on the command line', () => {
  test.each(MISTAKES)('sluice $argv', async ({ argv, code, wrong, where, remedy, world = { hasDisk: true } }) => {
    const result = await run(argv.split(' ').map(fill), { terminals: ['stdin'], ...world });
    const text = result.stderr + result.stdout;
    for (const part of [wrong, where, remedy]) expect(text).toMatch(part instanceof RegExp ? part : literal(part));
    expect(result.code).toBe(code);
    for (const noise of [/internal error/, /^ +at /m, /\bE[A-Z]{4,}: .*, [a-z]+ '/, /hunter2-secret/, new RegExp(ADMIN_KEY)])
      expect(text).not.toMatch(noise);
  });

  test('is tested for every command', () => {
    const tested = new Set(MISTAKES.map(({ argv }) => argv.split(' ', 1).join()));
    expect(Object.keys(COMMANDS).filter((name) => !tested.has(name))).toEqual([]);
  });
});

const literal = (text: string): RegExp => new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
