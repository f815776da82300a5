/** The systemd unit, installed by the commands of docs/deploy.md into a folder, and a gateway that runs from there as the unit does. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { eventually } from '../../../../test/wait.ts';
import { createTestFolder } from '../real-parts/programs.js';

const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url));
const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

const UNIT = read('deploy/systemd/sluice.service');

/** The value of a setting of the unit. */
const readSetting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(UNIT)?.[1] ?? '';

/** The commands of the guide, without comments. */
const COMMANDS = (/^## systemd\n[\s\S]*?```sh[^\n]*\n([\s\S]*?)```/m.exec(read('docs/deploy.md'))?.[1] ?? '')
  .split('\n')
  .map((line) => line.replace(/\s+#.*$/, ''));

describe('systemd-analyze', needs('systemd'), () => {
  test('has no complaint about the unit', () => {
    const folder = createTestFolder('unit');
    const command = join(folder, 'sluice');
    writeFileSync(command, '#!/bin/sh\n', { mode: 0o755 });
    const file = join(folder, 'sluice.service');
    writeFileSync(file, UNIT.replace(/^(ExecStart=)\S+/m, `$1${command}`));
    const output = execFileSync('sh', ['-c', 'systemd-analyze verify --man=no "$0" 2>&1', file], { encoding: 'utf8' });
    expect(output.split('\n').filter((line) => line.includes('sluice'))).toEqual([]);
  });

  test('has the rating of the guide', () => {
    const args = ['security', '--offline=yes', '--no-pager', join(REPOSITORY, 'deploy/systemd/sluice.service')];
    const rating = /Overall exposure level.*: ([\d.]+)/.exec(execFileSync('systemd-analyze', args, { encoding: 'utf8' }))?.[1];
    expect(read('docs/deploy.md')).toContain(`rates it ${rating} `);
  });
});

test('the guide installs the command where the unit starts it', () => {
  const prefix = /--prefix (\S+)/.exec(COMMANDS.find((line) => line.includes('install-sluice')) ?? '')?.[1];
  expect(readSetting('ExecStart').split(' ')[0]).toBe(`${prefix}/bin/sluice`);
});

describe('the files of the guide', { ...needs('systemd', 'root'), shuffle: false }, () => {
  let root: string;
  let user: { uid: number; gid: number };

  beforeAll(() => {
    root = createTestFolder('systemd');
    chmodSync(root, 0o755);
    for (const command of COMMANDS.filter((line) => /^(install|systemd-sysusers|echo) /.test(line))) runCommand(command);
    const [, , uid, gid] = findEntry('passwd');
    user = { uid: Number(uid), gid: Number(gid) };
    // What systemd does for StateDirectory=.
    const data = join(root, 'var/lib', readSetting('StateDirectory'));
    mkdirSync(data, { recursive: true });
    chownSync(data, user.uid, user.gid);
    chmodSync(data, Number.parseInt(readSetting('StateDirectoryMode'), 8));
  });

  /** Runs a command as if the folder were the root of the machine, which may have no such user. */
  function runCommand(command: string): void {
    const here = command
      .replaceAll(/ \/(?=etc\/)/g, ` ${root}/`)
      .replace(' -g sluice', () => ` -g ${findEntry('group')[2]}`)
      .replace('systemd-sysusers ', `systemd-sysusers --root=${root} `);
    execFileSync('sh', ['-ec', here], { cwd: REPOSITORY, stdio: ['ignore', 'ignore', 'pipe'] });
  }

  const findEntry = (file: 'passwd' | 'group'): string[] =>
    (
      readFileSync(join(root, 'etc', file), 'utf8')
        .split('\n')
        .find((line) => line.startsWith(`${readSetting('User')}:`)) ?? ''
    ).split(':');

  const canRead = (path: string, ids: { uid: number; gid: number }): boolean => {
    try {
      execFileSync('cat', [join(root, path)], { ...ids, stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  };

  test.each([
    { path: 'etc/sluice/sluice.yaml', mode: 0o640, byUnit: true },
    { path: 'etc/sluice/environment', mode: 0o600, byUnit: false },
  ])('$path can be read by the user of the unit: $byUnit, and not by others', ({ path, mode, byUnit }) => {
    expect(statSync(join(root, path)).mode & 0o777).toBe(mode);
    expect(canRead(path, user)).toBe(byUnit);
    expect(canRead(path, { uid: 65534, gid: 65534 })).toBe(false);
  });

  test('a gateway starts with them, and a changed configuration is in force after a reload', async () => {
    const file = join(root, 'etc/sluice/sluice.yaml');
    const variables = [
      readSetting('Environment'),
      ...readFileSync(join(root, 'etc/sluice/environment'), 'utf8').trim().split('\n'),
    ];
    const env = Object.fromEntries(variables.map((line) => line.split(/=(.*)/s).slice(0, 2)));
    const [, ...args] = readSetting('ExecStart').replace('/etc/sluice/sluice.yaml', file).split(' ');
    const gateway = spawn(process.execPath, [join(REPOSITORY, 'packages/gateway/bin/sluice.js'), ...args, '--port', '0'], {
      cwd: '/',
      env: { ...env, PATH: process.env['PATH'], SLUICE_DATA: join(root, env['SLUICE_DATA'] ?? '') },
      ...user,
    });
    try {
      const url = await readUrl(gateway);
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
      const headers = { authorization: `Bearer ${env['SLUICE_ADMIN_KEY']}` };
      expect(await (await fetch(`${url}/admin/v1/store`, { headers })).json()).toMatchObject({ is_persistent: true });
      expect(await listModels(url)).not.toContain('fast');
      writeFileSync(file, `${readFileSync(file, 'utf8')}models: { fast: demo/hello }\n`);
      const [program = '', ...reload] = readSetting('ExecReload').replace('$MAINPID', String(gateway.pid)).split(' ');
      execFileSync(program, reload);
      await eventually(async () => (await listModels(url)).includes('fast'));
    } finally {
      gateway.kill('SIGKILL');
      await once(gateway, 'exit');
    }
  });
});

function readUrl(gateway: ChildProcess): Promise<string> {
  let output = '';
  return new Promise((resolve, reject) => {
    for (const stream of [gateway.stdout, gateway.stderr])
      stream?.on('data', (data) => {
        output += data;
        const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0];
        if (url) resolve(url);
      });
    gateway.once('exit', () => reject(new Error(`the gateway has ended: ${output}`)));
  });
}

async function listModels(url: string): Promise<string[]> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}
