import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import { afterAll, describe, expect, test, vi } from 'vitest';
import * as core from '../packages/core/src/index.ts';
import { type Block, listPages, readDocComment, readPage } from './doc-blocks.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sluice-docs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));

const blocks = listPages().flatMap(readPage);

// ---- doc comments of the root

const sources = readdirSync(join(root, 'packages/core/src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join(root, 'packages/core/src', file));

/** The file that the root takes a value from: a value may be declared twice, with names and with codecs. */
function findSource(name: string): string {
  const text = readFileSync(join(root, 'packages/core/src/index.ts'), 'utf8');
  const found = [...text.matchAll(/export \{([^}]*)\} from '\.\/([^']+)'/g)].find(([, names = '']) =>
    names.split(',').some((one) => one.trim() === name),
  );
  return sources.find((file) => file.endsWith(`/src/${found?.[2]}`)) ?? '';
}

/** What examples in doc comments take for granted, besides the values of the root. */
const GIVEN = `
declare const response: Response;
declare const request: CanonicalRequest;
declare const json: unknown;
declare const body: string;
declare const chunks: Uint8Array[];
declare const events: object[];
`;

const values = Object.keys(core);

const examples = values.map((name) => ({ name, found: readDocComment(findSource(name), name) }));

test.each(examples)('$name has a doc comment with an example', ({ found }) => {
  expect(found.filter(({ language }) => language === 'ts')).not.toEqual([]);
});

const IMPORTS = `import { ${values.join(', ')}, type CanonicalRequest } from '@sluice/core';\n`;

const commented: Block[] = examples.flatMap(({ found }) =>
  found.map((block) => ({ ...block, prelude: describeGiven(block.code) })),
);

/** Names that an example declares itself are not given. */
function describeGiven(code: string): string {
  const isGiven = (line: string): boolean => {
    const name = /declare const (\w+)/.exec(line)?.[1];
    // As a name, or in a pattern.
    return name !== undefined && !new RegExp(`\\b(const|let) (${name}|\\{[^}=]*\\b${name}\\b[^}=]*\\})[^=]* =`).test(code);
  };
  return IMPORTS + GIVEN.split('\n').filter(isGiven).join('\n');
}

// ---- type checks

const LANGUAGES: ReadonlySet<string> = new Set(['ts', 'js']);

const checked = [...blocks, ...commented]
  .filter(({ language, flags }) => LANGUAGES.has(language) && !flags.includes('unchecked'))
  .map((block, i) => ({ ...block, file: `block-${i}.${block.language}` }));

const PRELUDE_END = '/* the block begins */\n';

/** Checks all blocks in one run; returns the messages by file. */
function check(): Map<string, string[]> {
  for (const { file, prelude, code } of checked)
    writeFileSync(join(folder, file), `${prelude}${PRELUDE_END}${code}\nexport {};\n`);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    allowJs: true,
    checkJs: true,
    target: 'ES2023',
    module: 'ESNext',
    moduleResolution: 'bundler',
    lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
    types: ['node'],
    skipLibCheck: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: checked.map(({ file }) => file) }));
  const { stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false'],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  );
  const found = new Map<string, string[]>();
  for (const line of stdout.split('\n')) {
    const file = /^(block-\d+\.\w+)\(/.exec(line)?.[1];
    if (file !== undefined) found.set(file, [...(found.get(file) ?? []), line]);
    else if (line.startsWith('error')) throw new Error(line);
  }
  return found;
}

describe('ts and js blocks compile under strict', () => {
  const errors = check();

  test.each(checked)('$place', ({ file }) => {
    expect(errors.get(file) ?? []).toEqual([]);
  });
});

// ---- runs

const runnable = checked.filter(({ flags }) => flags.includes('run'));

describe('ts run blocks run and print what their comments state', () => {
  test.each(runnable)('$place', async ({ file, code }) => {
    const printed: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((...args: unknown[]) => void printed.push(format(...args)));
    try {
      await import(join(folder, file));
    } finally {
      log.mockRestore();
    }
    const stated = [...code.matchAll(/console\.log\(.*\);[ \t]*\/\/ (.*)$/gm)].map(([, text = '']) => text);
    expect(printed).toEqual(stated);
  });

  test('there are some', () => {
    expect(runnable.length).toBeGreaterThan(0);
  });
});

const commands = blocks.filter(({ language, flags }) => language === 'sh' && flags.includes('run'));

describe('sh run blocks exit as stated', () => {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const command = join(bin, 'sluice');
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'packages/gateway/bin/sluice.js')}" "$@"\n`);
  chmodSync(command, 0o755);

  test.each(commands)('$place', ({ code, flags, files }) => {
    const work = mkdtempSync(join(folder, 'sh-'));
    symlinkSync(join(root, 'examples'), join(work, 'examples'));
    for (const { name, text } of files) writeFileSync(join(work, name), text);
    const expected = Number(flags.find((flag) => flag.startsWith('exit='))?.slice('exit='.length) ?? 0);
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}`, NO_COLOR: '1' };
    const run = () => execFileSync('sh', ['-e', '-c', code], { cwd: work, env, stdio: 'pipe', timeout: 30_000 });
    if (expected === 0) run();
    else expect(run).toThrow(expect.objectContaining({ status: expected }));
  });
});
