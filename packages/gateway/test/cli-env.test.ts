import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { needs } from '../../../test/needs/needs.ts';
import { CLIENTS, quoteForShell } from '../src/clients/clients.ts';
import { jsonLines, run, UNUSED_URL } from './fake-io.ts';

const IDS = Object.keys(CLIENTS);
/** A key and a model that a careless template would break on. */
const ODD = ['--key', `k'"$(x)\\`, '--model', `a/b'c"d`];

/** Prints all strings of a Python program as JSON. */
const LIST_STRINGS =
  'import ast, json, sys; print(json.dumps([node.value for node in ast.walk(ast.parse(sys.stdin.read())) if isinstance(node, ast.Constant)]))';

/** Shells write their history there. */
const home = mkdtempSync(join(tmpdir(), 'sluice-env-'));

afterAll(() => rmSync(home, { recursive: true }));

describe('sluice env', () => {
  test.each(IDS)('%s: sets the address of the gateway and the key', async (id) => {
    const { code, stdout, stderr } = await run(['env', id, '--url', 'http://10.1.2.3:99', '--key', 'the-key']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('http://10.1.2.3:99');
    expect(stdout).toContain('the-key');
  });

  test.each(IDS)('%s: sets the requested model where the client allows it', async (id) => {
    // A program or the user chooses it.
    const isElsewhere = ['openai', 'anthropic', 'google', 'python', 'agents', 'openwebui'].includes(id);
    const { stdout } = await run(['env', id, '--model', 'groq/llama']);
    expect(stdout.includes('groq/llama')).toBe(!isElsewhere);
  });

  test.each(IDS)('%s: --json is one line of data', async (id) => {
    const outcome = await run(['env', id, '--json']);
    const [line = {}, ...rest] = jsonLines(outcome);
    expect(rest).toEqual([]);
    expect(line).toMatchObject({ client: id, url: UNUSED_URL, key: 'any' });
  });

  test.each(IDS.filter((id) => !CLIENTS[id]?.snippet))('%s: a shell takes it, whatever is in it', async (id) => {
    const { stdout } = await run(['env', id, ...ODD]);
    const [data] = jsonLines(await run(['env', id, ...ODD, '--json']));
    const wanted = data?.['env'] as Record<string, string>;
    const shown = execFileSync('sh', ['-c', `${stdout}\nenv -0`], { env: {} })
      .toString()
      .split('\0');
    for (const [name, value] of Object.entries(wanted)) expect(shown).toContain(`${name}=${value}`);
  });

  describe.each([
    ['bash', 'bash', ['-c']],
    ['zsh', 'zsh', ['-f', '-c']],
    ['fish', 'fish', ['--no-config', '-c']],
    ['powershell', 'pwsh', ['-NoProfile', '-Command']],
  ] as const)('--shell %s', (shell, command, args) => {
    test.each(IDS.filter((id) => !CLIENTS[id]?.snippet))('%s: the shell sets what is meant', needs(command), async (id) => {
      const { stdout } = await run(['env', id, ...ODD, '--shell', shell]);
      const [data] = jsonLines(await run(['env', id, ...ODD, '--json']));
      const unset = data?.['unset'] as string[];
      const shown = execFileSync(command, [...args, `${stdout}\nenv -0`], {
        env: { PATH: process.env['PATH'], HOME: home, ...Object.fromEntries(unset.map((name) => [name, 'old'])) },
        stdio: ['ignore', 'pipe', 'ignore'],
      })
        .toString()
        .split('\0');
      for (const [name, value] of Object.entries(data?.['env'] as Record<string, string>))
        expect(shown).toContain(`${name}=${value}`);
      for (const name of unset) expect(shown.some((line) => line.startsWith(`${name}=`))).toBe(false);
    });
  });

  test('PowerShell doubles every character that it takes for a quote', async () => {
    const { stdout } = await run(['env', 'openai', '--key', "a'b\u2019c$d", '--shell', 'powershell']);
    expect(stdout).toBe(`$env:OPENAI_BASE_URL = '${UNUSED_URL}/v1'\n$env:OPENAI_API_KEY = 'a''b\u2019\u2019c$d'\n`);
  });

  test.each([
    [{ SHELL: '/usr/bin/fish' }, 'set -gx '],
    [{ SHELL: '/usr/bin/pwsh' }, '$env:'],
    [{ SHELL: '/bin/zsh' }, 'export '],
    [{ SHELL: '/bin/dash' }, 'export '],
    [{ SHELL: '' }, 'export '],
    [{}, 'export '],
    [{ OS: 'Windows_NT' }, '$env:'],
    [{ OS: 'Windows_NT', SHELL: '/usr/bin/bash' }, 'export '],
    [{ OS: 'Windows_NT', SHELL: 'C:\\Program Files\\Git\\usr\\bin\\bash.exe' }, 'export '],
  ])('the shell is that of $SHELL, or of Windows: %j', async (env, start) => {
    const { stdout } = await run(['env', 'openai'], { env });
    expect(stdout.startsWith(start)).toBe(true);
  });

  /** Values that a setup contains must be read back as they are. */
  const expectOddValues = (read: unknown, id: string): void => {
    const text = JSON.stringify(read);
    // The keys of these two are in variables.
    if (id !== 'zed' && id !== 'gemini') expect(text).toContain(JSON.stringify(ODD[1]).slice(1, -1));
    if (CLIENTS[id]?.needsModel) expect(text).toContain(JSON.stringify(ODD[3]).slice(1, -1));
  };

  test.each(IDS.filter((id) => CLIENTS[id]?.file && !/toml$/.test(CLIENTS[id]?.file?.home ?? '')))(
    '%s: its file parses, whatever is in it',
    async (id) => {
      const { stdout } = await run(['env', id, ...ODD, '--file']);
      const read = CLIENTS[id]?.file?.home.endsWith('.json') ? JSON.parse(stdout) : parse(stdout);
      expectOddValues(read, id);
    },
  );

  test.each(IDS.filter((id) => CLIENTS[id]?.file?.home.endsWith('.toml')))(
    '%s: its file is TOML, whatever is in it',
    async (id) => {
      const { stdout } = await run(['env', id, ...ODD, '--file']);
      const value = String.raw`"(?:[^"\\]|\\.)*"|true|false|\d+`;
      const line = new RegExp(
        String.raw`^(?:|\[[\w.]+\]|[\w.]+ = (?:${value}|\{ \w+ = (?:${value})(?:, \w+ = (?:${value}))* \}))$`,
      );
      const lines = stdout.trimEnd().split('\n');
      expect(lines.filter((one) => !line.test(one))).toEqual([]);
      expect(lines.some((one) => one.endsWith(` = ${JSON.stringify(ODD[3])}`))).toBe(true);
    },
  );

  const ofLanguage = (language: string) => IDS.filter((id) => CLIENTS[id]?.snippet?.language === language);

  test.each(ofLanguage('js'))('%s: its code parses, whatever is in it', async (id) => {
    const { stdout } = await run(['env', id, ...ODD]);
    const { errors, program } = parseSync('a.js', stdout);
    expect(errors).toEqual([]);
    expectOddValues(program, id);
  });

  test.each(ofLanguage('python'))('%s: its code parses, whatever is in it', needs('python'), async (id) => {
    const { stdout } = await run(['env', id, ...ODD]);
    const read = execFileSync('python3', ['-c', LIST_STRINGS], { input: stdout }).toString();
    expectOddValues(JSON.parse(read), id);
  });

  test.each(ofLanguage('sh'))('%s: its command has the intended arguments, whatever is in them', async (id) => {
    const { stdout } = await run(['env', id, ...ODD]);
    const args = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${stdout}`])
      .toString()
      .split('\0');
    expect(args).toContain(`authorization: Bearer ${ODD[1]}`);
    expect(JSON.parse(args.at(-2) ?? '')).toMatchObject({ model: ODD[3], stream: true });
  });

  test.each(ofLanguage('sh'))('%s: its address is one argument, whatever is in it', async (id) => {
    const { stdout } = await run(['env', id, '--url', "http://h:1/$(echo x)'&"]);
    const args = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${stdout}`])
      .toString()
      .split('\0');
    expect(args).toContain("http://h:1/$(echo%20x)'&/v1/chat/completions");
  });

  test.each(IDS.filter((id) => CLIENTS[id]?.steps))('%s: its steps are comments, whatever is in them', async (id) => {
    // A carriage return ends a line of PowerShell, too.
    const { stdout } = await run(['env', id, '--key', 'a\nb\re', '--model', 'c\nd\rf']);
    expect(
      stdout
        .trimEnd()
        .split(/[\r\n]/)
        .filter((line) => !line.startsWith('#')),
    ).toEqual([]);
  });

  test('the key of the environment is used', async () => {
    const { stdout } = await run(['env', 'openai'], { env: { SLUICE_KEY: 'mine' } });
    expect(stdout).toBe(`export OPENAI_BASE_URL=${UNUSED_URL}/v1\nexport OPENAI_API_KEY=mine\n`);
  });

  test('Claude Code keeps its own model unless one is named', async () => {
    expect((await run(['env', 'claude'])).stdout).toBe(
      `unset ANTHROPIC_API_KEY\nexport ANTHROPIC_BASE_URL=${UNUSED_URL}\nexport ANTHROPIC_AUTH_TOKEN=any\n`,
    );
  });

  test('Codex gets its settings in a file', async () => {
    const { stdout } = await run(['env', 'codex', '--model', 'm']);
    expect(stdout).toContain('export SLUICE_KEY=any\n# ~/.codex/config.toml:\n#   model = "m"\n#   model_provider = "sluice"\n');
  });

  test('Codex uses WebSocket', async () => {
    const { stdout } = await run(['env', 'codex']);
    expect(stdout).toMatch(/model_providers\.sluice = \{.* wire_api = "responses", supports_websockets = true \}/);
  });

  test.each([
    ['http://h:1/', 'http://h:1'],
    ['http://h:1/v1', 'http://h:1'],
    ['http://h:1/v1beta/', 'http://h:1'],
    ['https://h/gate/v1/', 'https://h/gate'],
  ])('the address %s is %s', async (given, url) => {
    expect(jsonLines(await run(['env', 'curl', '--url', given, '--json']))).toMatchObject([{ url }]);
  });

  test.each([
    [['env'], 'name a client\n  Agents             claude, codex, gemini'],
    [['env'], '\n  Editors            cursor, vscode, zed\n'],
    [['env', 'claude', '--shell', 'fissh'], 'unknown shell "fissh"; did you mean "fish"?'],
    [['env', 'claude', '--file'], '"claude" has no settings file'],
    [['env', 'cluade'], 'unknown client "cluade"; did you mean "claude"?'],
    [['env', 'toString'], 'unknown client "toString"'],
    [['env', 'windsurf'], '"sluice env other" prints the base URL and the key for any client'],
    [['env', 'claude', '--url', 'file:///etc'], '--url must be an address'],
    [['env', 'claude', '--url', 'nowhere'], '--url must be an address'],
  ])('%j is wrong usage', async (argv, message) => {
    const { code, stdout, stderr } = await run(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});

test.each(['plain', '', "it's", '$(rm -rf /)', 'a b', '`x`', '\n', '!x', '"'])('a shell reads %j as it is', (text) => {
  expect(execFileSync('sh', ['-c', `printf %s ${quoteForShell(text)}`]).toString()).toBe(text);
});
