/** Makes the screenshots of docs/console.md from the demo model: `npm run screenshots`. */
import { fileURLToPath } from 'node:url';
import { startBrowser, startDemo } from './demo.js';

const IMAGES = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const TOOL = { name: 'get_weather', description: 'The weather of a city', input_schema: { type: 'object' } };

const KEY_FIELDS = [
  ['Name', 'alice'],
  ['Models', 'claude-*, demo/*'],
  ['Budget', '20usd/month'],
  ['Requests per minute', '60'],
  ['Expires', '90d'],
  ['Tags', 'team=a'],
];

const { url, link, stop } = await startDemo();
const browser = await startBrowser();
try {
  const context = await browser.newContext({
    viewport: { width: 1120, height: 600 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole('region', { name: 'A request by curl' }).waitFor();
  const calls = {
    'demo/hello': 'demo: call get_weather',
    'demo/blank-ids': 'demo: call get_weather',
    'demo/cut': 'What is SSE?',
  };
  const models = ['demo/hello', 'demo/error-mid-stream', 'demo/blank-ids', 'demo/hello', 'demo/cut', 'demo/object-arguments'];
  for (const model of models) await send(model, calls[model] ?? 'Hello');
  await page.locator('table.plain').getByText('demo/object-arguments').waitFor();
  await page.locator('.s-live').waitFor({ state: 'detached' });
  await page.screenshot({ path: `${IMAGES}console-home.png` });
  await page.goto(`${url}/#/exchanges`);
  await page.locator('.scroll [role=row]').filter({ hasText: 'demo/blank-ids' }).click();
  await page.getByRole('tabpanel').getByText('get_weather').first().waitFor();
  await page.screenshot({ path: `${IMAGES}console-exchange.png` });
  await page.setViewportSize({ width: 1500, height: 860 });
  await page.getByRole('tab', { name: 'Stream' }).click();
  await page.getByRole('slider', { name: 'Playhead' }).focus();
  for (let step = 0; step < 4; step++) await page.keyboard.press('ArrowLeft');
  await page.getByText('frame 7 of').waitFor();
  await page.screenshot({ path: `${IMAGES}console-stream.png` });
  await page.setViewportSize({ width: 1120, height: 600 });
  await page.goto(`${url}/#/playground`);
  await page.getByLabel('protocol').selectOption('anthropic-messages');
  await page.getByLabel('user').fill('demo: call get_weather');
  await page.getByText('tools and parameters').click();
  await page.getByLabel('tools (JSON)').fill(JSON.stringify([{ name: TOOL.name, parameters: TOOL.input_schema }]));
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('stop reason: tool_use').waitFor();
  await page.getByText(/ tokens$/).waitFor();
  await page.screenshot({ path: `${IMAGES}console-playground.png` });
  await page.goto(`${url}/#/exchanges`);
  await page.locator('.scroll [role=row]').filter({ hasText: 'demo/blank-ids' }).click();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.keyboard.press('2');
  await page.getByText('Tokens and cost').waitFor();
  await page.screenshot({ path: `${IMAGES}console-timing-dark.png` });
  await page.goto(`${url}/#/usage?by=model&since=24h`);
  await page.locator('.plot canvas').waitFor();
  await page.screenshot({ path: `${IMAGES}console-usage-dark.png` });
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(`${url}/#/config?origin=all`);
  await page.getByRole('rowheader', { name: 'listen.port' }).waitFor();
  await page.screenshot({ path: `${IMAGES}console-config.png` });
  // Last: with a key, requests without one are refused.
  await page.goto(`${url}/#/keys?action=create`);
  for (const [label, text] of KEY_FIELDS) await page.getByLabel(label, { exact: true }).fill(text);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('rowheader', { name: 'alice' }).waitFor();
  await page.screenshot({ path: `${IMAGES}console-keys.png`, clip: { x: 0, y: 0, width: 1120, height: 240 } });
} finally {
  await browser.close();
  stop();
}

async function send(model, content) {
  const body = {
    model,
    max_tokens: 500,
    stream: true,
    system: 'Be brief.',
    messages: [{ role: 'user', content }],
    tools: [TOOL],
  };
  const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' };
  await (await fetch(`${url}/v1/messages`, { method: 'POST', headers, body: JSON.stringify(body) })).text();
}
