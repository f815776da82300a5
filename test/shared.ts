import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = process.env['SLUICE_SHARED'] ?? join(root, '..', 'shared');

/** The folder with recordings and captured requests; undefined when it is missing (CI does not run without it). */
export const SHARED: string | undefined = existsSync(folder) ? folder : undefined;

if (!SHARED) console.log(`skipped: everything that reads ${folder} (set SLUICE_SHARED to the folder with recordings)`);

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

export interface Recording {
  file: string;
  /** The file of the request that led to it, where it is known. */
  request?: string;
  protocol: string;
  provider: string;
  model: string;
  stream: boolean;
  status: number;
  features: string[];
  quirks?: string[];
  notes?: string[];
  done?: boolean;
}

/** The reported streams in `fixtures/cases.jsonl` (a copy of the shared ones) and those of our own in `fixtures/cases-own.jsonl`. */
export function readCases(): Case[] {
  return ['cases.jsonl', 'cases-own.jsonl'].flatMap((file) =>
    readFileSync(join(root, 'fixtures', file), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Case),
  );
}

export function readManifest(): Recording[] {
  return SHARED ? (JSON.parse(readFileSync(join(SHARED, 'recordings', 'manifest.json'), 'utf8')) as Recording[]) : [];
}

export const readRecording = (file: string): Buffer => readFileSync(join(SHARED ?? '', 'recordings', file));

/** A request that a real client sent. */
export interface CapturedRequest {
  /** The file, and the number of the request in it. */
  name: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: unknown;
}

/** Every request captured from real clients, in the order of the files. */
export function readCapturedRequests(): CapturedRequest[] {
  if (!SHARED) return [];
  const shared = SHARED;
  return ['requests-shape', 'requests-more'].flatMap((folder) =>
    readdirSync(join(shared, 'clients', folder)).flatMap((file) => {
      const text = readFileSync(join(shared, 'clients', folder, file), 'utf8');
      const { requests } = JSON.parse(text) as { requests: Omit<CapturedRequest, 'name'>[] };
      return requests.map((request, i) => ({ ...request, name: `${file}#${i}` }));
    }),
  );
}
