import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';
import { CLIENTS } from '../src/clients/clients.ts';
import { isStartable } from '../src/clients/setup.ts';
import { KEY_VARIABLES } from '../src/providers/lookup.ts';
import { type Running, run as runGateway } from '../src/server/run.ts';
import { createNodeIo, type Program } from '../src/terminal/io.ts';
import { run, systemError, type World } from './fake-io.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const NOWHERE = 'http://127.0.0.1:9'; // the discard port: nobody listens there

const FILES = mkdtempSync(join(tmpdir(), 'sluice-run-'));
/** A configuration for a gateway of its own, whatever listens at the usual address. */
const EMPTY = join(FILES, 'sluice.yaml');
writeFileSync(EMPTY, 'log: { level: silent }\n');
afterAll(() => rmSync(FILES, { recursive: true }));

let gateway: Running;
beforeAll(async () => {
  gateway = await runGateway({ folder: FOLDER, env: {}, listen: { port: 0 }, log: 'silent' });
});
afterAll(() => gateway.close(0));

/** Runs the command and gives back what it would have started. */
async function started(argv: readonly string[], world: World = {}) {
  const seen: Program[] = [];
  const program = (wanted: Program) => {
    seen.push(wanted);
    return world.program?.(wanted) ?? 0;
  };
  const outcome = await run(argv, { ...world, program });
  return { ...outcome, program: seen[0] };
}

