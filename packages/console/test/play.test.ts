import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';
import {
  chat,
  checkAccessibility,
  chunk,
  hasSettled,
  localAt,
  openConsole,
  PATIENCE_MS,
  startGateway,
  useConsole,
} from './browser.ts';
import { CORPUS } from './corpus.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('sending from the console', { ...needs('chromium'), timeout: PATIENCE_MS }, () => {
  const rig = useConsole((url) => ({ providers: localAt(url), models: { fast: 'local/m', other: 'local/o' } }));
  const { visit } = rig;
  /** Bodies of requests that the upstream got. */
  const bodies: string[] = [];

  const respond = (text: string, finish = 'stop'): void => {
    rig.upstream.respond = (_, response, body) => {
      bodies.push(body);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${chunk({ role: 'assistant', content: text }, finish)}data: [DONE]\n\n`);
    };
  };

  /** Sends a request, and shows its exchange when it has ended; before, the pane is loaded again. */
  const show = async (body: { model: string } & Record<string, unknown>): Promise<void> => {
    await (await chat(rig.gateway.url, { stream: true, ...body })).text();
    await visit(`#/exchanges?filter=model%3A${encodeURIComponent(body.model)}`);
    await hasSettled(rows().first());
    await rows().first().click();
    await panel().getByText('Response').waitFor();
  };

  const rows = () => rig.watched.page.locator('.scroll [role=row][id]');

  const panel = () => rig.watched.page.getByRole('tabpanel');

  test('r: the request can be edited and sent to another model; the new exchange is shown', async () => {
    const { page } = rig.watched;
    respond('first answer');
    await show({ model: 'fast' });
    await panel().getByText('first answer').waitFor();
    const before = new URL(page.url()).hash;
    await page.keyboard.press('r');
    const editor = panel().getByRole('textbox', { name: /POST/ });
    await editor.waitFor();
    await checkAccessibility(page, 'resend', '.detail');
    await editor.fill((await editor.inputValue()).replace('Hello', 'Edited text'));
    await panel().getByLabel('model').fill('other');
    respond('second answer');
    await panel().getByRole('button', { name: 'Send' }).click();
    await panel().getByText('second answer').waitFor();
    await panel().getByText('Edited text').waitFor();
    expect(new URL(page.url()).hash).not.toBe(before);
    expect(JSON.parse(bodies.at(-1) ?? '')).toMatchObject({ model: 'o', messages: [{ role: 'user', content: 'Edited text' }] });
    await visit('#/exchanges?filter=tag%3Aconsole%20model%3Aother');
    await expect.poll(() => rows().count()).toBe(1);
  });

  test('invalid JSON cannot be sent, and changes can be undone', async () => {
    respond('ok');
    await show({ model: 'fast' });
    await rig.watched.page.keyboard.press('r');
    const editor = panel().getByRole('textbox', { name: /POST/ });
    await editor.fill('{"model": ');
    await panel().getByText('not valid JSON').waitFor();
    expect(await panel().getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    await panel().getByRole('button', { name: 'undo changes' }).click();
    expect(await panel().getByRole('button', { name: 'Send' }).isEnabled()).toBe(true);
  });

  test('d: two exchanges are compared, request and response', async () => {
    const { page } = rig.watched;
    for (const word of ['cat', 'dog']) {
      respond(`I like\nthe ${word}`);
      const messages = [{ role: 'user', content: `What about a ${word}?` }];
      await show({ model: 'local/compared', user: 'diff', messages });
    }
    await panel().getByText('the dog').waitFor();
    await page.keyboard.press('d');
    const diff = (name: string) => panel().getByRole('region', { name, exact: true }).locator('.diff');
    await expect.poll(() => diff('Request').locator('.diff-added').textContent()).toContain('What about a dog?');
    expect(await diff('Request').locator('.diff-removed').textContent()).toContain('What about a cat?');
    expect(await diff('Response').locator('.diff-added').allTextContents()).toEqual(['+the dog']);
    expect(await diff('Response').locator('.diff-removed').allTextContents()).toEqual(['-the cat']);
    expect(page.url()).toMatch(/with=[\w-]{36}/);
    await checkAccessibility(page, 'diff', '.detail');
  });

  test('code for SDKs: the request in another protocol, with its losses', async () => {
    const { page } = rig.watched;
    respond('ok');
    await show({ model: 'fast', logit_bias: { 5: 1 } });
    await page.getByRole('tab', { name: 'Code' }).click();
    await panel().getByText('curl -N').waitFor();
    await panel().getByLabel('protocol').selectOption('anthropic-messages');
    await panel().getByRole('button', { name: 'Python' }).click();
    await panel().getByText('from anthropic import Anthropic').waitFor();
    await panel()
      .getByText(/of the conversion/)
      .click();
    await panel().getByText('/logit_bias').waitFor();
    await checkAccessibility(page, 'code', '.detail');
  });

  test('the doctor examines the bytes of the upstream, with links to the rules, and a case can be saved', async () => {
    const { page } = rig.watched;
    const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];
    const messages = [{ role: 'user', content: 'demo: call get_weather' }];
    await show({ model: 'demo/blank-ids', tools, messages });
    await page.getByRole('tab', { name: /Notes/ }).click();
    await panel().getByRole('button', { name: 'Run the doctor' }).click();
    await panel()
      .getByText(/score \d+ of 100/)
      .waitFor();
    const link = panel().getByRole('region', { name: 'Attempt 1' }).getByRole('link').first();
    expect(await link.getAttribute('href')).toMatch(/docs\/rules\/chat-[\w-]+\.md$/);
    await checkAccessibility(page, 'doctor', '.detail');
    const download = page.waitForEvent('download');
    await panel().getByRole('button', { name: 'download as a case' }).click();
    const text = await new Response((await (await download).createReadStream()) as never).text();
    expect(JSON.parse(text)).toMatchObject({ protocol: 'openai-chat', providers: ['demo'] });
  });

  test('text is searched in captured bodies, and the page shows where', async () => {
    const { page } = rig.watched;
    respond('The wombat sleeps.');
    for (const model of ['fast', 'local/searched']) {
      await (await chat(rig.gateway.url, { model, stream: true })).text();
      respond('Another answer.');
    }
    await visit('#/exchanges');
    await hasSettled(rows().nth(1));
    await page.getByLabel('Filter').fill('wombat');
    await page.getByText(/1 of \d+ captured exchanges since/).waitFor();
    await expect.poll(() => rows().count()).toBe(1);
    await checkAccessibility(page, 'search');
    await page.getByLabel('Filter').fill('wombat status:error');
    await page.getByText('No exchange passes the filter.').waitFor();
    await page.getByLabel('Filter').fill('model:local/searched');
    await page.getByText(/1 of \d+ exchanges/).waitFor();
  });

  test('the playground sends a request with a tool and an image, and shows the response as it arrives', async () => {
    const { page } = rig.watched;
    await visit('#/playground');
    await page.getByLabel('model').waitFor();
    await checkAccessibility(page, 'playground');
    let stream: ServerResponse | undefined;
    rig.upstream.respond = (_, response, body) => {
      bodies.push(body);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk({ role: 'assistant', content: 'It is **sunny** ' }));
      stream = response;
    };
    await page.getByLabel('protocol').selectOption('anthropic-messages');
    await page.getByLabel('model').fill('fast');
    await page.getByLabel('system').fill('be brief');
    await page.getByLabel('user').fill('How is the weather?');
    await page
      .getByLabel('image')
      .setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(PIXEL, 'base64') });
    await page.getByText('tools and parameters').click();
    await page.getByLabel('tools (JSON)').fill('[{"name": "get_weather", "parameters": {"type": "object"}}]');
    await page.getByLabel('temperature').fill('0.5');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('strong', { hasText: 'sunny' }).waitFor();
    await page.getByText('receiving…').waitFor();
    stream?.write(chunk({ content: 'today.' }, 'stop'));
    stream?.end('data: [DONE]\n\n');
    await page.getByText('complete').waitFor();
    await page.getByText('stop reason: end_turn').waitFor();
    await page
      .getByText(/tokens/)
      .last()
      .waitFor();
    expect(JSON.parse(bodies.at(-1) ?? '')).toMatchObject({
      model: 'm',
      temperature: 0.5,
      messages: [
        { role: 'system', content: 'be brief' },
        {
          role: 'user',
          content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }],
        },
      ],
      tools: [{ function: { name: 'get_weather' } }],
    });
    await page.getByText('raw request').click();
    await page.getByText('POST /v1/messages').waitFor();
    await checkAccessibility(page, 'playground with a response');
    await page.getByRole('link', { name: 'exchange', exact: true }).click();
    await panel().getByText('How is the weather?').waitFor();
    expect(await page.locator('.detail').getByTitle('Anthropic Messages').count()).toBeGreaterThan(0);
  });

  test('the playground stops a stream, keeps what it has, and continues the conversation', async () => {
    const { page } = rig.watched;
    await visit('#/playground');
    const left = new Promise<void>((resolve) => {
      rig.upstream.respond = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunk({ role: 'assistant', content: 'Once upon a time' }));
        response.once('close', resolve);
      };
    });
    await page.getByLabel('model').fill('fast');
    await page.getByLabel('user').fill('Tell me a story');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Once upon a time').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('stopped').waitFor();
    await left;
    expect(await page.getByText('Once upon a time').count()).toBe(1);
    respond('The end.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('The end.').waitFor();
    await page.getByRole('button', { name: 'continue the conversation' }).click();
    expect(await page.getByLabel('assistant').inputValue()).toBe('The end.');
  });

  test('the playground continues after a tool call with its result', async () => {
    const { page } = rig.watched;
    await visit('#/playground');
    rig.upstream.respond = (_, response) => {
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${chunk({ role: 'assistant', tool_calls: [call] }, 'tool_calls')}data: [DONE]\n\n`);
    };
    await page.getByLabel('protocol').selectOption('gemini');
    await page.getByLabel('model').fill('fast');
    await page.getByLabel('user').fill('How is the weather?');
    await page.getByText('tools and parameters').click();
    await page.getByLabel('tools (JSON)').fill('[{"name": "get_weather", "parameters": {"type": "object"}}]');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('complete').waitFor();
    await page.getByRole('button', { name: 'continue the conversation' }).click();
    await page.getByLabel('result of get_weather').fill('{"degrees": 7}');
    await checkAccessibility(page, 'playground with a result');
    respond('Seven degrees.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Seven degrees.').waitFor();
    expect(JSON.parse(bodies.at(-1) ?? '').messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ function: { name: 'get_weather', arguments: expect.stringContaining('Oslo') } }] },
      { role: 'tool', content: expect.stringContaining('degrees') },
    ]);
  });

  test('the form of the playground has a model when it appears: a later one would mix with what is typed', async () => {
    const { page } = rig.watched;
    await page.addInitScript(() => {
      const seen: string[] = [];
      Object.assign(globalThis, { seen });
      new MutationObserver(() => {
        const field = document.querySelector<HTMLInputElement>('form.request input[list]');
        if (field) seen.push(field.value);
      }).observe(document, { childList: true, subtree: true });
    });
    await visit('#/playground');
    await page.getByLabel('model').waitFor();
    expect(await page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen[0])).toBe('fast');
  });

  test('the playground shows what is wrong with the form, a refused request and an error of the model', async () => {
    const { page } = rig.watched;
    await visit('#/playground');
    await page.getByLabel('model').fill('fast');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Write a user message.').waitFor();
    await page.getByLabel('user').fill('hi');
    rig.upstream.respond = (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'the model is on fire' } }));
    };
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/400: .*on fire/).waitFor();
    await page.getByLabel('model').fill('unknown/model');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/404: /).waitFor();
  });

  test('no text of a model becomes code in the new views', async () => {
    const { page } = rig.watched;
    const text = CORPUS.join('\n\n');
    respond(text);
    const tools = [{ type: 'function', function: { name: 'x', description: text } }];
    const messages = ['system', 'user'].map((role) => ({ role, content: text }));
    for (const user of [text, `${text} again`])
      await (await chat(rig.gateway.url, { model: `local/${CORPUS[2]}`, stream: true, messages, tools, user })).text();
    await visit('#/exchanges');
    await hasSettled(rows().first());
    await rows().first().click();
    await panel().getByText('Response').waitFor();
    await page.keyboard.press('r');
    await expect.poll(() => panel().getByRole('textbox', { name: /POST/ }).inputValue()).toContain('ran(');
    await page.getByRole('tab', { name: 'Diff' }).focus();
    await page.keyboard.press('d');
    await panel().getByRole('button', { name: 'all lines' }).first().click();
    await panel().locator('.diff').getByText('ran(').first().waitFor();
    await page.getByRole('tab', { name: 'Code' }).click();
    for (const language of ['curl', 'Python', 'TypeScript']) {
      await panel().getByRole('button', { name: language }).click();
      await panel().getByText('ran(').first().waitFor();
    }
    await page.getByRole('tab', { name: /Notes/ }).click();
    await panel().getByRole('button', { name: 'Run the doctor' }).click();
    await panel()
      .getByText(/score \d+/)
      .waitFor();
    await visit('#/playground');
    await page.getByLabel('model').fill(`local/${CORPUS[2]}`);
    await page.getByLabel('user').first().fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('complete').waitFor();
    await page.getByText('ran("script")').first().waitFor();
    expect(await page.locator('main :is(script, iframe, img, svg[onload])').count()).toBe(0);
    expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
  });

  test('a page of another origin and a session without its token send nothing', async () => {
    await visit('#/playground');
    const count = bodies.length;
    const path = '/admin/v1/requests?path=/v1/chat/completions';
    const body = JSON.stringify({ model: 'fast', messages: [{ role: 'user', content: 'from elsewhere' }] });
    const statuses = await rig.watched.page.evaluate(
      async ([url = '', text = '']) => {
        const send = async (headers: Record<string, string>): Promise<number> =>
          (await fetch(url, { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } })).status;
        return [await send({}), await send({ 'x-sluice-csrf': 'guessed' })];
      },
      [path, body],
    );
    expect(statuses).toEqual([403, 403]);
    const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html>'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const evil = await rig.watched.context.newPage();
    await evil.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const seen = await evil.evaluate(
      async ([url = '', text = '']) => {
        const send = (init: RequestInit): Promise<string> =>
          fetch(url, { method: 'POST', credentials: 'include', body: text, ...init }).then(
            (response) => response.type,
            () => 'failed',
          );
        return [
          await send({ headers: { 'content-type': 'application/json' } }),
          await send({ mode: 'no-cors' }),
          await send({ mode: 'no-cors', headers: { 'content-type': 'text/plain' } }),
        ];
      },
      [rig.gateway.url + path, body],
    );
    expect(seen).toEqual(['failed', 'opaque', 'opaque']);
    await evil.close();
    await new Promise((resolve) => server.close(resolve));
    expect(bodies.length).toBe(count);
  });

  test('360 pixels are enough for the playground and the forms, in the dark theme', async () => {
    const { page } = rig.watched;
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 360, height: 740 });
    await visit('#/playground');
    await page.getByLabel('model').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    await checkAccessibility(page, 'dark playground');
    respond('ok');
    await show({ model: 'fast' });
    for (const tab of ['Resend', 'Diff', 'Code']) {
      await page.getByRole('tab', { name: tab }).click();
      await panel().locator('select, textarea').first().waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
      await checkAccessibility(page, `dark ${tab}`, '.detail');
    }
  });

  test('with client keys, a key must be chosen, and its models apply', async () => {
    const admin = 'the-admin-key-of-the-play-tests';
    const keys = [{ key: 'client-key-of-the-play-tests', name: 'alice', models: ['demo/hello'] }];
    const other = await startGateway({ auth: { keys } }, { SLUICE_ADMIN_KEY: admin });
    try {
      const { page, context } = await openConsole(rig.browser, other, `${other.url}/`);
      await page.getByLabel('Admin key, or link').fill(admin);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('link', { name: 'Playground' }).click();
      await page.getByLabel('user').fill('hi');
      await page.getByLabel('model').fill('demo/hello');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText('choose the key').waitFor();
      await page.getByLabel(/^key/).selectOption('alice');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText('complete').waitFor();
      await page.getByLabel('model').fill('demo/blank-ids');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText(/403: .*alice/).waitFor();
      await context.close();
    } finally {
      await other.close();
    }
  });
});
