import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from '@gateway/capture/inspect/inspect';
import { accumulate } from '@sluice/core';
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';
import { checkAccessibility, chunk, hasSettled, localAt, openConsole, PATIENCE_MS, useConsole } from './browser.ts';
import { CORPUS } from './corpus.ts';

const call = (index: number, name: string | undefined, text: string): object => ({
  tool_calls: [
    { index, ...(name && { id: `call_${index}`, type: 'function' }), function: { ...(name && { name }), arguments: text } },
  ],
});

/** The first part of the arguments. */
const BEGUN = '{"path":"';

/** A stream with reasoning, text and two calls whose arguments arrive in pieces. */
const FRAMES = [
  ...Array.from({ length: 60 }, (_, i) => chunk({ reasoning_content: `think ${i} ` })),
  ...Array.from({ length: 120 }, (_, i) => chunk({ content: `word ${i} – ` })),
  ...[0, 1].flatMap((index) => [
    chunk(call(index, 'read_file', BEGUN)),
    ...Array.from({ length: 60 }, (_, i) => chunk(call(index, undefined, `dir${i}/`))),
    chunk(call(index, undefined, '"}')),
  ]),
  chunk({}, 'tool_calls'),
  'data: [DONE]\n\n',
];

const HOSTILE = chunk(
  { content: CORPUS.join('\n'), reasoning_content: CORPUS.join('\n'), ...call(0, CORPUS[2], JSON.stringify({ x: CORPUS })) },
  'tool_calls',
);

const BINARY = fileURLToPath(new URL('../../gateway/bin/sluice.js', import.meta.url));

const pane = (page: Page, id: string) => page.locator(`.pane-${id} .pane-body`);

/** What the page shows of the message. */
const readMessage = (page: Page): Promise<{ kind: string; title: string; text: string }[]> =>
  page.locator('.pane-message .content').evaluateAll((blocks) =>
    blocks.map((block) => ({
      kind: block.getAttribute('data-kind') ?? '',
      title: block.querySelector('.content-title')?.textContent?.trim() ?? '',
      text: block.querySelector('pre')?.textContent ?? '',
    })),
  );

/** Where the playhead is. */
const readPosition = (page: Page): Promise<{ frame: number; events: number }> =>
  page.locator('.where output').evaluate((output: HTMLElement) => ({
    frame: Number(output.dataset['frame']),
    events: Number(output.dataset['events']),
  }));

const slider = (page: Page) => page.getByRole('slider', { name: 'Playhead' });

