/** A browser, a gateway as users start it, and an upstream that does what a test wants. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Locator, type Page, type Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, type TestError } from 'vitest';
import { findChromium } from '../../../test/needs/needs.ts';

/** Milliseconds for the start of everything, and for one test: a machine that does much else needs them. */
export const PATIENCE_MS = 120_000;

/** Milliseconds for one step of a test. */
const STEP_MS = 45_000;

/** The tests may run as root and in containers, which have no sandbox, no GPU and little shared memory; no request leaves the machine. */
const FLAGS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** Starts the browser. */
const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: findChromium() ?? '', args: FLAGS, timeout: PATIENCE_MS });

/** A gateway that runs as a process. */
export interface Gateway {
  readonly url: string;
  /** The link with a token, which opens the console once. */
  readonly link: string;
  close(): Promise<void>;
}

const BINARY = fileURLToPath(new URL('../../gateway/bin/sluice.js', import.meta.url));

/** Starts a gateway. Without a configuration, it has the demo model alone; without `data` in it, everything is in memory. */
export async function startGateway(config: object = {}, env: Record<string, string> = {}): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'));
  writeFileSync(join(folder, 'sluice.json'), JSON.stringify({ log: { level: 'error' }, ...config }));
  const args = ['serve', '--json', '--port', '0', ...('data' in config ? [] : ['--data', 'memory']), '--config', 'sluice.json'];
  const gateway = spawn(process.execPath, [BINARY, ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...env },
  });
  const line = await readLine(gateway);
  const { url, console: link } = JSON.parse(line) as { url: string; console: string };
  return {
    url,
    link,
    close: async () => {
      const ended = new Promise((resolve) => gateway.once('exit', resolve));
      gateway.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function readLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    let errors = '';
    child.stderr?.on('data', (chunk) => {
      errors += chunk;
    });
    child.stdout?.on('data', (chunk) => {
      text += chunk;
      if (text.includes('\n')) resolve(text.split('\n', 1)[0] ?? '');
    });
    child.once('exit', () => reject(new Error(`the gateway has ended: ${errors}`)));
  });
}

/** Opens a page with a session, and watches it: no test may break the policy or throw. */
export async function openConsole(browser: Browser, gateway: Gateway, link: string = gateway.link): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
  context.setDefaultTimeout(STEP_MS);
  await context.addInitScript(() => {
    const harm: string[] = [];
    Object.assign(globalThis, { harm, ran: (what: string) => harm.push(`ran ${what}`) });
    document.addEventListener('securitypolicyviolation', (event) => {
      harm.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const watched = await openPage(context);
  await watched.page.goto(link);
  return watched;
}

/** An empty page with the same session instead of the given one: nothing that a test left behind, or broke, is there for the next. */
async function renew({ context, page }: Watched): Promise<Watched> {
  await page.close();
  return openPage(context);
}

/** A page and everything that went wrong in it. */
export interface Watched {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly errors: string[];
  /** What it has requested, and how that ended. */
  readonly requests: string[];
  /** Violations of the policy, and scripts of the corpus that ran. */
  listHarm(): Promise<string[]>;
}

async function openPage(context: BrowserContext): Promise<Watched> {
  const page = await context.newPage();
  const errors: string[] = [];
  const requests: string[] = [];
  const note = (request: Request, what: string | number): void =>
    void requests.push(`${request.method()} ${request.url()}: ${what}`);
  page.on('request', (request) => note(request, 'sent'));
  page.on('response', (response) => note(response.request(), response.status()));
  page.on('requestfailed', (request) => note(request, request.failure()?.errorText ?? 'failed'));
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const listHarm = (): Promise<string[]> => page.evaluate(() => (globalThis as unknown as { harm: string[] }).harm);
  return { context, page, errors, requests, listHarm };
}

/** Waits until the row of an exchange has its status. Not by text alone: 200 may also be its milliseconds. */
export const hasSettled = (row: Locator): Promise<void> => row.locator('.status', { hasText: /^200$/ }).waitFor();

/** Adds what the page showed and requested to the error of a test, which may not be repeatable. */
async function addPage({ page, requests }: Watched, error: TestError | undefined): Promise<void> {
  const shown = await page.locator('main, body').last().ariaSnapshot().catch(String);
  const more = `\nThe last requests:\n${requests.slice(-12).join('\n')}\nThe page was ${page.url()}:\n${shown.slice(0, 3000)}`;
  if (error) Object.assign(error, { message: error.message + more, stack: error.stack + more });
}

/** Fails when the page broke the policy, ran what it should show, or threw. */
const expectNoHarm = async ({ listHarm, errors }: Watched): Promise<void> => expect([await listHarm(), errors]).toEqual([[], []]);

const AXE = axe.source;

interface AxeResult {
  violations: { id: string; impact: string; nodes: { html: string }[] }[];
}

/** Fails for serious violations of WCAG. */
export async function checkAccessibility(page: Page, place: string, part = 'html'): Promise<void> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  const { violations } = (await page.evaluate(
    `axe.run('${part}', { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] })`,
  )) as AxeResult;
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(
    serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`),
    place,
  ).toEqual([]);
}

/** An upstream whose responses a test writes. */
interface Upstream {
  readonly url: string;
  /** How requests are answered from now on. */
  respond: (request: IncomingMessage, response: ServerResponse, body: string) => void;
  close(): Promise<void>;
}

/** Starts an upstream on this machine. */
async function startUpstream(): Promise<Upstream> {
  const upstream: { respond: Upstream['respond'] } = { respond: (_, response) => response.end() };
  const server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => upstream.respond(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(upstream, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** Sends a chat request to a gateway. */
export const chat = (url: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
  });

/** A chunk of a chat stream. */
export const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

/** What the tests of a file share. `watched` is another page for every test. */
export interface Rig {
  browser: Browser;
  upstream: Upstream;
  gateway: Gateway;
  watched: Watched;
  /** The address that the link of the terminal led to. */
  opened: string;
  /** Shows a place of the console. */
  visit(hash: string): Promise<void>;
}

/**
 * Starts a browser, an upstream and a gateway for the tests of a `describe`, opens the console, and gives every test a page of its own that
 * must do no harm. `configure` gets the address of the upstream.
 */
export function useConsole(configure: (upstream: string) => object, env?: Record<string, string>): Rig {
  // The hooks fill it before the first test.
  const rig = { visit: async (hash) => void (await rig.watched.page.goto(`${rig.gateway.url}/${hash}`)) } as Rig;
  beforeAll(async () => {
    rig.upstream = await startUpstream();
    [rig.browser, rig.gateway] = await Promise.all([launch(), startGateway(configure(rig.upstream.url), env)]);
    rig.watched = await openConsole(rig.browser, rig.gateway);
    await rig.watched.page.getByRole('heading', { name: 'Status' }).waitFor();
    rig.opened = rig.watched.page.url();
  }, PATIENCE_MS);
  beforeEach(async ({ task, onTestFailed }) => {
    rig.watched = await renew(rig.watched);
    onTestFailed(() => addPage(rig.watched, task.result?.errors?.[0]));
  });
  afterEach(() => expectNoHarm(rig.watched));
  // What could not be started is missing.
  afterAll(async () => {
    await rig.browser?.close();
    await rig.gateway?.close();
    await rig.upstream?.close();
  });
  return rig;
}

/** A provider of Chat Completions at this address. */
export const localAt = (url: string): object => ({ local: { protocol: 'openai-chat', base_url: `${url}/v1` } });
