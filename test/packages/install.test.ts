/** Where `npm run install-sluice` installs to, on every system. `npm run installed` runs it. */
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { choosePrefix, describePathLine, findBin, isOnPath } from '../../scripts/install/place.js';
import { needs } from '../needs/needs.ts';

describe('the prefix', () => {
  test.each([
    { asked: undefined, npmPrefix: '/usr', writable: true, platform: 'linux', prefix: '/usr', bin: '/usr/bin' },
    {
      asked: undefined,
      npmPrefix: '/usr',
      writable: false,
      platform: 'linux',
      prefix: '/home/a b/.local',
      bin: '/home/a b/.local/bin',
    },
    { asked: '/opt/x', npmPrefix: '/opt/x', writable: false, platform: 'linux', prefix: '/opt/x', bin: '/opt/x/bin' },
    {
      asked: undefined,
      npmPrefix: '/opt/homebrew',
      writable: true,
      platform: 'darwin',
      prefix: '/opt/homebrew',
      bin: '/opt/homebrew/bin',
    },
    {
      asked: undefined,
      npmPrefix: '/usr/local',
      writable: false,
      platform: 'darwin',
      prefix: '/home/a b/.local',
      bin: '/home/a b/.local/bin',
    },
    { asked: undefined, npmPrefix: 'C:\\npm', writable: true, platform: 'win32', prefix: 'C:\\npm', bin: 'C:\\npm' },
    {
      asked: undefined,
      npmPrefix: 'C:\\npm',
      writable: false,
      platform: 'win32',
      prefix: 'C:\\Users\\a\\.local',
      bin: 'C:\\Users\\a\\.local',
    },
  ])('$platform, $npmPrefix, writable: $writable', ({ asked, npmPrefix, writable, platform, prefix, bin }) => {
    const home = platform === 'win32' ? 'C:\\Users\\a' : '/home/a b';
    const isWritable = (folder: string): boolean => folder === npmPrefix && writable;
    expect(choosePrefix({ asked, npmPrefix, isWritable, home, platform })).toBe(prefix);
    expect(findBin(prefix, platform)).toBe(bin);
  });
});

test.each([
  ['linux', '/a/bin', '/usr/bin:/a/bin', true],
  ['linux', '/a/bin', '/a/bin/:/usr/bin', true],
  ['linux', '/a/bin', '/a//bin', true],
  ['linux', '/a/bin', '/A/bin', false],
  ['linux', '/a/bin', '/a/bin2:/a', false],
  ['linux', '/a/bin', '', false],
  ['linux', '/', '/', true],
  ['darwin', '/a/bin', ':/a/bin:', true],
  ['win32', 'C:\\Npm', 'c:\\windows;c:\\npm\\', true],
  ['win32', 'C:\\Npm', 'c:/npm', true],
  ['win32', 'C:\\Npm', 'c:\\npm\\bin', false],
])('%s: %s is on "%s": %s', (platform, folder, path, isThere) => {
  expect(isOnPath(folder, path, platform)).toBe(isThere);
});

/** A folder with everything that a shell could take for something else. */
const NASTY = `/home/o'neill/$HOME "x" \`id\` \\z/bin`;

describe('the line for PATH', () => {
  test.each([
    ['linux', '/bin/bash', `echo 'export PATH="/a/bin:$PATH"' >> ~/.bashrc`],
    ['darwin', '/bin/bash', `echo 'export PATH="/a/bin:$PATH"' >> ~/.bash_profile`],
    ['darwin', '/bin/zsh', `echo 'export PATH="/a/bin:$PATH"' >> ~/.zshrc`],
    ['linux', '/usr/bin/fish', `fish_add_path '/a/bin'`],
    ['linux', '/bin/dash', `echo 'export PATH="/a/bin:$PATH"' >> ~/.profile`],
    ['linux', '/bin/constructor', `echo 'export PATH="/a/bin:$PATH"' >> ~/.profile`],
    ['linux', undefined, `echo 'export PATH="/a/bin:$PATH"' >> ~/.profile`],
  ])('%s, %s', (platform, shell, line) => {
    expect(describePathLine('/a/bin', { shell, platform })).toBe(line);
  });

  test('Windows has a line for PowerShell, with quotes doubled', () => {
    expect(describePathLine("C:\\o'neill", { shell: undefined, platform: 'win32' })).toContain("'C:\\o''neill;'");
  });

  test('fish reads its two escapes', () => {
    expect(describePathLine(`/o'x\\y`, { shell: 'fish', platform: 'linux' })).toBe(`fish_add_path '/o\\'x\\\\y'`);
  });

  test('a shell that reads it has the folder first, whatever its name', needs('posix'), () => {
    const line = describePathLine(NASTY, { shell: 'sh', platform: 'linux' }).replace(/ >> .*$/, '');
    const env = { PATH: '/usr/bin:/bin' };
    const added = execFileSync('sh', ['-c', line], { env, encoding: 'utf8' });
    expect(execFileSync('sh', ['-c', `${added}\nprintf %s "$PATH"`], { env, encoding: 'utf8' })).toBe(`${NASTY}:${env.PATH}`);
  });
});
