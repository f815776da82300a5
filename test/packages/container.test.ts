/** The parts of `npm run container`, which repeats the Dockerfile without Docker, and what can be seen of the Dockerfile without running it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createTestFolder } from '../../packages/gateway/test/real-parts/programs.js';
import {
  listBaseImages,
  listInherited,
  readCopy,
  readDockerfile,
  readEnv,
  readList,
} from '../../scripts/container/dockerfile.js';
import { readIgnore } from '../../scripts/container/ignore.js';
import { ImageBuild, listContext } from '../../scripts/container/image.js';
import { needs } from '../needs/needs.ts';
import { ROOT } from './packed.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

describe('.dockerignore', () => {
  // The rows with a comment are examples of https://docs.docker.com/build/concepts/context/#dockerignore-files.
  test.each<[patterns: string, path: string, isKept: boolean]>([
    ['', 'a', true],
    ['# comment', '# comment', true],
    [' # no comment', '# no comment', false],
    ['*/temp*', 'somedir/temporary.txt', false], // names that start with temp in any folder of the root
    ['*/temp*', 'somedir/temp/file', false],
    ['*/temp*', 'temporary.txt', true],
    ['*/*/temp*', 'somedir/subdir/temporary.txt', false], // two levels below the root
    ['*/*/temp*', 'somedir/temporary.txt', true],
    ['temp?', 'tempa', false], // one character more
    ['temp?', 'temp', true],
    ['**/*.go', 'a.go', false], // in all folders, also in the root
    ['**/*.go', 'a/b/c.go', false],
    ['**/*.go', 'a.gox', true],
    ['*.md\n!README.md', 'README.md', true], // exceptions
    ['*.md\n!README.md', 'other.md', false],
    ['*.md\n!README*.md\nREADME-secret.md', 'README-secret.md', false], // the last match decides
    ['*.md\nREADME-secret.md\n!README*.md', 'README-secret.md', true],
    ['/foo/bar', 'foo/bar', false], // both exclude bar in foo, and nothing else
    ['foo/bar', 'foo/bar', false],
    ['foo/bar', 'x/foo/bar', true],
    ['./foo/', 'foo/x', false],
    ['a/../foo', 'foo', false],
    ['foo', 'foobar', true],
    ['**foo', 'x/foo', false],
    ['**foo', 'xfoo', true],
    ['foo/**', 'foo/a/b', false],
    ['**', 'a/b', false],
    ['[a-c]x', 'bx', false],
    ['[a-c]x', 'dx', true],
    ['[^a-c]x', 'dx', false],
    ['a\\*', 'a*', false],
    ['a\\*', 'ab', true],
    ['a.b', 'axb', true],
    ['a+(b)|{c}$', 'a+(b)|{c}$', false],
    ['*\n! kept', 'kept', true],
    ['\uFEFFa', 'a', false],
    ['a\r\nb', 'b', false],
  ])('%j keeps %j: %s', (patterns, path, isKept) => {
    expect(readIgnore(patterns).keeps(path)).toBe(isKept);
  });

  test('an exception without a pattern is an error', () => {
    expect(() => readIgnore('!')).toThrow('.dockerignore: ! has no pattern');
  });

  test.each<[patterns: string, folder: string, isEntered: boolean]>([
    ['*\n!a/b/c', 'a', true],
    ['*\n!a/b/c', 'a/b', true],
    ['*\n!a/b/c', 'a/x', false],
    ['*\n!a/b/c', 'ab', false],
    ['*\n!a/*/c', 'a', true],
    ['*\n!a/*/c', 'a/b', false],
    ['b', 'a', true],
  ])('%j looks into %s: %s', (patterns, folder, isEntered) => {
    expect(readIgnore(patterns).enters(folder)).toBe(isEntered);
  });

  test.each([
    ...[
      '.git/config',
      '.env',
      'packages/gateway/.env.local',
      'sluice.yaml',
      'packages/gateway/sluice.yaml',
      'node_modules/a/b.js',
    ],
    ...['packages/gateway/node_modules/a/b.js', 'packages/core/dist/index.js', 'packages/core/out/index.js', '.cache/built'],
    ...['packages/core/test/a.test.ts', 'docs/README.md', 'config/sluice.yaml', 'deploy/secrets/pepper'],
  ])('ours excludes %s', (path) => {
    expect(readIgnore(read('.dockerignore')).keeps(path)).toBe(false);
  });
});

