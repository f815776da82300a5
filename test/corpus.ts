/**
 * The bodies and requests that tests read: rendered from the shapes in fixtures/corpus, which everybody has. With
 * `SLUICE_CORPUS=recordings` the same tests read the recordings that the shapes were derived from (`npm run test:recordings`).
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClientShape, Shape } from '../fixtures/corpus/render.js';
import { render } from '../fixtures/corpus/render.js';
import { CAPTURED_PROMPT, readCaptures, readRecordings } from '../scripts/corpus/recordings.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = process.env['SLUICE_SHARED'] ?? join(root, '..', 'shared');

/** The folder with recordings and programs of clients; undefined for everybody but the maintainers. */
export const SHARED: string | undefined = existsSync(folder) ? folder : undefined;

/** Which of the two is read. */
export const CORPUS = process.env['SLUICE_CORPUS'] === 'recordings' ? 'recordings' : 'shapes';
if (CORPUS === 'recordings' && !SHARED) throw new Error(`${folder} is missing: set SLUICE_SHARED to the folder with recordings`);

export interface Case {
  id: string;
  protocol: string;
  title: string;
  raw: string;
  expected: Expected;
}

export interface Expected {
  text: string;
  reasoning?: string;
  refusal?: string;
  tool_calls: { id: string; name: string; arguments: string }[];
  finish_reason: string | null;
  usage?: Record<string, unknown> | null;
  error?: Record<string, unknown>;
  extras?: Record<string, unknown>;
}

type ShapeFacts = Pick<
  Shape,
  'protocol' | 'provider' | 'stream' | 'status' | 'features' | 'quirks' | 'framing' | 'json' | 'reads'
>;

/** A recorded response, or what is rendered from its shape. */
export interface Recording extends ShapeFacts {
  file: string;
  /** The file of the request that led to it, where it is known. */
  request?: string;
  model: string;
  /** What its recorder changed. */
  recorder: string[];
}

/** A request that a real client sent, or what is rendered from its shape. */
export interface CapturedRequest {
  /** The client, and the number of the request in its session. */
  name: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: unknown;
}

interface Corpus {
  recordings: Recording[];
  /** Bodies and requests by their file. */
  read(file: string): Buffer;
  requests(): CapturedRequest[];
}

/** The reported streams in `fixtures/cases.jsonl` and those of our own in `fixtures/cases-own.jsonl`. */
export const readCases = (): Case[] => ['cases.jsonl', 'cases-own.jsonl'].flatMap((file) => readLines<Case>(file));

const readLines = <T>(file: string): T[] =>
  readFileSync(join(root, 'fixtures', file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T);

let corpus: Corpus | undefined;
const openCorpus = (): Corpus => {
  corpus ??= CORPUS === 'recordings' && SHARED ? openRecordings(SHARED) : openShapes();
  return corpus;
};

export const readManifest = (): Recording[] => openCorpus().recordings;
export const readRecording = (file: string): Buffer => openCorpus().read(file);
/** What stands in the requests of clients where the user's prompt was. */
export const PROMPT_PLACE = CORPUS === 'recordings' ? CAPTURED_PROMPT : '<prompt>';
export const readCapturedRequests = (): CapturedRequest[] => openCorpus().requests();

/** The requests that led to the recordings of a protocol. */
export const readRequests = (protocol: string): { name: string; model: string; body: unknown }[] =>
  readManifest().flatMap(({ request, model, ...recording }) =>
    request === undefined || recording.protocol !== protocol
      ? []
      : [{ name: request.replace('.request.json', ''), model, body: JSON.parse(readRecording(request).toString()) as unknown }],
  );

const PROTOCOLS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

export const readShapes = (): Shape[] => PROTOCOLS.flatMap((protocol) => readLines<Shape>(`corpus/${protocol}.jsonl`));
export const readClientShapes = (): ClientShape[] => readLines<ClientShape>('corpus/clients.jsonl');

const fileOf = (name: string, stream: boolean): string => `${name}${stream ? '.sse' : '.json'}`;
const requestOf = (name: string): string => `${name}.request.json`;

function openShapes(): Corpus {
  const shapes = readShapes();
  const byFile = new Map(
    shapes.flatMap((shape) => [
      [fileOf(shape.name, shape.stream), () => render(shape).body] as const,
      [requestOf(shape.name), () => render(shape).request ?? ''] as const,
    ]),
  );
  return {
    recordings: shapes.map(({ name, stream, request, model, recorder = [], ...rest }) => ({
      ...rest,
      file: fileOf(name, stream),
      ...(request !== undefined && { request: requestOf(name) }),
      stream,
      model: model ?? 'unknown',
      recorder,
    })),
    read: readOnce((file) => Buffer.from(byFile.get(file)?.() ?? '')),
    requests: () =>
      readClientShapes().map((shape) => {
        const { request } = render(shape);
        const { name, method, path, headers } = shape;
        return { name, method, path, headers, ...(request !== undefined && { body: JSON.parse(request) as unknown }) };
      }),
  };
}

/** Bodies are rendered once; callers that change them would change them for others. */
function readOnce(read: (file: string) => Buffer): (file: string) => Buffer {
  const known = new Map<string, Buffer>();
  return (file) => {
    const bytes = known.get(file) ?? read(file);
    known.set(file, bytes);
    return Buffer.from(bytes);
  };
}

function openRecordings(shared: string): Corpus {
  const at = join(shared, 'recordings');
  const files = new Map<string, string>();
  const recordings = readRecordings(at).map(({ name, file, request, ...entry }) => {
    files.set(fileOf(name, entry.stream), file);
    if (request !== undefined) files.set(requestOf(name), request);
    return { ...entry, file: fileOf(name, entry.stream), ...(request !== undefined && { request: requestOf(name) }) };
  });
  return {
    recordings,
    read: (file) => readFileSync(join(at, files.get(file) ?? file)),
    requests: () => readCaptures(join(shared, 'clients')),
  };
}
