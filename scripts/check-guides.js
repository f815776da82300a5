/**
 * Follows the guides as new users do: `npm run guides`, or `npm run guides -- --only team`. Every guide is read from top to bottom by another
 * user in an empty folder, with a home of its own and nothing but node, git and npm; each command must succeed and print what the guide shows.
 * Prints steps and minutes of each. `--here` uses the command of this checkout instead of installing a clone. `--with docker,systemd,kubectl` runs also the steps that need these; by default they are skipped and listed.
 *
 * Instead of providers, a gateway with the demo model responds. Claude Code, which one guide starts, is the real one of npm.
 */
import { execFileSync, spawn } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { runNpm } from './build/npm.js';
import { ROOT } from './build/packages.js';
import { Session } from './guides/session.js';
import { countCommands, findMissingLine, readSteps } from './guides/steps.js';

/** The guides, who follows them, and what they take for granted besides node, git and npm. */
const GUIDES = [
  { name: 'broken-stream', page: 'docs/start-broken-stream.md' },
  { name: 'agent', page: 'docs/start-agent.md', world: ['claude'] },
  { name: 'team', page: 'docs/start-team.md' },
  { name: 'team-session', page: 'docs/teams.md' },
  { name: 'deploy', page: 'docs/deploy.md' },
];

/** Ports that the guides use. */
const PORTS = [4141, 8000, 9464];
const CLAUDE_CODE = '@anthropic-ai/claude-code@2.1.197';

/** What a server prints when it is ready. */
const READY = / on http:\/\/\S+:\d+/;

/** The line of a guide that installs the command. */
const INSTALLS = 'npm ci && npm run install-sluice';

/** Instead of it with `--here`: the library of this checkout, into the clone. */
const COPIES_BUILD = `cp -R '${join(ROOT, 'packages/core/dist')}' packages/core/`;

/** What a reader puts in place of "…". */
const VALUES = {
  OPENAI_API_KEY: 'sk-guide-0000000000000000',
  ANTHROPIC_API_KEY: 'sk-ant-guide-000000000000',
};

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, here: { type: 'boolean', default: false }, with: { type: 'string', default: '' } },
});
const available = new Set(options.with.split(',').filter(Boolean));
const isRoot = process.getuid?.() === 0;
const ids = isRoot ? { uid: 1000, gid: 1000 } : {};

const chosen = GUIDES.filter(({ name }) => options.only === undefined || name === options.only);
if (chosen.length === 0)
  throw new Error(`no guide is called "${options.only}"; known: ${GUIDES.map(({ name }) => name).join(', ')}`);
for (const port of PORTS) if (await isListening(port)) throw new Error(`port ${port} is in use; the guides need it`);

process.umask(0o022);
const folder = mkdtempSync(join(tmpdir(), 'sluice-guides-'));
const NPM_CACHE = join(folder, 'npm-cache');
const programs = [];
try {
  execFileSync('chmod', ['755', folder]);
  const repository = copyRepository();
  createFolder(NPM_CACHE);
  const results = [];
  for (const guide of chosen) results.push(await follow(guide, repository));
  report(results);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  for (const program of programs) program.kill();
  rmSync(folder, { recursive: true, force: true });
}

/** A repository to clone, with the files of this one as they are now. */
function copyRepository() {
  const target = join(folder, 'repository');
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    cpSync(join(ROOT, file), join(target, file));
  }
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=guides', '-c', 'user.email=guides@localhost', ...args], { cwd: target });
  git('init', '--quiet');
  git('add', '--all', '--force');
  git('commit', '--quiet', '--message', 'The files as they are now');
  // git clones only from a folder of the same user.
  if (isRoot) execFileSync('chown', ['-R', `${ids.uid}:${ids.gid}`, target]);
  return target;
}

async function follow({ name, page, world = [] }, repository) {
  const home = join(folder, name);
  createFolder(home);
  // A response with an error fails a step; by itself, curl prints it and succeeds.
  writeFileSync(join(home, '.curlrc'), 'fail-with-body\n');
  const env = { ...buildEnvironment(home), ...(await prepareWorld(world, home)) };
  const session = new Session({ cwd: home, env, ...ids }, home);
  const begun = performance.now();
  const counts = { commands: 0, skipped: [] };
  console.log(`== ${name}: ${page}`);
  try {
    const text = readFileSync(join(ROOT, page), 'utf8');
    await expectSuccess(session, `git clone --quiet ${repository} sluice && cd sluice`, 0, 'before');
    if (options.here) placeCommand(home);
    else if (!text.includes(INSTALLS)) await expectSuccess(session, INSTALLS, 0, 'docs/install.md');
    for (const step of readSteps(text, available)) await take(step, { page, session, counts });
  } finally {
    await session.end();
  }
  return { name, page, minutes: (performance.now() - begun) / 60_000, ...counts };
}