describe('sluice run', () => {
  test('starts a client that uses the gateway', async () => {
    const env = { PATH: '/bin', ANTHROPIC_API_KEY: 'the real one' };
    const argv = ['run', 'claude', '--url', gateway.url, '--model', 'demo/x', '--', '-p', 'hi', '--help'];
    const { program, code, stderr } = await started(argv, { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(program).toEqual({
      command: 'claude',
      args: ['-p', 'hi', '--help'],
      env: {
        PATH: '/bin',
        ANTHROPIC_BASE_URL: gateway.url,
        ANTHROPIC_AUTH_TOKEN: 'any',
        ANTHROPIC_MODEL: 'demo/x',
        ANTHROPIC_DEFAULT_HAIKU_MODEL: 'demo/x',
      },
    });
  });

  test('returns the exit code of the client', async () => {
    expect((await started(['run', 'gemini', '--url', gateway.url], { program: () => 42 })).code).toBe(42);
  });

  test('for a library, what follows is the program', async () => {
    const { program } = await started(['run', 'openai', '--url', gateway.url, '--', 'node', 'a.js', '-x']);
    expect(program).toMatchObject({ command: 'node', args: ['a.js', '-x'], env: { OPENAI_BASE_URL: `${gateway.url}/v1` } });
  });

  test('arguments of the client come before those of the user', async () => {
    const { program } = await started(['run', 'codex', '--url', gateway.url, '--', 'exec', 'hi']);
    expect(program?.args[0]).toBe('-c');
    expect(program?.args.slice(-2)).toEqual(['exec', 'hi']);
    expect(program?.args.join(' ')).toContain(`base_url = "${gateway.url}/v1"`);
  });

  test.each([
    ['pi', '/own/models.json', { PI_CODING_AGENT_DIR: '/own' }, ['--provider', 'sluice', '--model', 'demo/hello']],
    ['cline', '/own/settings/providers.json', {}, ['--data-dir', '/own']],
    ['continue', '/own/config.yaml', {}, ['--config', '/own/config.yaml']],
    ['gemini', '/own/.gemini/settings.json', { GEMINI_CLI_HOME: '/own' }, []],
    ['kimi', '/own/config.toml', { KIMI_CODE_HOME: '/own' }, []],
  ])('%s gets its own folder', async (id, path, env, args) => {
    const { program, files } = await started(['run', id, '--url', gateway.url]);
    expect(files[path]).toContain(id === 'gemini' ? 'gemini-api-key' : `${gateway.url}/v1`);
    expect(program).toMatchObject({ env, args });
  });

  test('with a configuration, a gateway is started, and ends with the client', async () => {
    let url = '';
    const { code, stderr } = await started(['run', 'openai', '--config', EMPTY, '--', 'x'], {
      program: async ({ env }) => {
        url = env['OPENAI_BASE_URL'] ?? '';
        const answer = await fetch(`${url}/chat/completions`, {
          method: 'POST',
          body: JSON.stringify({ model: 'demo/hello', messages: [{ role: 'user', content: 'Hello' }] }),
        });
        return answer.status;
      },
    });
    expect(code).toBe(200);
    expect(stderr).toContain(`started a gateway for this run on ${url.slice(0, -3)}`);
    await expect(fetch(url)).rejects.toThrow();
  });

  test('the gateway of a run requires its own key', async () => {
    const { program } = await started(['run', 'openai', '--config', EMPTY, '--', 'x'], { env: { SLUICE_KEYS: 'first,second' } });
    expect(program?.env['OPENAI_API_KEY']).toBe('first');
  });

  describe('--url requires a running gateway', () => {
    const servers: Server[] = [];
    afterAll(() => {
      for (const server of servers) server.close();
    });

    async function serve(listener: RequestListener): Promise<string> {
      const server = createServer(listener).listen(0, '127.0.0.1');
      servers.push(server);
      await once(server, 'listening');
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a TCP server has one
    }

    const nothing = 'no gateway responds at URL; start one with "sluice serve", check --url, or omit it';
    const other = 'the server at URL is not a Sluice gateway; check --url, or omit it';
    const id = { 'x-sluice-request-id': '1' };
    test.each<[string, RequestListener | string, string]>([
      ['nothing listens', NOWHERE, nothing],
      ['the connection is closed', (request) => request.destroy(), nothing],
      ['a path of the gateway has no health page', 'GATEWAY/elsewhere', other],
      ['a server answers 404', (_, response) => response.writeHead(404).end('live\n'), other],
      ['a server answers everything with 200', (_, response) => response.end('<html>'), other],
      ['a server has a health page of the same text', (_, response) => response.end('live\n'), other],
      ['a server has another text', (_, response) => response.writeHead(200, id).end('up\n'), other],
      ['a server redirects to a gateway', (_, response) => redirect(response), other],
    ])('%s: nothing is started', async (_, at, message) => {
      const url = typeof at === 'string' ? at.replace('GATEWAY', gateway.url) : await serve(at);
      const { code, stderr, program } = await started(['run', 'openai', '--url', url, '--', 'x']);
      expect(stderr).toContain(message.replace('URL', url));
      expect({ code, program }).toEqual({ code: 2, program: undefined });
    });

    const redirect = (response: ServerResponse) => response.writeHead(307, { location: `${gateway.url}/health/live` }).end();
  });

  describe('the environment of the client', () => {
    const KEPT = {
      PATH: '/bin',
      HOME: '/home/me',
      LANG: 'C.UTF-8',
      TERM: 'xterm',
      HTTPS_PROXY: 'http://127.0.0.1:3128',
      NO_PROXY: 'localhost',
      NODE_EXTRA_CA_CERTS: '/etc/ca.pem',
      AWS_PROFILE: 'work',
      OLLAMA_HOST: '127.0.0.1',
      MY_TOKEN: 'not of a provider',
    };
    const canary = (name: string): [string, string] => [name, `canary-${name.toLowerCase()}`];
    const keys = Object.fromEntries([...KEY_VARIABLES].map(canary));
    const own = { SLUICE_KEYS: 'canary-gateway-key', SLUICE_KEY: 'canary-gateway-key' };
    const given: Record<string, string> = { ...KEPT, ...keys, ...own };

    /** Every client that can be started, and what it is given. */
    const startable = Object.entries(CLIENTS).filter(([, client]) => isStartable(client));

    test.each(startable)('%s gets no key of a provider', async (id) => {
      const { program, code } = await started(['run', id, '--url', gateway.url, '--key', 'its-own', '--', 'x'], { env: given });
      expect(code).toBe(0);
      expect(JSON.stringify(program?.env)).not.toContain('canary');
      expect(program?.env).toMatchObject(KEPT);
    });

    test('every key variable of the provider table is removed', () => {
      for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'AZURE_OPENAI_API_KEY', 'HF_TOKEN', 'GOOGLE_API_KEY'])
        expect(KEY_VARIABLES.has(name), name).toBe(true);
    });

    test('variables that the configuration takes secrets from are removed, others stay', async () => {
      const file = join(FILES, 'secrets.yaml');
      writeFileSync(
        file,
        `# \${COMMENTED}
providers:
  a: { protocol: openai-chat, base_url: 'http://127.0.0.1:9/\${PATH_PART}', api_key: \${KEY_A} }
  b: { protocol: openai-chat, base_url: http://127.0.0.1:9, api_key: env.KEY_B, headers: { x-team: 'Team \${KEY_C}' } }
  c: { protocol: openai-chat, base_url: http://127.0.0.1:9, api_key: os.environ/KEY_D }
auth: { keys: ['\${KEY_E}'] }
`,
      );
      const names = ['KEY_A', 'KEY_B', 'KEY_C', 'KEY_D', 'KEY_E'];
      const env = { ...KEPT, COMMENTED: 'x', PATH_PART: 'v1', ...Object.fromEntries(names.map(canary)) };
      const { program, stderr } = await started(['run', 'openai', '--config', file, '--', 'x'], { env });
      expect(program?.env, stderr).toMatchObject({ ...KEPT, COMMENTED: 'x', PATH_PART: 'v1' });
      for (const name of names) expect(program?.env).not.toHaveProperty(name);
      // The gateway has its keys nevertheless: the client shows the one of its file.
      expect(program?.env['OPENAI_API_KEY']).toBe('canary-key_e');
    });

    test('the gateway of the run still has the keys', async () => {
      let models: unknown;
      await started(['run', 'openai', '--config', EMPTY, '--', 'x'], {
        env: { GROQ_API_KEY: 'canary-groq' },
        program: async ({ env }) => {
          models = await (await fetch(`${env['OPENAI_BASE_URL']}/models/groq%2Fany`)).json();
          return 0;
        },
      });
      expect(models).toMatchObject({ id: 'groq/any' });
    });

    test('--pass-env keeps variables by name', async () => {
      const argv = ['run', 'openai', '--url', gateway.url, '--pass-env', 'GROQ_API_KEY, HF_TOKEN', '--', 'x'];
      const { program } = await started(argv, { env: given });
      expect(program?.env).toMatchObject({ GROQ_API_KEY: given['GROQ_API_KEY'], HF_TOKEN: given['HF_TOKEN'] });
      expect(program?.env).not.toHaveProperty('MISTRAL_API_KEY');
      // What points the client at the gateway wins.
      const pointed = await started(['run', 'openai', '--url', gateway.url, '--pass-env', 'OPENAI_API_KEY', '--', 'x'], {
        env: given,
      });
      expect(pointed.program?.env['OPENAI_API_KEY']).toBe('canary-gateway-key');
    });
  });

  test('a client that is not installed', async () => {
    const { code, stderr } = await run(['run', 'claude', '--url', gateway.url]);
    expect(code).toBe(127);
    expect(stderr).toBe(
      'sluice: no program "claude" was found; install Claude Code with: npm install -g @anthropic-ai/claude-code\n',
    );
  });

  test('a program that may not be started', async () => {
    const { code } = await started(['run', 'claude', '--url', gateway.url], {
      program: () => Promise.reject(systemError('EACCES')),
    });
    expect(code).toBe(1);
  });

  test.each([
    [['run'], 'name a client'],
    [['run', 'openai'], 'name the program to start: sluice run openai -- PROGRAM'],
    [['run', 'ai-sdk', '--', 'x'], '"sluice env ai-sdk" prints how'],
    [['run', 'claude', '-p', 'hi'], 'unknown option "-p"'],
    [['run', 'claude', '--config', '/gone.yaml'], '/gone.yaml: no such file; check the path'],
    [['run', 'claude', '--url', NOWHERE, '--config', '/gone.yaml'], 'use one of them'],
    [['run', 'claude', '--pass-env', 'NOT_THERE'], '--pass-env: the environment variable "NOT_THERE" is not set'],
    [['serve', '--config', '/gone.yaml'], '/gone.yaml: no such file; check the path'],
    [['serve', '--config', '/'], '/: this is a directory; name a file in it'],
    [['serve', '--host', '192.0.2.1'], 'is reachable from other machines'],
  ])('%j is wrong usage', async (argv, message) => {
    const { code, stderr } = await run(argv);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('a real program', () => {
  const { runProgram, inTemporaryFolder } = createNodeIo();
  const node = (code: string) =>
    runProgram({ command: process.execPath, args: ['-e', code], env: { ...process.env, WORD: 'w' } });

  test('its exit code', async () => expect(await node('process.exit(process.env.WORD === "w" ? 7 : 1)')).toBe(7));
  test('the signal that ended it', async () => expect(await node('process.kill(process.pid, "SIGKILL")')).toBe(137));
  test('a program that does not exist', async () => {
    await expect(runProgram({ command: 'no-such-program-here', args: [], env: { PATH: tmpdir() } })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  test('the temporary folder is removed after use', async () => {
    const path = await inTemporaryFolder(async (folder) => {
      expect(existsSync(folder)).toBe(true);
      return folder;
    });
    expect(existsSync(path)).toBe(false);
  });
});

const bin = fileURLToPath(new URL('../bin/sluice.js', import.meta.url));

describe('the built command', needs('build'), () => {
  test('without a command, the gateway starts and prints its usage', async () => {
    const child = spawn(process.execPath, [bin, '--port', '0'], { env: { PATH: process.env['PATH'] }, cwd: FOLDER });
    let text = '';
    for await (const chunk of child.stdout) {
      text += String(chunk);
      if (text.includes('Stop: Ctrl-C')) break;
    }
    for (const piece of ['listens on', 'the built-in demo model responds', 'curl -N', 'claude', 'codex', 'gemini'])
      expect(text).toContain(piece);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test('a client that prints its environment shows no key', async () => {
    const script = 'console.log(JSON.stringify(process.env))';
    const argv = [bin, 'run', 'openai', '--config', EMPTY, '--', process.execPath, '-e', script];
    const env = { PATH: process.env['PATH'], GROQ_API_KEY: 'canary-groq', SLUICE_KEYS: 'gateway-key', LANG: 'C' };
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'], cwd: FOLDER, env });
    const [text] = await Promise.all([child.stdout.toArray().then((chunks) => chunks.join('')), once(child, 'exit')]);
    expect(text).not.toContain('canary');
    expect(JSON.parse(text)).toMatchObject({ PATH: process.env['PATH'], LANG: 'C', OPENAI_API_KEY: 'gateway-key' });
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s is forwarded to the client, and its exit code is returned', async (signal) => {
    const script = `process.on('${signal}', () => process.exit(9)); console.log('up'); setInterval(() => {}, 1000)`;
    const argv = [bin, 'run', 'openai', '--config', EMPTY, '--', process.execPath, '-e', script];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'], cwd: FOLDER });
    await once(child.stdout, 'data');
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([9, null]);
  });
});