describe('inspector', { ...needs('chromium'), timeout: PATIENCE_MS }, () => {
  const rig = useConsole((url) => ({ providers: localAt(url) }));
  const { visit } = rig;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-inspector-'));

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const drop = async (name: string, text: string): Promise<void> => {
    await rig.watched.page
      .locator('input[type=file]')
      .setInputFiles({ name, mimeType: 'text/event-stream', buffer: Buffer.from(text) });
    await slider(rig.watched.page).waitFor();
  };

  /** Sends a request of an Anthropic client, whose response the upstream writes in two parts. */
  async function exchange(model: string, frames: readonly string[]): Promise<void> {
    const half = Math.ceil(frames.length / 2);
    let finish = (): void => undefined;
    rig.upstream.respond = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(frames.slice(0, half).join(''));
      finish = () => void response.end(frames.slice(half).join(''));
    };
    const messages = [{ role: 'user', content: 'hello' }];
    const response = await fetch(`${rig.gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model, max_tokens: 100, stream: true, messages }),
    });
    // The client has read something of the first part before the second one is sent.
    const reader = response.body?.getReader();
    await reader?.read();
    finish();
    while (!(await reader?.read())?.done);
  }

  /** Shows the stream of a new exchange. */
  async function showStream(): Promise<void> {
    const { page } = rig.watched;
    const frames = [chunk({ content: 'one ' }), chunk({ content: 'two ' }), chunk({ content: 'three' }, 'stop')];
    await exchange('local/inspected', frames);
    await visit('#/exchanges?filter=model%3Alocal%2Finspected');
    const newest = page.locator('.scroll [role=row][id]').first();
    // The pane is loaded again when the exchange ends.
    await hasSettled(newest);
    await newest.click();
    await page.getByRole('tab', { name: 'Stream' }).click();
    await page.getByText('derived bytes equal the recorded ones').waitFor();
  }

  test('the stream of a captured exchange is derived, equals the recorded one, and moves by keyboard', async () => {
    const { page } = rig.watched;
    await showStream();
    expect(await page.getByText('sse/missing-done').count()).toBe(1);
    expect((await readMessage(page)).map(({ text }) => text)).toEqual(['one two three']);
    for (const [key, frame, text] of [
      ['ArrowLeft', 2, 'one two three'],
      ['ArrowLeft', 1, 'one two '],
      ['ArrowLeft', 0, 'one '],
      ['ArrowRight', 1, 'one two '],
    ] as const) {
      await page.getByRole('tabpanel').focus();
      await page.keyboard.press(key);
      await expect.poll(async () => (await readPosition(page)).frame).toBe(frame);
      await expect.poll(async () => (await readMessage(page)).map((block) => block.text)).toEqual([text]);
    }
    const { events } = await readPosition(page);
    await page.keyboard.press('Shift+ArrowLeft');
    await expect.poll(async () => (await readPosition(page)).events).toBe(events - 1);
    await page
      .getByRole('button', { name: 'frame 3' })
      .or(page.getByRole('button', { name: 'end', exact: true }))
      .first()
      .click();
    await expect.poll(async () => (await readPosition(page)).frame).toBeGreaterThanOrEqual(2);
    await page.getByRole('tabpanel').focus();
    await page.keyboard.press(' ');
    await expect.poll(async () => (await readPosition(page)).frame).toBe(3);
    await checkAccessibility(page, 'stream', '.detail');
  });

  test('a frame of the client shows the bytes of the upstream that it came from', async () => {
    const { page } = rig.watched;
    await showStream();
    await page.getByLabel('Axis').selectOption('frames');
    const shown = page.getByText(/client frame \d+ ← event \d+ ← upstream frame 2, bytes \d+–\d+/);
    // Repeated: the lanes are measured after they are there.
    const hover = async (): Promise<number> => {
      const box = await slider(page).boundingBox();
      await page.mouse.move(0, 0);
      await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) * 0.66, (box?.y ?? 0) + 130);
      return shown.count();
    };
    await expect.poll(hover).toBe(1);
  });

  test('bytes that differ from the recorded ones are reported, also of a file', async () => {
    const { page } = rig.watched;
    await showStream();
    const id = /id=([\w-]+)/.exec(page.url())?.[1] ?? '';
    const capture = await page.evaluate(async (path) => (await fetch(path)).text(), `/admin/v1/exchanges/${id}/tape`);
    const value = JSON.parse(capture) as { response: { body: string } };
    const sent = Buffer.from(value.response.body, 'base64').toString();
    expect(sent).toContain('two ');
    value.response.body = Buffer.from(sent.replace('two ', 'twe ')).toString('base64');
    await visit('#/inspect');
    await drop('capture.json', capture);
    await page.getByText('derived bytes equal the recorded ones').waitFor();
    await drop('changed.json', JSON.stringify(value));
    const at = sent.indexOf('two ') + 2;
    await page.getByText(`differ from the recorded ones from byte ${at} on`).waitFor();
  });

  test('a dropped file makes no request, and its message is that of accumulate() at 50 places', async () => {
    const { page } = rig.watched;
    await visit('#/inspect');
    await page.getByText('nothing is sent').waitFor();
    await checkAccessibility(page, 'inspector without a file');
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await drop('stream.sse', FRAMES.join(''));
    const body = Buffer.from(FRAMES.join(''));
    const { upstream: source } = inspect({ is: 'body', name: '', body, reads: [] });
    const box = await slider(page).boundingBox();
    if (!box) throw new Error('the lanes have no size');
    let state = 7;
    for (let i = 0; i < 50; i++) {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      await page.mouse.click(box.x + (state / 2_147_483_648) * box.width, box.y + 20);
      const { frame } = await readPosition(page);
      const { to = body.length } = source.frames[frame] ?? {};
      const expected = await accumulate([body.subarray(0, to)]);
      const shown = await readMessage(page);
      const textOf = (kind: string): string => shown.flatMap((block) => (block.kind === kind ? [block.text] : [])).join('');
      expect({ frame, text: textOf('text'), thinking: textOf('thinking') }).toEqual({
        frame,
        text: expected.text,
        thinking: expected.reasoning,
      });
      // The decoder holds back a call that has just begun; accumulate() ends the stream and so releases it.
      const calls = expected.tool_calls.filter(({ arguments: text }) => text !== BEGUN);
      expect(shown.flatMap(({ kind, text }) => (kind === 'call' && text !== BEGUN ? [text] : []))).toEqual(
        calls.map(({ arguments: text }) => text),
      );
    }
    await page.getByLabel('Show what a client would receive of').selectOption('anthropic-messages');
    await page.mouse.click(box.x + box.width / 3, box.y + 20);
    await pane(page, 'client').getByText('event: content_block_delta').first().waitFor();
    expect(requests).toEqual([]);
    await checkAccessibility(page, 'inspector');
  });

  test('a file that is not a stream is refused with a reason; one with bytes can be searched by byte', async () => {
    const { page } = rig.watched;
    await visit('#/inspect');
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'x.html', mimeType: 'text/html', buffer: Buffer.from('<html>') });
    await page.getByText('expected a response stream').waitFor();
    await drop('stream.sse', FRAMES.join(''));
    const [first = '', second = ''] = FRAMES;
    for (const [byte, frame] of [
      [first.length, 1],
      [first.length - 1, 0],
      [first.length + second.length, 2],
    ] as const) {
      await page.getByLabel('Go to byte').fill(String(byte));
      await page.getByLabel('Go to byte').press('Enter');
      await expect.poll(async () => (await readPosition(page)).frame).toBe(frame);
    }
  });

  test('no text in a stream, a name or a page of `sluice inspect --html` becomes code', async () => {
    const { page } = rig.watched;
    await visit('#/inspect');
    await drop(`${CORPUS[2]}.sse`, HOSTILE);
    for (const key of ['ArrowLeft', 'Shift+ArrowLeft', 'ArrowRight', 'ArrowRight']) {
      await page.locator('h1').click();
      await page.keyboard.press(key);
    }
    await pane(page, 'message').getByText('ran("script")').first().waitFor();
    expect(await page.locator('main :is(script, iframe, img, svg[onload])').count()).toBe(0);

    writeFileSync(join(folder, 'hostile.sse'), HOSTILE);
    const html = execFileSync(process.execPath, [BINARY, 'inspect', '--html', '--to', 'anthropic', join(folder, 'hostile.sse')]);
    writeFileSync(join(folder, 'page.html'), html);
    const alone = await openConsole(rig.browser, rig.gateway, pathToFileURL(join(folder, 'page.html')).href);
    const requests: string[] = [];
    alone.page.on('request', (request) => requests.push(request.url()));
    await slider(alone.page).waitFor();
    await pane(alone.page, 'message').getByText('ran("script")').first().waitFor();
    await alone.page.keyboard.press('ArrowLeft');
    await expect.poll(async () => (await readPosition(alone.page)).frame).toBe(0);
    await checkAccessibility(alone.page, 'page of its own');
    expect(await alone.page.locator('main :is(script, iframe, img, svg[onload])').count()).toBe(0);
    expect([requests, await alone.listHarm(), alone.errors]).toEqual([[], [], []]);
    await alone.context.close();
  });

  test('360 pixels are enough, and the dark theme has contrast', async () => {
    const { page } = rig.watched;
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
    await page.setViewportSize({ width: 360, height: 740 });
    await visit('#/inspect');
    await drop('stream.sse', FRAMES.join(''));
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    await checkAccessibility(page, 'dark inspector');
  });
});
