/**
 * A machine of its own for guides that need systemd: Debian in a folder, booted by systemd-nspawn, with the node and npm of this machine. It
 * shares the network, so that its gateway can be reached at the loopback address. Needs root, systemd-nspawn and debootstrap.
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram } from '../../packages/gateway/test/real-parts/programs.js';
import { ROOT } from '../build/packages.js';

const PACKAGES = ['systemd', 'systemd-sysv', 'dbus', 'curl', 'openssl', 'ca-certificates', 'git'];

/** Milliseconds until a machine has to be booted. */
const BOOT_MS = 60_000;

/**
 * Why this machine cannot boot another one; undefined when it can.
 * @returns {string | undefined}
 */
export function findMachineFault() {
  if (process.getuid?.() !== 0) return 'root';
  return ['systemd-nspawn', 'debootstrap'].find((program) => findProgram(program) === undefined);
}

/** A booted machine. Its files are a copy, and are deleted when it ends. */
export class Machine {
  #root;
  #boot;
  /** The process 1 of the machine. */
  id = 0;

  /** @param {string} folder where its files are put */
  constructor(folder) {
    this.#root = join(folder, 'machine');
  }

  /** The folder of its files. */
  get root() {
    return this.#root;
  }

  async start() {
    // cp, because node copies no devices.
    execFileSync('cp', ['-a', prepareSystem(), this.#root]);
    execFileSync('chmod', ['755', this.#root]);
    this.#placeNode();
    const args = ['--quiet', '--directory', this.#root, '--boot', '--register=no', '--keep-unit', '--console=pipe'];
    this.#boot = spawn('systemd-nspawn', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    await this.#untilBooted();
  }

  /** The command that runs a shell in it, as root. */
  get shell() {
    return [...this.#enter(), 'bash', '--noprofile', '--norc'];
  }

  #enter() {
    return ['nsenter', '--all', '--root', '--wd', `--target=${this.id}`];
  }

  async end() {
    if (this.#boot && this.#boot.exitCode === null) {
      const ended = new Promise((resolve) => this.#boot.once('exit', resolve));
      if (this.id > 0) process.kill(this.id, 'SIGKILL');
      this.#boot.kill('SIGKILL');
      await ended;
    }
    rmSync(this.#root, { recursive: true, force: true });
  }

  #placeNode() {
    cpSync(realpathSync(process.execPath), join(this.#root, 'usr/local/bin/node'));
    const npm = dirname(dirname(realpathSync(findProgram('npm') ?? '')));
    cpSync(npm, join(this.#root, 'usr/local/lib/node_modules/npm'), { recursive: true });
    execFileSync('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(this.#root, 'usr/local/bin/npm')]);
  }

  async #untilBooted() {
    const until = Date.now() + BOOT_MS;
    while (Date.now() < until) {
      if (this.#boot.exitCode !== null) throw new Error(`systemd-nspawn ended with ${this.#boot.exitCode}`);
      this.id = findChild(this.#boot.pid);
      if (this.id > 0 && this.#isRunning()) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`the machine is not booted after ${BOOT_MS / 1000} s`);
  }

  #isRunning() {
    const [program, ...args] = this.#enter();
    try {
      execFileSync(program, [...args, 'systemctl', 'is-system-running'], { stdio: 'pipe', timeout: 10_000 });
      return true;
    } catch (error) {
      // "degraded": something that a machine without devices cannot start; services work.
      return String(error.stdout).trim() === 'degraded';
    }
  }
}

/** Installs Debian into .cache once, from the first mirror of this machine. */
function prepareSystem() {
  const place = join(ROOT, '.cache/guides/debian');
  const mark = join(place, 'etc/sluice-guides');
  if (existsSync(mark)) return place;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  const [mirror = ''] = execFileSync('apt-get', ['indextargets', '--format', '$(SITE)'], { encoding: 'utf8' }).split('\n');
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'stable';
  const args = ['--variant=minbase', `--include=${PACKAGES.join(',')}`, release, place, mirror];
  execFileSync('debootstrap', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  mkdirSync(mark);
  return place;
}

/** The first child of a process; 0 when it has none. */
function findChild(parent) {
  const tasks = `/proc/${parent}/task`;
  const children = readdirSync(tasks).flatMap((task) => readFileSync(`${tasks}/${task}/children`, 'utf8').split(' '));
  return Number(children.find((id) => id !== '') ?? 0);
}
