/**
 * Measures the console in Chromium: `npm run bench:console`. First paint, a live tail of 200 rows a second, a scroll over 100,000 rows, and a stream of
 * 50,000 frames in the inspector.
 * The rows are scripted: the responses of the admin API are answered in the browser's network layer. Median of 5 runs.
 */
import { startBrowser, startDemo } from './demo.js';

const RUNS = Number(process.argv[2] ?? 5);
const ROWS = 100_000;
const LIVE_SECONDS = 5;
const FRAMES = 50_000;

const { url, link, stop } = await startDemo();
const browser = await startBrowser();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(exposeLiveSource);
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole('heading', { name: 'Status' }).waitFor();
  const figures = { paint: [], live: [], scroll: [], frames: [], inspect: [], inspectCpu: [], move: [] };
  for (let run = 0; run < RUNS; run++) {
    figures.paint.push(await measurePaint(page));
    await page.route('**/admin/v1/exchanges?*', answerPage);
    figures.live.push(await measureLive(page));
    const { longest, frames } = await measureScroll(page);
    figures.scroll.push(longest);
    figures.frames.push(frames);
    await page.unroute('**/admin/v1/exchanges?*');
    const { opened, cpu, moved } = await measureInspector(page);
    figures.inspect.push(opened);
    figures.inspectCpu.push(cpu);
    figures.move.push(moved);
  }
  console.log(`first paint: ${median(figures.paint)} ms`);
  console.log(`live tail, 200 rows/s for ${LIVE_SECONDS} s: longest task ${median(figures.live)} ms of CPU (limit 50)`);
  console.log(`scroll over ${ROWS} rows: longest task ${median(figures.scroll)} ms of CPU, ${median(figures.frames)} frames/s`);
  console.log(
    `inspector, ${FRAMES} frames: shown after ${median(figures.inspect)} ms (limit 2000; ${median(figures.inspectCpu)} ms of CPU), ` +
      `${median(figures.move)} ms of CPU for a move of the playhead`,
  );
} finally {
  await browser.close();
  stop();
}

function median(values) {
  return Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]);
}

/** The CPU time of the longest task and of all tasks of the page in milliseconds, while `run` runs: other programs on the machine do not count. */
async function traceLongest(page, run) {
  await browser.startTracing(page, { categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline'] });
  const result = await run();
  const { traceEvents } = JSON.parse(String(await browser.stopTracing()));
  const isMain = ({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain';
  const mains = new Set(traceEvents.filter(isMain).map(({ pid, tid }) => `${pid}.${tid}`));
  const tasks = traceEvents.filter(({ name, pid, tid, tdur }) => name === 'RunTask' && tdur > 0 && mains.has(`${pid}.${tid}`));
  const times = tasks.map(({ tdur }) => tdur / 1000);
  return { longest: Math.max(0, ...times), total: times.reduce((sum, time) => sum + time, 0), result };
}

/** The measured page has the source of the live stream as a global. */
function exposeLiveSource() {
  const Original = globalThis.EventSource;
  globalThis.EventSource = class extends Original {
    constructor(...args) {
      super(...args);
      globalThis.liveSource = this;
    }
  };
}

async function measurePaint(page) {
  await page.goto(`${url}/?${Math.random()}`);
  await page.getByRole('heading', { name: 'Status' }).waitFor();
  return page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0);
}

/** Scripted events beside the live stream: 4 rows are opened and 4 settled every 20 ms. */
async function measureLive(page) {
  await page.goto(`${url}/?live#/exchanges`);
  await page.locator('.scroll [role=row][id]').first().waitFor();
  const emitRows = () =>
    page.evaluate(
      ([seconds, sample]) =>
        new Promise((resolve) => {
          const source = globalThis.liveSource;
          let number = 0;
          const emit = (type, row) => source.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(row) }));
          const timer = setInterval(() => {
            for (let i = 0; i < 4; i++) {
              const id = `ffffffff-0000-7000-8000-${String(++number).padStart(12, '0')}`;
              emit('opened', { ...sample, id, outcome: 'live', state: 'open' });
              emit('settled', { ...sample, id });
            }
          }, 20);
          setTimeout(() => {
            clearInterval(timer);
            resolve();
          }, seconds * 1000);
        }),
      [LIVE_SECONDS, buildRow(ROWS)],
    );
  return (await traceLongest(page, emitRows)).longest;
}

