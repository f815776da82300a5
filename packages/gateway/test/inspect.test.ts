import { describe, expect, test } from 'vitest';
import { jsonLines, run, type World } from './fake-io.ts';

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const STREAM = `${chunk({ content: 'one ' })}${chunk({ content: '</script><!--' })}${chunk({}, 'stop')}data: [DONE]\n\n`;

const FACTS = { protocol: 'openai-chat', response: { body: 'response.sse', reads: [[120, STREAM.length]] } };

const world: World = {
  files: { 'a.sse': STREAM, 'tape/exchange.json': JSON.stringify(FACTS), 'tape/response.sse': STREAM, 'page.html': '<html>' },
  folders: { tape: ['tape/exchange.json', 'tape/response.sse'], empty: [] },
};

describe('sluice inspect', () => {
  test('--json has every frame with its events, and the client frames with theirs', async () => {
    const outcome = await run(['inspect', '--json', '--to', 'anthropic', 'a.sse'], world);
    const [record] = jsonLines(outcome);
    expect(outcome.code).toBe(0);
    expect(record).toMatchObject({
      protocol: 'openai-chat',
      client_protocol: 'anthropic-messages',
      bytes: STREAM.length,
      has_times: false,
      comparison: { is: 'unknown' },
      findings: [],
      complete: true,
      message: { content: [{ type: 'text', text: 'one </script><!--' }] },
    });
    const { frames, events, client_frames: sent } = record as Record<string, { frame: number; text: string; events: number[] }[]>;
    expect(frames?.map(({ text }) => text).join('')).toBe(STREAM);
    const delta = sent?.find(({ text }) => text.includes('"one "'));
    expect(delta?.frame).toBe(0);
    expect(events?.[delta?.events[0] ?? -1]).toMatchObject({ frame: 0, event: { type: 'content_block_delta' } });
  });

  test.each(['tape', 'tape/', './tape'])('a recorded exchange, named %s, has its times', async (folder) => {
    const files = ['tape/exchange.json', 'tape/response.sse'];
    const named = { './tape/exchange.json': JSON.stringify(FACTS), './tape/response.sse': STREAM };
    const here = { files: { ...world.files, ...named }, folders: { [folder]: files } };
    expect(jsonLines(await run(['inspect', '--json', folder], here))).toMatchObject([
      { name: folder.replace(/\/$/, ''), has_times: true, end_ms: 120 },
    ]);
  });

  test('without options, counts and findings are printed', async () => {
    const { code, stdout } = await run(['inspect', '-'], { stdin: chunk({ content: 'hi' }, 'stop') });
    expect(code).toBe(0);
    expect(stdout).toContain('upstream  openai-chat  1 frames');
    expect(stdout).toMatch(/sse\/missing-done/);
  });

  test('--html contains the data without a character that could end its element, and a policy for its own script only', async () => {
    const { code, stdout } = await run(['inspect', '--html', 'a.sse'], world);
    expect(code).toBe(0);
    const [, data = ''] = /id="data">(.*?)<\/script>/s.exec(stdout) ?? [];
    expect(JSON.parse(data)).toMatchObject({ is: 'body', name: 'a.sse', body: Buffer.from(STREAM).toString('base64') });
    expect(data).not.toContain('<');
    expect(stdout.match(/<script/g)).toHaveLength(2);
    expect(stdout).toMatch(/default-src 'none'; script-src 'sha256-[\w+/=]{44}'; style-src 'sha256-[\w+/=]{44}'/);
    expect(stdout).not.toMatch(/ (src|href)="?https?:/);
  });

  test.each([
    ['two formats', ['--json', '--html', 'a.sse'], 2, 'exclude each other'],
    ['two inputs', ['a.sse', 'b.sse'], 2, 'is the second'],
    ['no such protocol', ['--to', 'smtp', 'a.sse'], 2, 'unknown protocol'],
    ['no stream', ['page.html'], 2, 'expected a response stream'],
    ['a folder without an exchange', ['empty'], 2, 'is not a recorded exchange'],
    ['no such file', ['missing.sse'], 2, 'missing.sse'],
  ])('%s', async (_, argv, code, message) => {
    const outcome = await run(['inspect', ...argv], world);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr).toContain(message);
  });
});