describe('a Dockerfile', () => {
  test('has stages with instructions; comments and continued lines are joined', () => {
    const stages = readDockerfile('# a\nFROM x:1 AS base\nENV A=1 \\\n  # b\n  B=2\n\nfrom base\nRUN a \\\n && b\n');
    expect(stages).toEqual([
      { name: 'base', from: 'x:1', instructions: [{ keyword: 'ENV', text: 'A=1  B=2' }] },
      { name: '1', from: 'base', instructions: [{ keyword: 'RUN', text: 'a  && b' }] },
    ]);
    expect(listBaseImages(stages)).toEqual(['x:1']);
    expect(listInherited(stages, stages[1]).map(({ keyword }) => keyword)).toEqual(['ENV', 'RUN']);
  });

  test.each([
    ['FROM a\nADD b c', 'unknown instruction ADD'],
    ['RUN a', 'RUN before the first FROM'],
    ['FROM --platform=x a', 'FROM --platform=x a is not supported'],
    ['FROM a\nRUN', 'unknown instruction'],
  ])('%j is an error', (source, message) => {
    expect(() => readDockerfile(source)).toThrow(message);
  });

  test.each([
    ['a b/', { from: undefined, sources: ['a'], destination: 'b/' }],
    ['--from=x /a /b ./', { from: 'x', sources: ['/a', '/b'], destination: './' }],
  ])('COPY %s', (text, expected) => {
    expect(readCopy(text)).toEqual(expected);
  });

  test.each([() => readCopy('--chown=1 a b'), () => readEnv('A b', {}), () => readEnv('A="b c"', {}), () => readList('"a"')])(
    'what the reader does not know is an error: %s',
    (work) => {
      expect(work).toThrow(/is not supported|is not a list/);
    },
  );

  test('ENV has variables, with and without braces', () => {
    expect(readEnv(`A=/x:$PATH B=\${PATH}y C=$NO`, { PATH: '/bin' })).toEqual({ A: '/x:/bin', B: '/biny', C: '' });
  });
});

describe('a build', needs('posix'), () => {
  /** Runs a Dockerfile with these files, and returns the folder of its image. */
  const build = (files: Record<string, string>): string => {
    const root = createTestFolder('container');
    for (const [path, text] of Object.entries({ '.dockerignore': '', ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    const env = { PATH: process.env['PATH'] ?? '' };
    const ids = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    return new ImageBuild({ root, folder: createTestFolder('stages'), env, ids }).run().place;
  };
  const END = '\nENTRYPOINT ["a"]\nCMD ["b"]\n';

  test('copies files and folders between stages, and runs commands', () => {
    const place = build({
      Dockerfile: `FROM x AS one\nWORKDIR /w\nENV WORD=hi\nCOPY a.txt ./\nCOPY dir other\nRUN echo $WORD > /w/new\nFROM x\nWORKDIR /v\nCOPY --from=one /w ./${END}`,
      'a.txt': 'a',
      'dir/b.txt': 'b',
    });
    expect(['a.txt', 'other/b.txt', 'new'].map((name) => readFileSync(join(place, 'v', name), 'utf8'))).toEqual([
      'a',
      'b',
      'hi\n',
    ]);
  });

  test.each([
    [
      'a file that .dockerignore drops',
      { 'a.txt': 'a', '.dockerignore': '*.txt' },
      'COPY a.txt ./',
      'a.txt does not exist, or .dockerignore drops it',
    ],
    ['a file that does not exist', {}, 'COPY a.txt ./', 'a.txt does not exist'],
    ['a manifest that a step needs and no COPY brings', { 'p/package.json': '{}' }, 'RUN cat p/package.json', 'Command failed'],
    ['several files over one', { a: '', b: '' }, 'COPY a b c', 'must end with a slash'],
    [
      'an exception in a folder that legacy builders skip',
      { 'p/q/a': '', '.dockerignore': '*\n!p/*/a' },
      'COPY p/q/a ./',
      'p/q/a does not exist',
    ],
  ])('fails for %s', (_, files, line, message) => {
    expect(() => build({ ...files, Dockerfile: `FROM x\nWORKDIR /w\n${line}${END}` })).toThrow(message);
  });
});

describe('our Dockerfile', () => {
  const stages = readDockerfile(read('Dockerfile'));
  const copies = stages.flatMap(({ instructions }) =>
    instructions.filter(({ keyword }) => keyword === 'COPY').map(({ text }) => readCopy(text)),
  );
  const sources = copies.filter(({ from }) => from === undefined).flatMap((copy) => copy.sources);

  test('copies the manifest of every workspace before it installs', () => {
    const { workspaces } = JSON.parse(read('package.json')) as { workspaces: string[] };
    for (const folder of workspaces) expect(sources).toContain(`${folder}/package.json`);
  });

  test('copies only what the context has', () => {
    const context = listContext(ROOT);
    for (const source of sources)
      expect(
        context.some((path) => path === source || path.startsWith(`${source}/`)),
        source,
      ).toBe(true);
    expect(context.filter((path) => /(^|\/)(node_modules|dist|\.git)\//.test(path))).toEqual([]);
  });

  test('pins its base image by digest', () => {
    for (const image of listBaseImages(stages)) expect(image).toMatch(/^[^@]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  });
});
