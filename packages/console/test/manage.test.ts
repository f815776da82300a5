import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';
import { chat, checkAccessibility, openConsole, PATIENCE_MS, startGateway, useConsole } from './browser.ts';

const ADMIN_KEY = 'the-admin-key-of-the-manage-tests';
const FILE_KEY = 'the-client-key-of-the-manage-tests';

/** Planted everywhere; no page may show one. */
const SECRETS = {
  SLUICE_ADMIN_KEY: ADMIN_KEY,
  CLIENT: FILE_KEY,
  HEADER_FROM_ENV: 'canary-of-the-environment-0123456789',
  file: 'canary-of-the-file-0123456789',
  header: 'canary-of-a-header-0123456789',
  proxy: 'canary-of-a-proxy-0123456789',
};

const EVIL = '<img/src=x/onerror=ran(1)>';

const BINARY = fileURLToPath(new URL('../../gateway/bin/sluice.js', import.meta.url));

/** A configuration with all kinds of secrets. */
function createConfig(url: string): object {
  const local = {
    protocol: 'openai-chat',
    base_url: `${url}/v1`,
    api_key: SECRETS.file,
    headers: { 'x-literal': SECRETS.header, 'x-referred': `Token \${HEADER_FROM_ENV}` },
  };
  const proxied = {
    protocol: 'openai-chat',
    base_url: 'http://127.0.0.1:9/v1',
    proxy: `http://u:${SECRETS.proxy}@127.0.0.1:9`,
  };
  return {
    providers: { local, proxied },
    models: { fast: 'local/m', [EVIL]: 'local/m' },
    prices: { 'local/*': { input: '3', output: '15' } },
    auth: { keys: [{ name: 'of-the-file', key: 'env:CLIENT' }] },
    budgets: [{ tag: 'team=a', limit: '5usd/day' }],
  };
}

