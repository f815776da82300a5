import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENTS } from '../../packages/gateway/src/clients/clients.ts';
import { type Running, run } from '../../packages/gateway/src/server/run.ts';

const folder = fileURLToPath(new URL('../../examples/', import.meta.url));
const aliases = new URL('./aliases.js', import.meta.url).href;
const execute = promisify(execFile);

/** Examples whose SDK is there under this or another name. */
const RUN = ['openai-chat.js', 'openai-responses.js', 'anthropic.js', 'google.js', 'tools.js'];

let gateway: Running;
beforeAll(async () => {
  gateway = await run({ folder, env: {}, listen: { port: 0 }, log: 'silent' });
});
afterAll(() => gateway.close(0));

const env = () => ({ PATH: process.env['PATH'], SLUICE_URL: gateway.url });

/** Runs a program whose output nobody reads, as behind `head -c 0`. */
async function runClosed(args: string[]): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, args, { env: env() });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (data) => (stderr += String(data)));
  const [code] = (await once(child, 'close')) as [number | null]; // its arguments
  return { code, stderr };
}

describe('examples for SDKs', { concurrent: true }, () => {
  const programs = readdirSync(`${folder}clients`).filter((name) => name.endsWith('.js'));

  test.each(RUN)('%s gets a response of the demo model', async (name) => {
    const { stdout } = await execute(process.execPath, ['--import', aliases, `${folder}clients/${name}`], { env: env() });
    expect(stdout).toContain(name === 'tools.js' ? 'The tool returned: Rain in' : 'This is the demo model of Sluice');
  });

  test.each(RUN)('%s ends quietly when its reader closes the pipe', async (name) => {
    expect(await runClosed(['--import', aliases, `${folder}clients/${name}`])).toEqual({ code: 0, stderr: '' });
  });

  test.each(['convert.js', 'broken-stream.js'])('%s ends quietly when its reader closes the pipe', async (name) => {
    expect(await runClosed([folder + name])).toEqual({ code: 0, stderr: '' });
  });

  test.each(programs.filter((name) => !RUN.includes(name)))('%s parses', async (name) => {
    await execute(process.execPath, ['--check', `${folder}clients/${name}`]);
  });

  test('curl.sh gets a response in all four protocols', async () => {
    const { stdout } = await execute('sh', [`${folder}clients/curl.sh`], { env: env() });
    for (const word of ['chat.completion.chunk', 'message_stop', 'response.completed', '"finishReason"'])
      expect(stdout).toContain(word);
  });
});

/** The scripts say what `sluice run` does: a client that prints its surroundings takes the place of the real one. */
describe('examples for agents', () => {
  const SCRIPTS = {
    'claude-code': 'claude',
    codex: 'codex',
    'gemini-cli': 'gemini',
    opencode: 'opencode',
    pi: 'pi',
    cline: 'cline',
  };

  test('there is one for each tested agent', () => {
    const names = readdirSync(`${folder}agents`).flatMap((name) => /(.*)\.sh$/.exec(name)?.[1] ?? []);
    expect(new Set(names)).toEqual(new Set(Object.keys(SCRIPTS)));
  });

  test.each(Object.entries(SCRIPTS))('%s.sh sets the same variables as the table', (name, id) => {
    const text = readFileSync(`${folder}agents/${name}.sh`, 'utf8');
    const client = CLIENTS[id];
    const target = { url: 'http://127.0.0.1:4141', key: 'any', model: 'demo/hello' };
    const variables = { ...client?.env?.(target), ...client?.file?.apart?.env?.('/own') };
    // Gemini CLI takes its model as an option as well; its folder is only needed for headless runs.
    for (const variable of Object.keys(variables).filter((word) => !/^GEMINI_(MODEL|CLI_HOME)$/.test(word)))
      expect(text).toContain(variable);
    for (const variable of client?.unset ?? []) expect(text).toMatch(new RegExp(`unset .*${variable}`));
  });
});
