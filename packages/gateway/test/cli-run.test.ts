import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Program } from '../src/cli/io.ts';
import { nodeIo } from '../src/cli/node-io.ts';
import { type Running, run as runGateway } from '../src/server/run.ts';
import { run, systemError, type World } from './fake-io.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const NOWHERE = 'http://127.0.0.1:9'; // the discard port: nobody listens there

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
  test('starts a client that asks the gateway', async () => {
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

  test('passes the exit code on', async () => {
    expect((await started(['run', 'gemini', '--url', gateway.url], { program: () => 42 })).code).toBe(42);
  });

  test('for a library, what follows is the program', async () => {
    const { program } = await started(['run', 'openai', '--url', gateway.url, '--', 'node', 'a.js', '-x']);
    expect(program).toMatchObject({ command: 'node', args: ['a.js', '-x'], env: { OPENAI_BASE_URL: `${gateway.url}/v1` } });
  });

  test('the arguments of a client stand before those of the user', async () => {
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
  ])('%s gets a folder of its own', async (id, path, env, args) => {
    const { program, files } = await started(['run', id, '--url', gateway.url]);
    expect(files[path]).toContain(id === 'gemini' ? 'gemini-api-key' : `${gateway.url}/v1`);
    expect(program).toMatchObject({ env, args });
  });

  test('where nobody listens, a gateway is started, and ends with the client', async () => {
    let url = '';
    const { code, stderr } = await started(['run', 'openai', '--url', NOWHERE, '--', 'x'], {
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
    expect(stderr).toContain(`a gateway for this run listens on ${url.slice(0, -3)}`);
    await expect(fetch(url)).rejects.toThrow();
  });

  test('the gateway of a run shows its own key', async () => {
    const { program } = await started(['run', 'openai', '--url', NOWHERE, '--', 'x'], { env: { SLUICE_KEYS: 'first,second' } });
    expect(program?.env['OPENAI_API_KEY']).toBe('first');
  });

  test('something else that listens is no gateway', async () => {
    const { stderr } = await started(['run', 'openai', '--url', `${gateway.url}/elsewhere`, '--', 'x']);
    expect(stderr).toContain('a gateway for this run');
  });

  test('a client that is not installed', async () => {
    const { code, stderr } = await run(['run', 'claude', '--url', gateway.url]);
    expect(code).toBe(127);
    expect(stderr).toBe(
      'sluice: there is no program "claude"; Claude Code is installed with: npm install -g @anthropic-ai/claude-code\n',
    );
  });

  test('a program that may not be started', async () => {
    const { code } = await started(['run', 'claude', '--url', gateway.url], {
      program: () => Promise.reject(systemError('EACCES')),
    });
    expect(code).toBe(1);
  });

  test.each([
    [['run'], 'say which client'],
    [['run', 'openai'], 'say which program to start: sluice run openai -- PROGRAM'],
    [['run', 'ai-sdk', '--', 'x'], '"sluice env ai-sdk" shows how'],
    [['run', 'claude', '-p', 'hi'], 'unknown option "-p"'],
    [['run', 'claude', '--url', NOWHERE, '--config', '/gone.yaml'], '/gone.yaml cannot be read: ENOENT'],
    [['serve', '--config', '/gone.yaml'], '/gone.yaml cannot be read: ENOENT'],
    [['serve', '--config', '/'], '/ cannot be read: EISDIR'],
    [['serve', '--host', '192.0.2.1'], 'can be reached from elsewhere'],
  ])('%j is wrong usage', async (argv, message) => {
    const { code, stderr } = await run(argv);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('a real program', () => {
  const { runProgram, inTemporaryFolder } = nodeIo();
  const node = (code: string) =>
    runProgram({ command: process.execPath, args: ['-e', code], env: { ...process.env, WORD: 'w' } });

  test('its exit code', async () => expect(await node('process.exit(process.env.WORD === "w" ? 7 : 1)')).toBe(7));
  test('the signal that ended it', async () => expect(await node('process.kill(process.pid, "SIGKILL")')).toBe(137));
  test('one that is not there', async () => {
    await expect(runProgram({ command: 'no-such-program-here', args: [], env: process.env })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  test('a folder is gone when it was used', async () => {
    const path = await inTemporaryFolder(async (folder) => {
      expect(existsSync(folder)).toBe(true);
      return folder;
    });
    expect(existsSync(path)).toBe(false);
  });
});

const bin = fileURLToPath(new URL('../bin/sluice.js', import.meta.url));
const isBuilt = existsSync(fileURLToPath(new URL('../dist/cli/commands/run.js', import.meta.url)));

describe.skipIf(!isBuilt)('the built command', () => {
  test('without a command, the gateway starts, and says what to paste', async () => {
    const child = spawn(process.execPath, [bin, '--port', '0'], { env: { PATH: process.env['PATH'] }, cwd: FOLDER });
    let text = '';
    for await (const chunk of child.stdout) {
      text += String(chunk);
      if (text.includes('Stop: Ctrl-C')) break;
    }
    for (const piece of ['listens on', 'the built-in demo model answers', 'curl -N', 'claude', 'codex', 'gemini'])
      expect(text).toContain(piece);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s goes to the client, and its exit code is ours', async (signal) => {
    const script = `process.on('${signal}', () => process.exit(9)); console.log('up'); setInterval(() => {}, 1000)`;
    const argv = [bin, 'run', 'openai', '--url', NOWHERE, '--', process.execPath, '-e', script];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'], cwd: FOLDER });
    await once(child.stdout, 'data');
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([9, null]);
  });
});
