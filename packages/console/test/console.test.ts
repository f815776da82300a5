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

const KEY = 'the-admin-key-of-the-console-tests';

// One gateway, which has the exchanges and keys of the tests before.
describe('console', { ...needs('chromium'), timeout: PATIENCE_MS, shuffle: false }, () => {
  const rig = useConsole((url) => ({ providers: localAt(url) }));
  const { visit } = rig;

  /** Opens everything that is closed, with what that shows. */
  const openAll = async (): Promise<void> => {
    for (let depth = 0; depth < 3; depth++)
      await rig.watched.page.evaluate(async () => {
        for (const details of document.querySelectorAll<HTMLDetailsElement>('.panel details')) details.open = true;
        await new Promise(requestAnimationFrame);
      });
  };

  const rows = () => rig.watched.page.locator('.scroll [role=row][id]');

  /** Waits until new exchanges arrive at the list. */
  const isLive = (): Promise<void> => rig.watched.page.getByText('● live').waitFor();

  /** Makes the upstream refuse. */
  const refuse = (): void => {
    rig.upstream.respond = (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: 'the model is on fire', type: 'invalid_request_error' } }));
    };
  };

  test('without the link, the page requires it; the link opens it once, and its token leaves the address', async () => {
    const stranger = await openConsole(rig.browser, rig.gateway, `${rig.gateway.url}/`);
    await stranger.page.getByRole('heading', { name: 'Open the link of the terminal' }).waitFor();
    await checkAccessibility(stranger.page, 'login');

    expect(rig.opened).toBe(`${rig.gateway.url}/`);

    const late = await openConsole(rig.browser, rig.gateway);
    await late.page.getByText('was used before').waitFor();
    await Promise.all([stranger.context.close(), late.context.close()]);
  });

  test('the first page has a line for curl that works, and then shows the exchange', async () => {
    const { page } = rig.watched;
    await visit('#/');
    const snippet = await page.getByRole('region', { name: 'A request by curl' }).textContent();
    const [, url = '', body = '{}'] = /(http\S+)[\s\S]*-d '(.*)'$/.exec(snippet ?? '') ?? [];
    rig.upstream.respond = (_, response) => response.end(chunk({ content: 'hi' }, 'stop'));
    const model = 'demo/hello';
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...JSON.parse(body), model }),
    });
    expect(await response.text()).toContain('data: [DONE]');
    await page.locator('table.plain').getByText(model).waitFor();
    await page.getByLabel('Client').selectOption('codex');
    await page.getByText('model_provider="sluice"').first().waitFor();
    await checkAccessibility(page, 'home');
  });

  test('a streaming exchange is in the list while it runs, and settles in place', async () => {
    await visit('#/');
    await rig.watched.page.getByRole('link', { name: 'Exchanges' }).click();
    await isLive();
    let stream: ServerResponse | undefined;
    const begun = new Promise<void>((resolve) => {
      rig.upstream.respond = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunk({ role: 'assistant', content: 'one ' }));
        stream = response;
        resolve();
      };
    });
    const running = chat(rig.gateway.url, { model: 'local/slow', stream: true });
    await begun;
    const row = rows().filter({ hasText: 'local/slow' });
    await row.getByText('live').waitFor();
    await row.click();
    const panel = rig.watched.page.getByRole('tabpanel');
    await panel.evaluate((element) => element.setAttribute('data-before', ''));
    stream?.write(chunk({ content: 'two' }, 'stop'));
    stream?.end('data: [DONE]\n\n');
    await (await running).text();
    await hasSettled(row);
    expect(await row.count()).toBe(1);
    await panel.getByText('one two').waitFor();
    expect(await panel.getAttribute('data-before'), 'the pane is not built again').toBe('');
  });

  test('a failed exchange is found by a filter in the address', async () => {
    const { page } = rig.watched;
    refuse();
    expect((await chat(rig.gateway.url, { model: 'local/broken' })).status).toBe(400);
    await visit('#/exchanges?filter=status%3Aerror');
    await rows().filter({ hasText: 'local/broken' }).waitFor();
    expect(await rows().count()).toBe(1);
    await rows().first().click();
    await page.getByText('the model is on fire').waitFor();
    expect(page.url()).toMatch(/#\/exchanges\?filter=status%3Aerror&id=[\w-]{36}$/);
    await page.reload();
    await page.getByText('the model is on fire').waitFor();
  });

  test('new rows pass the filter or do not appear; unknown terms are marked with a suggestion', async () => {
    const { page } = rig.watched;
    await visit('#/exchanges?filter=model%3Alocal%2Fb*');
    await isLive();
    await (await chat(rig.gateway.url, { model: 'demo/hello' })).text();
    refuse();
    await (await chat(rig.gateway.url, { model: 'local/b2' })).text();
    await rows().filter({ hasText: 'local/b2' }).waitFor();
    expect(await rows().filter({ hasText: 'demo/hello' }).count()).toBe(0);
    await page.keyboard.press('/');
    await page.keyboard.press('Control+A');
    // At once: typing that rests is applied.
    await page.keyboard.insertText('modle:gpt');
    await page.getByText('did you mean "model"?').waitFor();
    expect(await page.getByLabel('Filter').getAttribute('aria-invalid')).toBe('true');
    expect(page.url()).toContain('filter=model%3Alocal');
    await page.keyboard.press('Escape');
  });

  test('a filter is applied when typing rests, and a space at its end stays', async () => {
    const { page } = rig.watched;
    await visit('#/exchanges');
    const field = page.getByLabel('Filter');
    await field.fill('model:local/none ');
    await page.getByText('No exchange passes the filter.').waitFor();
    expect(page.url()).toMatch(/filter=model%3Alocal%2Fnone$/);
    expect(await field.inputValue()).toBe('model:local/none ');
    await page.getByRole('button', { name: 'Remove the filter' }).click();
    await expect.poll(() => field.inputValue()).toBe('');
  });

  test('one exchange by keyboard: conversation, raw bodies, times, notes, attempts and session', async () => {
    const { page } = rig.watched;
    const tools = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }];
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'demo: call get_weather' },
    ];
    for (const model of ['demo/hello', 'demo/blank-ids'])
      await (await chat(rig.gateway.url, { model, stream: true, messages, tools }, { 'x-session-id': 'trip' })).text();
    await visit('#/exchanges?filter=model%3Ademo%2Fblank-ids');
    await rows().first().waitFor();
    await page.keyboard.press('j');
    const panel = page.getByRole('tabpanel');
    await panel.getByText('get_weather').first().waitFor();
    await checkAccessibility(page, 'conversation');
    for (const [key, text] of [
      ['2', 'Tokens and cost'],
      ['3', 'Request of the client'],
      ['4', 'Violations of the upstream'],
      ['5', 'request_id'],
      ['6', /turns|did not mark/],
    ] as const) {
      await page.keyboard.press(key);
      await panel.getByText(text).first().waitFor();
      await checkAccessibility(page, `tab ${key}`, '.detail');
    }
    await page.keyboard.press('Escape');
    await page.getByRole('tabpanel').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('list all keys').waitFor();
    await checkAccessibility(page, 'help');
    await page.keyboard.press('Escape');
  });

  test('pause holds new rows back; columns and exports can be chosen', async () => {
    const { page } = rig.watched;
    await (await chat(rig.gateway.url, { model: 'demo/hello' })).text();
    await visit('#/exchanges?filter=model%3Ademo%2F*');
    await isLive();
    await hasSettled(rows().first());
    const before = await rows().count();
    await page.keyboard.press('p');
    await (await chat(rig.gateway.url, { model: 'demo/hello' })).text();
    await page.getByRole('button', { name: 'continue (2 new)' }).waitFor();
    expect(await rows().count()).toBe(before);
    await page.getByRole('button', { name: 'continue (2 new)' }).click();
    await expect.poll(() => rows().count()).toBe(before + 1);
    await page.getByText('columns ▾').click();
    await page.getByLabel('first token').check();
    await page.getByRole('columnheader', { name: 'first token' }).waitFor();
    await checkAccessibility(page, 'columns');
    await page.getByText('columns ▾').click();
    await page.getByText('export ▾').click();
    for (const [name, first] of [
      ['JSON lines', /^\{"id":"/],
      ['CSV', /^id,request_id,/],
    ] as const) {
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name }).click();
      const text = await new Response((await (await download).createReadStream()) as never).text();
      expect(text).toMatch(first);
      expect(text.trim().split('\n').length).toBe(before + 1 + (name === 'CSV' ? 1 : 0));
    }
  });

  test('no text of a model, tool, error, model id or client becomes code', async () => {
    const { page } = rig.watched;
    const text = CORPUS.join('\n\n');
    rig.upstream.respond = (_, response, body) => {
      if (body.includes('"fail"')) {
        response.writeHead(400, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { message: text, type: CORPUS[0], code: CORPUS[2] } }));
        return;
      }
      const call = {
        index: 0,
        id: CORPUS[2],
        type: 'function',
        function: { name: CORPUS[2], arguments: JSON.stringify({ [text]: text }) },
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(chunk({ content: text, reasoning_content: text, tool_calls: [call] }, 'tool_calls'));
    };
    const model = `local/${CORPUS[2]}`;
    const tools = [{ type: 'function', function: { name: 'x', description: text } }];
    const headers = { 'user-agent': CORPUS[0] ?? '', 'x-sluice-tags': CORPUS[2] ?? '', 'x-session-id': CORPUS[2] ?? '' };
    const messages = ['system', 'user'].map((role) => ({ role, content: text }));
    await (await chat(rig.gateway.url, { model, stream: true, messages, tools }, headers)).text();
    await (await chat(rig.gateway.url, { model, messages, user: 'fail' }, headers)).text();
    await visit('#/');
    await page.locator('table.plain').getByText('onerror').first().waitFor();
    await visit('#/exchanges');
    await rows().first().waitFor();
    for (const key of ['j', 'j']) {
      await page.keyboard.press(key);
      for (const tab of ['1', '2', '3', '4', '5', '6']) {
        await page.keyboard.press(tab);
        await page.getByRole('tabpanel').getByText(/./).first().waitFor();
        await openAll();
      }
      await page.keyboard.press('1');
      await page.getByRole('tabpanel').getByText('Response').waitFor();
      await openAll();
      await page.getByText('ran("script")').first().waitFor();
    }
    expect(await page.locator('main :is(script, iframe, img, svg[onload])').count()).toBe(0);
    expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
  });

  test('360 pixels are enough, and the dark theme has contrast', async () => {
    const { page } = rig.watched;
    await (await chat(rig.gateway.url, { model: 'demo/hello' })).text();
    await page.emulateMedia({ colorScheme: 'dark' });
    for (const hash of ['#/', '#/exchanges']) {
      await page.setViewportSize({ width: 360, height: 740 });
      await visit(hash);
      await page.locator('table.plain, [role=grid]').first().waitFor();
      if (hash !== '#/') {
        await rows().first().click();
        await page.getByRole('tabpanel').getByText('Response').waitFor();
      }
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
      await checkAccessibility(page, `dark ${hash}`);
    }
  });

  describe('requests of others', () => {
    test('a session without its CSRF token changes nothing', async () => {
      await visit('#/');
      const statuses = await rig.watched.page.evaluate(async () => {
        const send = async (headers: Record<string, string>): Promise<number> =>
          (await fetch('/admin/v1/session', { method: 'DELETE', headers })).status;
        return [await send({}), await send({ 'x-sluice-csrf': 'guessed' })];
      });
      expect(statuses).toEqual([403, 403]);
    });

    test('a page of another origin can neither read, send, listen nor frame', async () => {
      const page = createServer((_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        response.end('<!doctype html><title>evil</title><iframe id="frame"></iframe>');
      });
      await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
      const evil = await rig.watched.context.newPage();
      await evil.goto(`http://127.0.0.1:${(page.address() as AddressInfo).port}/`);
      const seen = await evil.evaluate(async (url) => {
        const attempt = (init: RequestInit, path: string): Promise<string> =>
          fetch(url + path, init).then(
            async (response) => `${response.type} ${response.status} ${await response.text()}`,
            () => 'failed',
          );
        const listen = new Promise<string>((resolve) => {
          const source = new EventSource(`${url}/admin/v1/exchanges/live`, { withCredentials: true });
          source.onerror = () => resolve('failed');
          source.onopen = () => resolve('opened');
        });
        const frame = document.querySelector('iframe');
        const framed = new Promise<string>((resolve) => {
          if (!frame) return;
          frame.onload = () => resolve(frame.contentDocument === null ? 'blocked or foreign' : 'readable');
          frame.src = `${url}/`;
        });
        const body = JSON.stringify({ token: 'x' });
        return Promise.all([
          attempt({ credentials: 'include' }, '/admin/v1/config'),
          attempt({ credentials: 'include', mode: 'no-cors' }, '/admin/v1/config'),
          attempt({ credentials: 'include', method: 'POST', mode: 'no-cors', body }, '/admin/v1/session'),
          attempt({ credentials: 'include', method: 'DELETE' }, '/admin/v1/session'),
          listen,
          framed,
        ]);
      }, rig.gateway.url);
      expect(seen).toEqual(['failed', 'opaque 0 ', 'opaque 0 ', 'failed', 'failed', 'blocked or foreign']);
      await evil.close();
      await new Promise((resolve) => page.close(resolve));
      // The session is still there.
      await visit('#/');
      await rig.watched.page.getByRole('heading', { name: 'Status' }).waitFor();
    });
  });

  test('nothing is loaded from another origin, and a session ends by a logout', async () => {
    for (const hash of ['#/exchanges', '#/playground', '#/']) {
      await visit(hash);
      await rig.watched.page.locator('main h1').first().waitFor();
    }
    const origins = await rig.watched.page.evaluate(() => [
      ...new Set(performance.getEntriesByType('resource').map(({ name }) => new URL(name).origin)),
    ]);
    expect(origins).toEqual([rig.gateway.url]);
    await rig.watched.page.getByRole('button', { name: 'log out' }).click();
    await rig.watched.page.getByText('You are logged out.').waitFor();
  });

  test('with an admin key, it opens the console, and a wrong one does not', async () => {
    const other = await startGateway({ auth: { keys: ['client-key-of-the-console-tests'] } }, { SLUICE_ADMIN_KEY: KEY });
    try {
      const { page, context } = await openConsole(rig.browser, other, `${other.url}/`);
      await page.getByLabel('Admin key, or link').fill('wrong');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByText('is not the admin key').waitFor();
      await page.getByLabel('Admin key, or link').fill(KEY);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('heading', { name: 'Status' }).waitFor();
      await page.goto(`${other.url}/#/exchanges`);
      await page.getByText('No exchanges yet').waitFor();
      await checkAccessibility(page, 'empty list');
      await context.close();
    } finally {
      await other.close();
    }
  });
});
