/** Serves the console: a page and its files, from memory. They contain no data and are public; the data is behind `/admin`. */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** Whether a request target may be one of the console. Other paths cost two comparisons. */
export const isConsolePath = (url: string): boolean =>
  url === '/' || url.startsWith('/?') || url.startsWith('/console/') || url === '/console';

/** A request to the console. */
interface ConsoleRequest {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The console of one gateway. */
export class Console {
  readonly #folder: string;
  #files: ReadonlyMap<string, ConsoleFile> | undefined;

  /** Without a folder, that of this installation. A folder that does not exist is a console without files. */
  constructor(folder: string = FOLDER) {
    this.#folder = folder;
  }

  /** Responds to a request, or returns false: then it is not for the console, but for programs. */
  handle(incoming: ConsoleRequest): boolean {
    const { request, response, id } = incoming;
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (path === '/' && !acceptsHtml(request.headers.accept)) return false;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      if (path === '/') return false;
      sendEmpty(incoming, 405, { allow: 'GET, HEAD' });
      return true;
    }
    if (path === '/console' || path === '/console/') {
      sendEmpty(incoming, 302, { location: '/' });
      return true;
    }
    this.#files ??= readFiles(this.#folder);
    const file = this.#files.get(path);
    if (!file && path === '/') return false;
    response.setHeader('x-sluice-request-id', id);
    if (file) sendFile(request, response, file);
    else sendEmpty(incoming, 404, {});
    return true;
  }
}

/** `src` and `dist` have the same depth. */
const FOLDER = fileURLToPath(new URL('../../dist/console/', import.meta.url));

/** Where the page of the inspector has its data; `scripts/build/inspect-page.js` has the same text. */
const DATA_PLACE = '%SLUICE_DATA%';

/** The page of `sluice inspect --html` with its data. Undefined when the console was not built. */
export function renderInspectPage(data: object): string | undefined {
  try {
    const [before, after] = readFileSync(`${FOLDER}page/inspect.html`, 'utf8').split(DATA_PLACE, 2);
    // Without this character, no text can end the element that holds the data.
    return `${before}${JSON.stringify(data).replaceAll('<', '\\u003c')}${after}`;
  } catch {
    return undefined;
  }
}

/** A file of the console, with everything that a response needs. */
interface ConsoleFile {
  readonly type: string;
  readonly cacheControl: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['html', 'text/html; charset=utf-8'],
  ['js', 'text/javascript; charset=utf-8'],
  ['css', 'text/css; charset=utf-8'],
  ['svg', 'image/svg+xml'],
]);

const PAGE = 'index.html';

/** Reads all files. Requests are looked up in this list by their whole path, so no path can reach another file. */
function readFiles(folder: string): ReadonlyMap<string, ConsoleFile> {
  const files = new Map<string, ConsoleFile>();
  for (const name of listNames(folder)) {
    const type = TYPES.get(name.slice(name.lastIndexOf('.') + 1));
    if (type === undefined) continue;
    const bytes = readFileSync(`${folder}/${name}`);
    const isPage = name === PAGE;
    files.set(isPage ? '/' : `/console/${name}`, {
      type,
      // The names of all other files contain a hash of their content.
      cacheControl: isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
      etag: createHash('sha256').update(bytes).digest('base64url').slice(0, 27),
      bytes,
      gzipped: gzipSync(bytes, { level: 9 }),
    });
  }
  return files;
}

/** The console may be missing in a checkout that was not built; the gateway works without it. */
function listNames(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : []));
  } catch {
    return [];
  }
}

function sendFile(request: IncomingMessage, response: ServerResponse, file: ConsoleFile): void {
  const { type, cacheControl, bytes, gzipped } = file;
  const isGzipped = acceptsGzip(request.headers['accept-encoding']);
  const etag = `"${file.etag}${isGzipped ? '-gz' : ''}"`;
  const headers = { ...SECURITY_HEADERS, 'cache-control': cacheControl, etag, vary: 'accept, accept-encoding' };
  if (matchesEtag(request.headers['if-none-match'], etag)) {
    response.writeHead(304, headers).end();
    return;
  }
  const body = isGzipped ? gzipped : bytes;
  response.writeHead(200, {
    ...headers,
    'content-type': type,
    'content-length': String(body.length),
    ...(isGzipped && { 'content-encoding': 'gzip' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function sendEmpty({ response, id }: ConsoleRequest, status: number, headers: Readonly<Record<string, string>>): void {
  const common = { ...SECURITY_HEADERS, 'cache-control': 'no-store', 'content-length': '0', 'x-sluice-request-id': id };
  response.writeHead(status, { ...common, ...headers }).end();
}

/** Scripts and styles are files of this origin only, and nothing is parsed as HTML: text of a model cannot become code. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const SECURITY_HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-frame-options': 'DENY',
} as const;

/** Whether a browser loads a page. Programs send another type or any type; Claude Code checks whether the gateway responds. */
const acceptsHtml = (accept: string | undefined): boolean =>
  /(?:^|,)\s*text\/html\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))/i.test((accept ?? '').slice(0, MAX_HEADER));

const acceptsGzip = (accept: string | undefined): boolean =>
  /(?:^|,)\s*gzip\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))/i.test((accept ?? '').slice(0, MAX_HEADER));

const MAX_HEADER = 500;

const matchesEtag = (header: string | undefined, etag: string): boolean =>
  header?.split(',').some((part) => part.trim().replace(/^W\//, '') === etag) ?? false;