/** Scrolls to the end of all rows, a screen a frame. */
async function measureScroll(page) {
  const scroll = () =>
    page.evaluate(
      (height) =>
        new Promise((resolve) => {
          const list = document.querySelector('.scroll');
          const started = performance.now();
          let count = 0;
          const step = () => {
            count++;
            list.scrollTop += 4 * list.clientHeight;
            const isOver = list.scrollTop + list.clientHeight >= height - 28 || performance.now() - started > 20_000;
            if (isOver) resolve((count / (performance.now() - started)) * 1000);
            else requestAnimationFrame(step);
          };
          step();
        }),
      ROWS * 28,
    );
  const { longest, result } = await traceLongest(page, scroll);
  return { longest, frames: result };
}

/** A file with a long stream: until its lanes are painted, and until the message of another place is. */
async function measureInspector(page) {
  await page.goto(`${url}/?inspect#/inspect`);
  await page.locator('input[type=file]').waitFor();
  await page.evaluate(prepareLongFile, FRAMES);
  const { total, result: opened } = await traceLongest(page, () => page.evaluate(openLongFile));
  const moves = 20;
  const moved = await traceLongest(page, () => page.evaluate(movePlayhead, moves));
  return { opened, cpu: total, moved: moved.total / moves };
}

function prepareLongFile(frames) {
  const chunk = (delta, finish = null) =>
    `data: ${JSON.stringify({ id: 'c', model: 'm', created: 1, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const parts = Array.from({ length: frames - 2 }, (_, index) => chunk({ content: `word ${index} ` }));
  globalThis.longFile = new DataTransfer();
  globalThis.longFile.items.add(new File([...parts, chunk({}, 'stop'), 'data: [DONE]\n\n'], 'long.sse'));
  globalThis.painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
}

/** Resolves with the time until everything is shown. */
async function openLongFile() {
  const input = document.querySelector('input[type=file]');
  const startedAt = performance.now();
  input.files = globalThis.longFile.files;
  input.dispatchEvent(new Event('change', { bubbles: true }));
  while (!document.querySelector('[role=slider]')) await globalThis.painted();
  await globalThis.painted();
  return performance.now() - startedAt;
}

async function movePlayhead(moves) {
  for (let move = 0; move < moves; move++) {
    const key = move % 3 === 0 ? 'ArrowRight' : 'ArrowLeft';
    dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    await globalThis.painted();
  }
}

function buildRow(number) {
  const id = `01a1e7a6-0000-7000-8000-${String(number).padStart(12, '0')}`;
  const facts = { request_id: id, created_at: '2026-11-17T08:00:00.000Z', outcome: 'ok', state: 'settled', http_status: 200 };
  const names = { client_protocol: 'anthropic-messages', upstream_protocol: 'openai-chat', provider: 'groq', endpoint: 'chat' };
  const models = { model_requested: 'fast', model: 'llama-3.3-70b', model_answered: null, key_id: 'alice', key_name: 'alice' };
  const counts = {
    input_tokens: 1200,
    output_tokens: 310,
    cache_read_tokens: 0,
    cost_micros: 1234,
    first_token_ms: 200,
    total_ms: 2310,
  };
  const rest = {
    ending: 'answered',
    error_code: null,
    client_name: null,
    is_stream: true,
    attempts: 1,
    tags: [],
    session_id: null,
  };
  return { id, ...facts, ...names, ...models, ...counts, ...rest, notes_count: 0, notes: [], rules: [] };
}

/** A page of the 100,000 rows. */
async function answerPage(route) {
  const query = new URL(route.request().url()).searchParams;
  const below = query.has('cursor') ? Number(query.get('cursor').slice(-12)) : ROWS + 1;
  const count = Math.min(Number(query.get('limit')), below - 1);
  const exchanges = Array.from({ length: count }, (_, index) => buildRow(below - 1 - index));
  const next = below - 1 > count ? exchanges.at(-1).id : null;
  await route.fulfill({ json: { exchanges, next } });
}
