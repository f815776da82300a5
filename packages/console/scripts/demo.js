/** What the scripts of the console share: a gateway with the demo model, and a browser. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const BINARY = fileURLToPath(new URL('../../gateway/bin/sluice.js', import.meta.url));

/** Starts a gateway without keys and settings of the user. Resolves with its addresses and `stop`. */
export async function startDemo() {
  const args = [BINARY, 'serve', '--json', '--port', '0', '--data', 'memory'];
  const gateway = spawn(process.execPath, args, {
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const line = await new Promise((resolve, reject) => {
    gateway.stdout.once('data', (data) => resolve(String(data).split('\n', 1)[0]));
    gateway.once('exit', () => reject(new Error('the gateway has ended')));
  });
  const { url, console: link } = JSON.parse(line);
  return { url, link, stop: () => gateway.kill() };
}

/** Starts Chromium; `CHROMIUM` names another one than that of the system. */
export const startBrowser = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