async function take(step, { page, session, counts }) {
  const code = fillIn(step.code);
  const place = `${page}:${step.line}`;
  switch (step.kind) {
    case 'skip':
      counts.skipped.push(`${place} needs ${step.needs}`);
      return;
    case 'file':
      await expectSuccess(session, `cat > ${step.name} << 'END OF FILE'\n${code}END OF FILE\n`, 0, place);
      return;
    case 'terminal':
      counts.commands += countCommands(code);
      console.log(`  ${place}  ${code.trim()}  (in its own terminal)`);
      await session.start(code, READY);
      return;
    case 'run': {
      counts.commands += countCommands(code);
      const output = await expectSuccess(session, code, step.exit, place);
      const missing = step.prints === undefined ? undefined : findMissingLine(step.prints, output);
      if (missing !== undefined) throw new Error(`${place}: "${code.trim()}" does not print\n  ${missing}\nbut\n${output}`);
      return;
    }
    default:
      throw new Error(`unknown step ${JSON.stringify(step)}`);
  }
}

async function expectSuccess(session, code, exit, place) {
  const begun = performance.now();
  const result = await session.run(code);
  console.log(`  ${place}  ${code.trim().split('\n')[0]}  ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  if (result.exit !== exit) throw new Error(`${place}: exit code ${result.exit} instead of ${exit}:\n${code}\n${result.output}`);
  return result.output;
}

/** Puts in the values that a reader has to. */
function fillIn(code) {
  const line = options.here ? code.replaceAll(INSTALLS, COPIES_BUILD) : code;
  return line.replaceAll(/\b([A-Z][A-Z_]*)=…/g, (_, name) => {
    if (!(name in VALUES)) throw new Error(`a guide wants a value for ${name}, and scripts/check-guides.js has none`);
    return `${name}=${VALUES[name]}`;
  });
}

/** What a new user of this machine has. Settings of the network stay, without which no registry can be reached. */
function buildEnvironment(home) {
  const network = Object.entries(process.env).filter(([key]) =>
    /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_\w+|npm_config_(registry|cafile))$/i.test(key),
  );
  return {
    ...Object.fromEntries(network),
    HOME: home,
    USER: 'reader',
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    // Bash would use the folders of the machine's users; npm's own prefix is not writable for them.
    PATH: [join(home, 'bin'), join(home, '.local/bin'), dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(
      ':',
    ),
    NPM_CONFIG_CACHE: NPM_CACHE,
    NPM_CONFIG_UPDATE_NOTIFIER: 'false',
  };
}

/** The command of this checkout instead of an installed one. */
function placeCommand(home) {
  createFolder(join(home, 'bin'));
  writeFileSync(join(home, 'bin/sluice'), `#!/bin/sh\nexec node "${join(ROOT, 'packages/gateway/bin/sluice.js')}" "$@"\n`, {
    mode: 0o755,
  });
}

function createFolder(path) {
  mkdirSync(path, { recursive: true });
  if (isRoot) chownSync(path, ids.uid, ids.gid);
}

/** Starts what a guide takes for granted, and returns the variables that lead to it. The demo gateway takes the place of all providers. */
async function prepareWorld(world, home) {
  const provider = await startProgram(['serve', '--port', '0', '--data', 'memory'], home);
  if (world.includes('claude')) installClaude(home);
  return { OPENAI_BASE_URL: `${provider}/v1`, ANTHROPIC_BASE_URL: provider };
}

/** Starts a command of this checkout, and returns the address that it prints. */
function startProgram(args, home) {
  const program = spawn(process.execPath, [join(ROOT, 'packages/gateway/bin/sluice.js'), ...args], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  programs.push(program);
  return new Promise((resolve, reject) => {
    let printed = '';
    for (const stream of [program.stdout, program.stderr])
      stream.on('data', (data) => {
        printed = (printed + data).slice(-10_000);
        const address = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0];
        if (address) resolve(address);
      });
    program.once('exit', () => reject(new Error(`sluice ${args[0]} ended: ${printed}`)));
  });
}

/** Claude Code as a program that sends one message and ends, because nobody sits at this terminal. */
function installClaude(home) {
  const place = join(ROOT, '.cache/guides');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'package.json'), '{ "private": true }\n');
  runNpm(['install', '--no-audit', '--no-fund', '--no-save', '--prefer-offline', CLAUDE_CODE], { cwd: place });
  const bin = join(home, 'bin');
  createFolder(bin);
  const claude = join(home, 'claude-code');
  cpSync(join(place, 'node_modules'), claude, { recursive: true, verbatimSymlinks: true });
  writeFileSync(join(bin, 'claude'), `#!/bin/sh\nexec "${claude}/.bin/claude" -p 'Say hello.' "$@"\n`, { mode: 0o755 });
  if (isRoot) execFileSync('chown', ['-R', `${ids.uid}:${ids.gid}`, home]);
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function report(results) {
  console.log('\nguide            commands  minutes  skipped');
  for (const { name, commands, minutes, skipped } of results)
    console.log(
      `${name.padEnd(16)} ${String(commands).padStart(8)}  ${minutes.toFixed(1).padStart(7)}  ${skipped.join('; ') || '–'}`,
    );
  const sum = results.reduce((total, { minutes }) => total + minutes, 0);
  console.log(
    `${results.length} guides, ${results.reduce((total, { commands }) => total + commands, 0)} commands, ${sum.toFixed(1)} minutes`,
  );
}
