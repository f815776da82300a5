import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const bin = fileURLToPath(new URL('../bin/sluice.js', import.meta.url));
const demo = 'examples/broken-stream.sse';

interface Result {
  code: number;
  stdout: string;
  stderr: string;
}

const node = (args: string[], stdin = ''): Promise<Result> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, args, { cwd: root }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
    child.stdin?.end(stdin);
  });

describe('the real command', needs('build'), () => {
  test('reads a file, a folder, a missing file and stdin', async () => {
    const { code, stdout, stderr } = await node([bin, 'assemble', '--json', demo, 'examples', 'gone.sse', '-'], 'not a stream');
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toMatchObject([
      { file: demo, text: 'I will look up both cities.', finish_reason: 'tool_calls', wire_finish_reason: 'stop', error: null },
      { file: demo, error: null },
      { file: 'gone.sse', error: { code: 'ENOENT' } },
      { file: '-', error: { code: 'not_a_stream' } },
    ]);
    expect(lines[0]?.['tool_calls']).toMatchObject([
      { id: 'call_oslo', name: 'get_weather', arguments: '{"city": "Oslo"}' },
      { name: 'get_weather', arguments: '{"city":"Rome"}' },
    ]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/2 of \d+ inputs failed\nsluice: \d+ files skipped: not a response\n$/);
  });

  test('a closed stdout pipe is not a failure', async () => {
    const child = spawn(process.execPath, [bin, 'assemble', '--json', ...Array<string>(500).fill(demo)], { cwd: root });
    let stderr = '';
    child.stderr.on('data', (data) => (stderr += String(data)));
    child.stdout.once('data', () => child.stdout.destroy());
    const [code] = await once(child, 'close');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  test('a closed stderr does not stop the command', async () => {
    const child = spawn(process.execPath, [bin, 'assemble', '--json', 'gone', demo], { cwd: root });
    child.stderr.destroy();
    let stdout = '';
    child.stdout.on('data', (data) => {
      stdout += String(data);
    });
    const [code] = await once(child, 'close');
    expect(code).toBe(2);
    expect(stdout.split('\n')).toHaveLength(3);
  });

  test('the demo works', async () => {
    const { code, stdout, stderr } = await node(['examples/broken-stream.js']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('get_weather(call_oslo)');
    expect(stdout).not.toContain('\u001b');
  });
});
