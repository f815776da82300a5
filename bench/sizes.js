/** What a page has to load, bundled as a bundler would and gzipped, with its limits. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** The repair of the responses of these protocols: `[folder, name]` of each. */
function repairFetch(...protocols) {
  const repairs = protocols.map(([folder, name]) => `export { ${name}Repair } from '@sluice/core/${folder}/repair';`);
  return ["export { createRepairFetchFor } from '@sluice/core/fetch';", ...repairs].join('\n');
}

// Bundles with requests were raised by 700 for the largest output limit of a request, and for compactions that no other provider can read.
const BUNDLES = [
  {
    name: 'accumulate() and one protocol',
    // The goal is 15,000, and not reached: a third of the code is framing and identity that no smaller reading of the wire gets right.
    // Raised from 21,200. Tool-call identity: 18 quirks of servers in any pair need headers that wait, ids that change and names in pieces. Depth:
    // JSON in texts and events is read only up to 256 levels deep. Content and usage: snapshots of text, Azure's messages, structured content,
    // thinking_blocks, the spellings of cache counts and uncertain usage. Raised from 23,600 for sources: responses with an HTTP error, parsed
    // chunks of SDKs, and errors that say which argument is wrong. Raised from 25,400 for the titles and remedies of the rules of the protocol:
    // without them a diagnostic is an id. Titles alone are half of it. Raised from 27,700: numbers that JSON.parse changes keep their digits,
    // how providers say that a context is too long, errors without a wrapper, reasoning as an object, and calls of whole messages.
    limit: 29_400,
    code: "export { accumulate } from '@sluice/core/io'; export { openaiChat } from '@sluice/core/openai-chat';",
  },
  {
    name: 'accumulate() with all four protocols',
    // Raised from 43,400 for the same, and for the calls of Responses that the client runs (shell, apply_patch, tool_search).
    // Raised from 48,600 for the titles and remedies of 142 rules.
    // Raised from 54,200: the items of Responses are matched by names, place and content, and seven rules name what servers do to them. The
    // rest is what one protocol has, citations of Gemini at the part that they belong to, and starts of Anthropic's blocks that are sent twice.
    // Raised from 60,700: texts that the final response of Responses joins, cuts or moves, and calls that continue after their end.
    limit: 61_700,
    code: "export { accumulate } from '@sluice/core';",
  },
  // The goal of one protocol is 24,000, and not reached: reading streams of Chat has 22,400, writing them 6,900, whole responses and errors 6,500,
  // finding out when to repair 4,200, `fetch` itself 1,600. Texts of notes and errors are 800 of it, titles and remedies of rules 3,700,
  // and 190 that a connection which was cut is called so. With `convert`, the place of broken JSON is 900.
  // All were raised by 3,000 to 3,400, because reading a protocol has grown (by 1,700 for Chat), and because less is rewritten: frames wait only as
  // long as they must, names of events and ends that are missing are added to bytes that stay, and requests are read from any body.
  { name: 'repair fetch, Chat', limit: 45_700, code: repairFetch(['openai-chat', 'openaiChat']) },
  { name: 'repair fetch, Anthropic', limit: 39_900, code: repairFetch(['anthropic-messages', 'anthropicMessages']) },
  // Raised from 40,200: the same, and the identity of items. Raised from 46,100: texts that the final response joins, cuts or moves.
  { name: 'repair fetch, Responses', limit: 47_100, code: repairFetch(['openai-responses', 'openaiResponses']) },
  { name: 'repair fetch, Gemini', limit: 40_600, code: repairFetch(['gemini', 'gemini']) },
  {
    name: 'repair fetch, all four protocols',
    // Raised from 89,900: what each of the four has.
    limit: 99_600,
    code: repairFetch(
      ['openai-chat', 'openaiChat'],
      ['anthropic-messages', 'anthropicMessages'],
      ['openai-responses', 'openaiResponses'],
      ['gemini', 'gemini'],
    ),
  },
  {
    name: 'repair fetch, Chat, with requests',
    // Raised from 90,000: what the repair of Chat has.
    limit: 94_100,
    code: `${repairFetch(['openai-chat', 'openaiChat'])}
      export { prepareRequests } from '@sluice/core/fetch'; export { openaiChatCodec } from '@sluice/core/openai-chat/codec';`,
  },
  {
    name: 'repair fetch, all four protocols, with requests and convert',
    // Raised from 196,400: the same, tokens that are estimated for clients that read them first, notes on what a client does not get, and media types by content.
    limit: 208_000,
    code: "export { createRepairFetch } from '@sluice/core/fetch';",
  },
  {
    name: 'tool calls alone',
    // The goal is 4,000, and not reached: the rules of tool-call identity with the JSON scanner have 4,900, saving and restoring the state the rest.
    // Raised from 5,900: JSON is checked for its depth before it is parsed. Raised from 6,000: every entry of a whole message with a name is a call.
    limit: 6_100,
    code: "export * from '@sluice/core/tool-calls';",
  },
  {
    name: 'SSE alone',
    // The goal is 2,500, and not reached: JSON outside SSE (whole bodies, NDJSON, Gemini's array) has 650 of it.
    limit: 4_010,
    code: "export * from '@sluice/core/sse';",
  },
];

async function measureBundle({ name, limit, code }) {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    write: false,
    // The build, as users get it: the paths of tsconfig.json lead to the sources.
    tsconfigRaw: {},
  });
  return { name, limit, ...measureBytes(outputFiles.map(({ contents }) => contents)) };
}

const measureBytes = (parts) => ({
  bytes: parts.reduce((sum, { length }) => sum + length, 0),
  gzipped: parts.reduce((sum, bytes) => sum + gzipSync(bytes, { level: 9 }).length, 0),
});

/** The console as it is published. The first page is what a browser loads before a user does anything. */
const CONSOLE = new URL('../packages/gateway/dist/console/', import.meta.url);
/** Not the folder of the page that `sluice inspect --html` writes: the gateway does not serve it. */
const SERVED = readdirSync(CONSOLE, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : []));
const firstPage = listImported(['index.html', SERVED.find((name) => /^home-.*\.js$/.test(name))]);
const CONSOLE_PARTS = [
  { name: 'console, first page', limit: 25_000, isPart: (name) => firstPage.has(name) },
  // The goal is 90,000, and not reached: plots have 23,300, the inspector 15,500, everything else 64,600. All but the first page is loaded when it is shown.
  { name: 'console without core', limit: 104_000, isPart: (name) => !/^core\b/.test(name) },
];

/** Files with everything that they name, but for code that is imported later. */
function listImported(names) {
  const found = new Set(names);
  for (const name of found) {
    const text = readFileSync(new URL(name, CONSOLE), 'utf8');
    const named = name.endsWith('.html') ? /\/console\/([\w.-]+)/g : /(?:from|import)\s*["']\.\/([\w.-]+)["']/g;
    for (const [, other] of text.matchAll(named)) found.add(other);
  }
  return found;
}

const measurePart = ({ name, limit, isPart }) => ({
  name,
  limit,
  ...measureBytes(SERVED.filter(isPart).map((file) => readFileSync(new URL(file, CONSOLE)))),
});

/** `{ name, limit, bytes, gzipped }` of everything. */
export const measureSizes = async () => [...(await Promise.all(BUNDLES.map(measureBundle))), ...CONSOLE_PARTS.map(measurePart)];
