import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProtocolId } from '@sluice/core';
import { FACTS_FILE, type Facts, writeFacts } from '@sluice/lab/tape';
import { renameFile } from '../files/rename.ts';
import { parseJson } from './incoming.ts';

/** Adds exchanges to a tape, one folder each. A folder appears complete or not at all. */
export class TapeWriter {
  readonly #folder: string;
  #last: number;

  private constructor(folder: string, last: number) {
    this.#folder = folder;
    this.#last = last;
  }

  /** Keeps existing exchanges and continues their numbers. */
  static async open(folder: string): Promise<TapeWriter> {
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    const numbers = (await readdir(folder)).map((name) => Number(/^(\d+)-/.exec(name)?.[1] ?? 0));
    return new TapeWriter(folder, Math.max(0, ...numbers));
  }

  /** Writes an exchange and resolves with its name. */
  async save(draft: Draft): Promise<string> {
    const name = `${String(++this.#last).padStart(4, '0')}-${buildSlug(draft)}`;
    const part = join(this.#folder, `.${name}.part`);
    try {
      await writeExchange(part, draft);
      await renameFile(part, join(this.#folder, name));
    } catch (error) {
      await rm(part, { recursive: true, force: true });
      throw error;
    }
    return name;
  }
}

/** Writes an exchange to a new folder that only the owner can read. Resolves with the size of every file. */
export async function writeExchange(folder: string, draft: Draft): Promise<Record<string, number>> {
  const { facts, files } = buildFiles(draft);
  const all = [...files, [FACTS_FILE, Buffer.from(writeFacts(facts))] as const];
  await mkdir(folder, { mode: FOLDER_MODE });
  for (const [file, bytes] of all) await writeFile(join(folder, file), bytes, { mode: FILE_MODE });
  return Object.fromEntries(all.map(([file, { length }]) => [file, length]));
}

/** An exchange to write, with bodies in place of file names. */
export interface Draft extends Omit<Facts, 'tape' | 'request' | 'response'> {
  request: Omit<Facts['request'], 'body'> & { body: Uint8Array };
  response: (Omit<NonNullable<Facts['response']>, 'body'> & { body: Uint8Array }) | null;
}

/** Prompts are private: for the owner only. */
export const FOLDER_MODE = 0o700;

/** The same for files. */
export const FILE_MODE = 0o600;

function buildFiles({ request, response, ...rest }: Draft): {
  facts: Omit<Facts, 'tape'>;
  files: [name: string, bytes: Uint8Array][];
} {
  const files: [string, Uint8Array][] = [];
  const store = (stem: string, headers: Readonly<Record<string, string>>, bytes: Uint8Array): string | null => {
    if (bytes.length === 0) return null;
    const name = `${stem}.${chooseExtension(headers, bytes)}`;
    files.push([name, bytes]);
    return name;
  };
  const { method, path, headers } = request;
  const { recorded, protocol, model, stream, end } = rest;
  const facts = {
    recorded,
    protocol,
    model,
    stream,
    end,
    request: { method, path, headers, body: store('request', headers, request.body) },
    response: response && buildResponse(response, store('response', response.headers, response.body)),
  };
  return { facts, files };
}

/** The reads come last because there are many. */
function buildResponse(
  { status, headers, redacted, reads }: NonNullable<Draft['response']>,
  body: string | null,
): Facts['response'] {
  return { status, headers, body, ...(redacted && { redacted }), reads };
}

/** File extension by content type. */
const EXTENSIONS: readonly (readonly [type: RegExp, ending: string])[] = [
  [/^text\/event-stream/i, 'sse'],
  [/json/i, 'json'],
  [/^text\//i, 'txt'],
];

/** The extension by content type, or by content when the type is missing. */
function chooseExtension(headers: Readonly<Record<string, string>>, bytes: Uint8Array): string {
  return (
    EXTENSIONS.find(([type]) => type.test(headers['content-type'] ?? ''))?.[1] ??
    (parseJson(bytes) === undefined ? 'bin' : 'json')
  );
}

/** The readable part of the folder name: protocol and model, or the path. */
function buildSlug({ protocol, model, request }: Draft): string {
  const words = protocol === null ? request.path.split('?', 1).join() : `${SHORT_NAMES[protocol]}-${model ?? ''}`;
  const slug = words
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/[-.]{2,}/g, '-');
  return slug.replace(/^[-.]+|[-.]+$/g, '').slice(0, 60) || 'exchange';
}

const SHORT_NAMES = {
  'openai-chat': 'chat',
  'anthropic-messages': 'anthropic',
  'openai-responses': 'responses',
  gemini: 'gemini',
} as const satisfies Record<ProtocolId, string>;