// One gateway, which has the exchanges and keys of the tests before.
describe('keys, usage and configuration', { ...needs('chromium'), timeout: PATIENCE_MS, shuffle: false }, () => {
  const { SLUICE_ADMIN_KEY, CLIENT, HEADER_FROM_ENV } = SECRETS;
  const rig = useConsole(createConfig, { SLUICE_ADMIN_KEY, CLIENT, HEADER_FROM_ENV });
  const { visit } = rig;
  let page: Page;

  beforeAll(async () => {
    await visit('#/keys');
    await rig.watched.page.getByText('No keys have been created yet').waitFor();
    rig.upstream.respond = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const message = { role: 'assistant', content: 'hi' };
      const usage = { prompt_tokens: 1234, completion_tokens: 56, total_tokens: 1290 };
      response.end(
        JSON.stringify({
          id: 'c',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage,
        }),
      );
    };
  });

  beforeEach(() => {
    page = rig.watched.page;
  });

  const send = async (key: string, model = 'fast', tags = ''): Promise<number> =>
    (
      await chat(
        rig.gateway.url,
        { model, max_tokens: 100 },
        { authorization: `Bearer ${key}`, ...(tags && { 'x-sluice-tags': tags }) },
      )
    ).status;

  /** The secret that the page shows now. */
  const readSecret = async (): Promise<string> =>
    (await page.getByRole('region', { name: 'Secret', exact: true }).textContent())?.trim() ?? '';

  /** The row of a key. */
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) });

  /** Changes keys as `curl` does. */
  const change = async (method: string, path: string, body?: object): Promise<{ secret: string }> => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, ...(body && { 'content-type': 'application/json' }) };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`${rig.gateway.url}/admin/v1/${path}`, init);
    expect(response.ok, path).toBe(true);
    return response.json();
  };

  /** Creates a key, and shows the page of keys. Returns its secret. */
  const showKey = async (name: string, fields: object = {}): Promise<string> => {
    const { secret } = await change('POST', 'keys', { name, ...fields });
    await visit('#/keys');
    await row(name).waitFor();
    return secret;
  };

  test('the page warns that keys are lost with a gateway that keeps its data in memory, and does not with a data folder', async () => {
    const warning = /Keys created here are lost when the gateway stops.*Restart it with a data folder/;
    await visit('#/keys');
    const shown = page.getByRole('alert').getByText(warning);
    await shown.waitFor();
    expect(await shown.getAttribute('class')).toBe('failure');
    const lasting = await startGateway({ data: './data' }, { SLUICE_ADMIN_KEY });
    try {
      const watched = await openConsole(rig.browser, lasting);
      await watched.page.goto(`${lasting.url}/#/keys`);
      await watched.page.getByText('No keys have been created yet').waitFor();
      expect(await watched.page.getByRole('alert').count()).toBe(0);
      await watched.context.close();
    } finally {
      await lasting.close();
    }
  });

  test('a key is created by keyboard, its secret is shown once, and a request beyond its models is refused', async () => {
    await visit('#/keys');
    await page.getByRole('heading', { name: 'Keys' }).first().waitFor();
    await page.keyboard.press('n');
    await page.getByRole('form', { name: 'Create a key' }).waitFor();
    await page.keyboard.type('alice');
    await page.getByLabel('Models', { exact: true }).fill('fast');
    await page.getByLabel('Budget', { exact: true }).fill('1usd/dya');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('budget').waitFor();
    await checkAccessibility(page, 'a mistake in the form of a key');
    await page.getByLabel('Budget', { exact: true }).fill('1usd/day');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Secret', exact: true }).waitFor();
    const secret = await readSecret();
    expect(secret).toMatch(/^sluice_\w{16}_\w{20,}$/);
    await checkAccessibility(page, 'the secret of a key');
    expect([await send(secret), await send(secret, 'demo/hello')]).toEqual([200, 403]);

    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('heading', { name: 'Usage and cost' }).waitFor();
    await page.goBack();
    await row('alice').waitFor();
    expect(await page.content()).not.toContain(secret);
    await row('alice')
      .getByText(/\$\S+ of \$1.00 left, day/)
      .waitFor();
    await checkAccessibility(page, 'keys');
  });

  test('an edit changes what the key allows; what is emptied is removed', async () => {
    const secret = await showKey('bob', { models: ['fast'], budget: '1usd/day' });
    await row('bob').getByText('left, day').waitFor();
    await row('bob').getByRole('button', { name: 'edit' }).click();
    await page.getByLabel('Models', { exact: true }).fill('fast, demo/*');
    await page.getByLabel('Requests per minute').fill('100');
    await page.getByLabel('Budget', { exact: true }).fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await row('bob').getByText('100 requests/min').waitFor();
    await row('bob').getByText('fast, demo/*').waitFor();
    await row('bob').getByText('left, day').waitFor({ state: 'detached' });
    expect(await send(secret, 'demo/hello')).toBe(200);
  });

  test('a rotation shows another secret; the old one works for the overlap, or not at all', async () => {
    const first = await showKey('carol');
    const rotate = async (overlap: string): Promise<string> => {
      await row('carol').getByRole('button', { name: 'rotate' }).click();
      await page.getByLabel('The current secret stays valid for').fill(overlap);
      await page.getByRole('button', { name: 'Rotate', exact: true }).click();
      await page.getByRole('region', { name: 'Secret', exact: true }).waitFor();
      const next = await readSecret();
      await page.getByRole('button', { name: 'I have copied it' }).click();
      return next;
    };
    const second = await rotate('24h');
    await row('carol').getByText('old secret until').waitFor();
    expect([await send(first), await send(second)]).toEqual([200, 200]);
    const third = await rotate('0');
    expect([await send(second), await send(third)]).toEqual([401, 200]);
  });

  test('a key is revoked when its name was typed, and then refused', async () => {
    const secret = await showKey('dave');
    await row('dave').getByRole('button', { name: 'revoke' }).click();
    const button = page.getByRole('button', { name: 'Revoke the key' });
    await page.getByLabel('Type the name of the key').fill('dav');
    expect(await button.isDisabled()).toBe(true);
    expect(await send(secret)).toBe(200);
    await page.getByLabel('Type the name of the key').fill('dave');
    await checkAccessibility(page, 'revoke');
    await button.click();
    await row('dave').waitFor({ state: 'detached' });
    expect(await send(secret)).toBe(401);
    await visit('#/keys?state=revoked');
    await row('dave').getByText('revoked').waitFor();
  });

  describe('usage', () => {
    const listUsage = async (...args: string[]): Promise<Record<string, unknown>[]> => {
      const { stdout } = await promisify(execFile)(process.execPath, [BINARY, 'usage', '--url', rig.gateway.url, ...args], {
        env: { PATH: process.env['PATH'], SLUICE_ADMIN_KEY: ADMIN_KEY },
      });
      return stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    };

    /** Numbers of the table, by the header of the row. */
    const readTable = (): Promise<Record<string, number[]>> =>
      page.evaluate(() =>
        Object.fromEntries(
          [...document.querySelectorAll('table.usage :is(tbody, tfoot) tr')].map((line) => [
            line.querySelector('th')?.textContent ?? '',
            [...line.querySelectorAll<HTMLElement>('td')].map((cell) => Number(cell.dataset['value'])),
          ]),
        ),
      );

    beforeAll(async () => {
      for (const tags of ['team=a', 'team=a,team=b', EVIL, '']) await send(FILE_KEY, 'fast', tags);
      await send(FILE_KEY, `local/${EVIL}`);
      await send(FILE_KEY, 'demo/hello');
    });

    test.each(['model', 'provider', 'key', 'tag', 'day'] as const)('the table by %s is that of `sluice usage`', async (by) => {
      const rows = await listUsage('--by', by, '--json');
      await visit(`#/usage?by=${by}`);
      await page.getByRole('region', { name: `Usage by ${by}` }).waitFor();
      const read = (row: Record<string, unknown>): number[] =>
        [
          'requests',
          'errors',
          'input_tokens',
          'cache_read_tokens',
          'output_tokens',
          'reasoning_tokens',
          'unpriced',
          'cost_micros',
        ].map((name) => Number(row[name]));
      const { total, ...shown } = await readTable();
      expect(Object.values(shown)).toEqual(rows.map(read));
      const counted = (by === 'tag' ? await listUsage('--by', 'provider', '--json') : rows).map(read);
      expect(total).toEqual(total?.map((_, index) => counted.reduce((sum, values) => sum + (values[index] ?? 0), 0)));
      expect(total?.[7]).toBeGreaterThan(0);
      await page.locator('.plot canvas').waitFor();
      await checkAccessibility(page, `usage by ${by}`);
    });

    test('the plot has the same sums, and the exports are those of `sluice usage`', async () => {
      const sums = await listUsage('--by', 'provider', '--since', '24h', '--bucket', 'hour', '--json');
      const expected = new Map<string, number>();
      for (const { group: id, requests } of sums) {
        const group = String(id) || '(none)';
        expected.set(group, (expected.get(group) ?? 0) + Number(requests));
      }
      await visit('#/usage?by=provider&since=24h&measure=requests');
      const caption = page.locator('figcaption', { hasText: 'requests of' });
      await page.locator('figure', { has: caption }).locator('canvas').waitFor();
      const shown = [...((await caption.textContent()) ?? '').matchAll(/(\S+) (\d+)(?=;|$)/g)].map(([, name, count]) => [
        name,
        Number(count),
      ]);
      expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(expected));
      for (const [name, flag] of [
        ['export CSV', '--csv'],
        ['export JSON lines', '--json'],
      ] as const) {
        const download = page.waitForEvent('download');
        await page.getByRole('button', { name }).click();
        const text = await new Response((await (await download).createReadStream()) as never).text();
        const { stdout } = await promisify(execFile)(
          process.execPath,
          [BINARY, 'usage', '--url', rig.gateway.url, '--by', 'provider', '--since', '24h', flag],
          { env: { PATH: process.env['PATH'], SLUICE_ADMIN_KEY: ADMIN_KEY } },
        );
        expect(text).toBe(stdout);
      }
    });

    test('a range that is no time is refused with the message of the gateway', async () => {
      await visit('#/usage?since=yesterday');
      await page.getByRole('alert').getByText('query parameter "since"').waitFor();
    });
  });

  test('models have limits and prices, and any price can be looked up', async () => {
    await visit('#/models');
    await page.getByRole('row').filter({ hasText: 'fast' }).getByText('$3').waitFor();
    await page.getByLabel('Provider and model').fill('anthropic/claude-sonnet-4-5');
    await page.getByRole('button', { name: 'Look up' }).click();
    await page.getByText('output tokens').waitFor();
    await checkAccessibility(page, 'models');
  });

  test('the audit log lists what was changed, and finds it by text', async () => {
    await change('POST', 'keys', { name: 'erin' });
    await change('POST', 'keys/erin/rotate', { overlap: '0' });
    await change('DELETE', 'keys/erin');
    await visit('#/audit');
    const cells = (name: string) => page.getByRole('cell', { name });
    await cells('key.revoke').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('KEY.ROTATE');
    await page.keyboard.press('Enter');
    await expect.poll(() => cells('key.revoke').count()).toBe(0);
    expect(await cells('key.rotate').count()).toBeGreaterThan(0);
    expect(await cells('key.rotate').count()).toBe(await cells('key.').count());
    await checkAccessibility(page, 'audit log');
  });

  describe('configuration', () => {
    const setting = (path: string) =>
      page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: path, exact: true }) });

    test('has the origin of every value', async () => {
      await visit('#/config?origin=all');
      for (const [path, text] of [
        ['models.fast', /local\/m.*file, line 1/],
        ['auth.keys[0].key', /hidden.*environment, line 1 \(env:CLIENT\)/],
        ['providers.local.headers.x-referred', /hidden.*HEADER_FROM_ENV/],
        ['admin.key', /hidden.*environment \(env:SLUICE_ADMIN_KEY\)/],
        ['listen.port', /0.*command line/],
        ['limits.total_timeout', /30m.*default/],
      ] as const)
        expect((await setting(path).textContent())?.replace(path, '')).toMatch(text);
      await checkAccessibility(page, 'configuration');
    });

    test('shows no secret of the file, the environment or headers, on this and any other page', async () => {
      for (const hash of [
        '#/',
        '#/exchanges',
        '#/usage?by=key',
        '#/keys?state=all',
        '#/models',
        '#/config?origin=all',
        '#/audit',
      ]) {
        await visit(hash);
        await page.locator('main :is(table, .cards, [role=grid])').first().waitFor();
        const content = await page.content();
        for (const [name, value] of Object.entries(SECRETS)) expect(content.includes(value), `${name} on ${hash}`).toBe(false);
      }
    });

    test('a pasted file is checked, and its mistakes are shown with their lines', async () => {
      await visit('#/config');
      const check = async (text: string): Promise<void> => {
        await page.getByLabel(/Paste a configuration/).fill(text);
        await page.getByRole('button', { name: 'Check' }).click();
      };
      await check(
        'log:\n  level: loud\nproviders:\n  local: { protocol: openai-chat, base_url: "http://x/v1", api_key: env:HEADER_FROM_ENV }\n',
      );
      await page.getByText('log.level: must be one of').waitFor();
      await page.getByRole('button', { name: 'line 2, column 10' }).click();
      expect(await page.evaluate(() => getSelection()?.toString())).toBe('  level: loud');
      await checkAccessibility(page, 'a checked file');
      await check('log:\n  level: info\n');
      await page.getByText('valid', { exact: true }).waitFor();
      await page.getByText('in force').first().waitFor();
    });
  });

  test('key names, tags and model ids do not become code', async () => {
    await visit('#/keys?action=create');
    await page.getByLabel('Name', { exact: true }).fill(EVIL.slice(0, 64));
    await page.getByLabel('Tags', { exact: true }).fill(EVIL);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    // The gateway accepts it or says why not; neither may run.
    await page.locator('.box.secret, [role=alert]').first().waitFor();
    for (const hash of [
      '#/',
      '#/usage?by=tag',
      '#/usage?by=model',
      '#/models',
      '#/config?origin=all',
      '#/audit',
      '#/keys?state=all',
    ]) {
      await visit(hash);
      await page.locator('main :is(table, .cards, [role=grid])').first().waitFor();
    }
    expect(await page.locator('main :is(script, iframe, img)').count()).toBe(0);
  });

  test.each(['light', 'dark'] as const)('360 pixels are enough, and the %s theme has contrast', async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 360, height: 740 });
    for (const hash of ['#/usage', '#/keys?action=create&state=all', '#/models', '#/config', '#/audit']) {
      await visit(hash);
      await page.locator('main table').first().waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth), hash).toBeLessThanOrEqual(360);
      await checkAccessibility(page, `${colorScheme} ${hash}`);
    }
  });

  test('after five wrong keys, the login shows how long to wait', async () => {
    const stranger = await openConsole(rig.browser, rig.gateway, `${rig.gateway.url}/`);
    // A long key is never locked out when it is right.
    await stranger.page.getByLabel('Admin key, or link').fill('another wrong key');
    // Sent at once: one failure is forgiven every 12 seconds.
    const guess = (_: unknown, i: number): Promise<Response> =>
      fetch(`${rig.gateway.url}/admin/v1/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ key: `wrong ${i}` }),
      });
    const guesses = await Promise.all(Array.from({ length: 5 }, guess));
    expect(guesses.map(({ status }) => status)).toEqual(Array(5).fill(401));
    await stranger.page.getByRole('button', { name: 'Log in' }).click();
    await stranger.page.getByText(/too many wrong keys; retry in \d+ s/).waitFor();
    await stranger.context.close();
  });
});
