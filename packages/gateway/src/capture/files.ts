/**
 * A capture as files: a tape of what the client sent and received, a tape of every attempt, and `capture.json` with the
 * rest. The commands that read tapes read these as well.
 */

import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FACTS_FILE, type Facts, readFacts, type Ending as TapeEnding } from '@sluice/lab/tape';
import { type Draft, FILE_MODE, writeExchange } from '../tape/write.ts';
import {
  CAPTURE_VERSION,
  type Capture,
  type CapturedAttempt,
  type CapturedResponse,
  type CaptureSummary,
  type ClientResponse,
  summarize,
} from './capture.ts';
import { readRegex, renameFacts, toCamelCase, toSnakeCase, writeRegex } from './json.ts';

/** The name of the file with everything that a tape does not have. It is written last. */
export const CAPTURE_FILE = 'capture.json';

/** Writes a capture to a new folder. Resolves with its bytes. */
export async function writeCapture(folder: string, capture: Capture): Promise<number> {
  const { request: _request, response, attempts, ...facts } = capture;
  const sizes = await writeExchange(folder, buildClientDraft(capture));
  for (const [index, attempt] of attempts.entries()) {
    const name = nameAttempt(index);
    const own = await writeExchange(join(folder, name), buildAttemptDraft(capture, attempt));
    for (const [file, size] of Object.entries(own)) sizes[`${name}/${file}`] = size;
  }
  const text = stringify({
    ...facts,
    response: response && { status: response.status, isStream: response.isStream, fills: response.fills },
    attempts: attempts.map(({ request, response: _, ...attempt }) => ({ ...attempt, url: request.url })),
    sizes,
  });
  await writeFile(join(folder, CAPTURE_FILE), text, { mode: FILE_MODE });
  return Object.values(sizes).reduce((sum, size) => sum + size, Buffer.byteLength(text));
}

/** Writes only the tape of one side: of the client, or of an attempt by its number from 1. */
export async function writeTape(folder: string, capture: Capture, attempt?: number): Promise<void> {
  const chosen = attempt === undefined ? undefined : capture.attempts[attempt - 1];
  if (attempt !== undefined && !chosen)
    throw new Error(`exchange ${capture.id} has ${capture.attempts.length} attempts, not ${attempt}`);
  await mkdir(join(folder, '..'), { recursive: true });
  await writeExchange(folder, chosen ? buildAttemptDraft(capture, chosen) : buildClientDraft(capture));
}

const nameAttempt = (index: number): string => `upstream-${index + 1}`;

function buildClientDraft(capture: Capture): Draft {
  const { at, protocol, model, isStream, request, response, endpoint } = capture;
  return {
    recorded: at,
    protocol: isForwarded(endpoint) ? null : protocol,
    model,
    stream: isStream,
    end: response ? findTapeEnding(capture) : 'unreachable',
    request,
    response: response && buildResponse(response, capture.isRedacted),
  };
}

/** Endpoints whose bytes are forwarded have no protocol on a tape. */
const isForwarded = (endpoint: Capture['endpoint']): boolean =>
  endpoint === 'PASSTHROUGH' || endpoint === 'AUDIO' || endpoint === 'IMAGES';

function findTapeEnding({ ending, isTruncated }: Capture): TapeEnding {
  if (isTruncated) return 'too_large';
  return ending === 'client_aborted' || ending === 'client_stalled' ? 'client_gone' : 'complete';
}

function buildAttemptDraft(capture: Capture, attempt: CapturedAttempt): Draft {
  const { startMs, protocol, conversion, request, response, end } = attempt;
  return {
    recorded: new Date(Date.parse(capture.at) + startMs).toISOString(),
    protocol: conversion ? protocol : null,
    model: conversion?.model ?? capture.model,
    stream: capture.isStream,
    end: response && capture.isTruncated ? 'too_large' : end,
    request,
    response: response && buildResponse(response, capture.isRedacted),
  };
}

const buildResponse = ({ status, headers, body, reads }: CapturedResponse, isRedacted: boolean): Draft['response'] => ({
  status,
  headers,
  body,
  ...(isRedacted && { redacted: true }),
  reads,
});

/** Reads a capture; undefined when it is cut, missing, or of another version. */
export async function readCapture(folder: string): Promise<Capture | undefined> {
  try {
    const facts = await readCaptureFacts(folder);
    if (!facts) return undefined;
    const { sizes: _sizes, ...own } = facts;
    const { request, response } = await readSide(folder);
    const attempts = await Promise.all(
      facts.attempts.map(async ({ url, ...attempt }, index): Promise<CapturedAttempt> => {
        const side = await readSide(join(folder, nameAttempt(index)));
        return { ...attempt, request: { ...side.request, url }, response: side.response };
      }),
    );
    return { ...own, request, response: response && own.response && { ...response, ...own.response }, attempts };
  } catch {
    // Someone else deletes or edits files here: what cannot be read is not a capture.
    return undefined;
  }
}

/** `capture.json`: a capture without the parts that its tapes have. */
interface CaptureFacts extends Omit<Capture, 'request' | 'response' | 'attempts'> {
  response: Pick<ClientResponse, 'status' | 'isStream' | 'fills'> | null;
  attempts: (Omit<CapturedAttempt, 'request' | 'response'> & { url: string })[];
  /** Bytes of every other file, by its path. */
  sizes: Record<string, number>;
}

/** Reads what a list shows of a capture; undefined as for `readCapture`. */
export async function readSummary(folder: string): Promise<CaptureSummary | undefined> {
  const facts = await readCaptureFacts(folder).catch(() => undefined);
  return facts && summarize(facts, 'folder');
}

/** Reads `capture.json`; undefined for another version, and when another file is cut. */
async function readCaptureFacts(folder: string): Promise<CaptureFacts | undefined> {
  const facts = parse(await readFile(join(folder, CAPTURE_FILE), 'utf8'));
  return facts.capture === CAPTURE_VERSION && (await isWhole(folder, facts.sizes)) ? facts : undefined;
}

/** A crash may leave a file shorter than it was written. */
async function isWhole(folder: string, sizes: Record<string, number>): Promise<boolean> {
  const found = await Promise.all(Object.keys(sizes).map(async (file) => (await stat(join(folder, file))).size === sizes[file]));
  return found.every(Boolean);
}

async function readSide(folder: string): Promise<{ request: Capture['request']; response: CapturedResponse | null }> {
  const { request, response }: Facts = readFacts(await readFile(join(folder, FACTS_FILE), 'utf8'), join(folder, FACTS_FILE));
  const read = async (name: string | null): Promise<Uint8Array> =>
    name === null ? new Uint8Array() : readFile(join(folder, name));
  const { method, path, headers } = request;
  return {
    request: { method, path, headers, body: await read(request.body) },
    response: response && {
      status: response.status,
      headers: response.headers,
      body: await read(response.body),
      reads: response.reads,
    },
  };
}

/** JSON in snake_case, with regular expressions, which profiles have. */
const stringify = (facts: CaptureFacts): string => `${JSON.stringify(renameFacts(facts, toSnakeCase), writeRegex, 1)}\n`;

const parse = (text: string): CaptureFacts => renameFacts(JSON.parse(text, readRegex), toCamelCase);
