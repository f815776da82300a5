/**
 * Follows the guides as new users do: `npm run guides`, or `npm run guides -- --only team,agent`. Every guide is read from top to bottom by another
 * user, with a home of its own and nothing but node, git and npm; each command must succeed and print what the guide shows. The guide for
 * systemd is followed by root of a machine that is booted for it. Prints commands and minutes of each guide, and what was skipped and why.
 *
 * `--here` uses the command of this checkout instead of installing a clone. `--with docker,kubectl` runs also the steps that need these.
 * Instead of providers, a gateway with the demo model responds. Claude Code, which one guide starts, is the real one of npm.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from './build/packages.js';
import { findMachineFault, Machine } from './guides/machine.js';
import { Session } from './guides/session.js';
import { countCommands, findMissingLine, readSection, readSteps } from './guides/steps.js';
import {
  buildEnvironment,
  copyRepository,
  createFolder,
  giveToReader,
  installClaude,
  NETWORK,
  placeCommand,
  READER,
  startProvider,
} from './guides/world.js';

/** The guides, and what they take for granted besides node, git and npm. */
const GUIDES = [
  { name: 'broken-stream', page: 'docs/start-broken-stream.md' },
  { name: 'agent', page: 'docs/start-agent.md', hasClaude: true },
  { name: 'team', page: 'docs/start-team.md' },
  { name: 'team-session', page: 'docs/teams.md' },
  { name: 'deploy', page: 'docs/deploy.md' },
  { name: 'systemd', page: 'docs/deploy.md', section: 'systemd', needs: 'systemd' },
];

/** Ports that the guides use. */
const PORTS = [4141, 8000];

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
const folder = mkdtempSync(join(tmpdir(), 'sluice-guides-'));
const repository = join(folder, 'repository');
try {
  await followAll();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function followAll() {
  const chosen = chooseGuides();
  for (const port of PORTS) if (await isListening(port)) throw new Error(`port ${port} is in use; the guides need it`);
  process.umask(0o022);
  chmodSync(folder, 0o755);
  copyRepository(repository);
  // git clones only from a folder of the same user.
  giveToReader(repository);
  const provider = await startProvider();
  const providers = { OPENAI_BASE_URL: `${provider}/v1`, ANTHROPIC_BASE_URL: provider };
  const results = [];
  for (const guide of chosen) results.push(await follow(guide, providers));
  report(results);
}

function chooseGuides() {
  const known = GUIDES.map(({ name }) => name);
  const names = options.only?.split(',') ?? known;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`no guide is called "${unknown}"; known: ${known.join(', ')}`);
  return GUIDES.filter(({ name }) => names.includes(name));
}

async function follow(guide, providers) {
  const { name, page, needs } = guide;
  console.log(`== ${name}: ${page}`);
  const fault = needs === undefined ? undefined : findMachineFault();
  if (fault !== undefined) return { name, commands: 0, minutes: 0, skipped: [`needs ${fault}`] };
  const place = needs === undefined ? createHome(guide, providers) : await createMachine();
  const begun = performance.now();
  const counts = { commands: 0, skipped: [] };
  try {
    await expectSuccess(place.session, `cd && git clone --quiet '${place.repository}' sluice && cd sluice`, 0, 'before');
    const text = readSection(readFileSync(join(ROOT, page), 'utf8'), guide.section);
    if (needs === undefined && !options.here && !text.includes(INSTALLS))
      await expectSuccess(place.session, INSTALLS, 0, 'docs/install.md');
    const available = new Set([...options.with.split(','), needs]);
    for (const step of readSteps(text, available)) await take(step, { page, session: place.session, counts });
  } finally {
    await place.end();
  }
  return { name, minutes: (performance.now() - begun) / 60_000, ...counts };
}

/** The home of a new user, with a clone in it. */
function createHome({ name, hasClaude = false }, providers) {
  const home = join(folder, name);
  const npmCache = join(folder, 'npm-cache');
  for (const path of [home, npmCache]) createFolder(path);
  writeCurlSettings(home);
  if (hasClaude) installClaude(home);
  if (options.here) placeCommand(home);
  const session = new Session({ cwd: home, env: { ...buildEnvironment(home, npmCache), ...providers }, ...READER }, home);
  return { session, repository, end: () => session.end() };
}

/** Root of a machine that runs systemd, with a clone. */
async function createMachine() {
  const machine = new Machine(folder);
  try {
    await machine.start();
    const session = openMachine(machine);
    const end = () => session.end().finally(() => machine.end());
    return { session, repository: '/root/repository', end };
  } catch (error) {
    await machine.end();
    throw error;
  }
}

function openMachine({ root, shell }) {
  const home = join(root, 'root');
  cpSync(repository, join(home, 'repository'), { recursive: true });
  // Files of private authorities; folders of them are the machine's own.
  for (const file of Object.values(NETWORK).filter((value) => statSync(value, { throwIfNoEntry: false })?.isFile())) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    cpSync(file, join(root, file), { dereference: true });
  }
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const env = { ...NETWORK, HOME: '/root', PATH: path, LANG: 'C.UTF-8', NO_COLOR: '1' };
  return new Session({ shell, cwd: '/', env }, home, '/root');
}

/** A response with an error fails a step; by itself, curl prints it and succeeds. */
function writeCurlSettings(home) {
  writeFileSync(join(home, '.curlrc'), 'fail-with-body\n');
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
