import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProtocolId } from '@sluice/core';
import { FACTS_FILE, type Facts, writeFacts } from '@sluice/lab/tape';
import { parsed } from './incoming.ts';

/** What is to be written: the facts, but for the names of files, which the writer gives. */
export interface Draft extends Omit<Facts, 'tape' | 'request' | 'response'> {
  request: Omit<Facts['request'], 'body'> & { body: Uint8Array };
  response: (Omit<NonNullable<Facts['response']>, 'body'> & { body: Uint8Array }) | null;
}

/** Prompts are private: nobody else on the machine reads them. */
const FOLDER_MODE = 0o700;

const FILE_MODE = 0o600;

const SHORT_NAMES = {
  'openai-chat': 'chat',
  'anthropic-messages': 'anthropic',
  'openai-responses': 'responses',
  gemini: 'gemini',
} as const satisfies Record<ProtocolId, string>;

/** By the type of a body, the end of its file's name: editors and the other commands know what to make of it. */
const ENDINGS: readonly (readonly [type: RegExp, ending: string])[] = [
  [/^text\/event-stream/i, 'sse'],
  [/json/i, 'json'],
  [/^text\//i, 'txt'],
];

/** Who sends JSON does not always say so. */
function endingOf(headers: Readonly<Record<string, string>>, bytes: Uint8Array): string {
  return (
    ENDINGS.find(([type]) => type.test(headers['content-type'] ?? ''))?.[1] ?? (parsed(bytes) === undefined ? 'bin' : 'json')
  );
}

/** Adds exchanges to a tape. Each appears whole or not at all. */
export class TapeWriter {
  readonly #folder: string;
  #last: number;

  private constructor(folder: string, last: number) {
    this.#folder = folder;
    this.#last = last;
  }

  /** Exchanges that are there already stay, and the numbers go on. */
  static async open(folder: string): Promise<TapeWriter> {
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    const numbers = (await readdir(folder)).map((name) => Number(/^(\d+)-/.exec(name)?.[1] ?? 0));
    return new TapeWriter(folder, Math.max(0, ...numbers));
  }

  /** Gives the name of the exchange. */
  async save(draft: Draft): Promise<string> {
    const name = `${String(++this.#last).padStart(4, '0')}-${slugOf(draft)}`;
    const part = join(this.#folder, `.${name}.part`);
    const { facts, files } = filesOf(draft);
    try {
      await mkdir(part, { mode: FOLDER_MODE });
      for (const [file, bytes] of files) await writeFile(join(part, file), bytes, { mode: FILE_MODE });
      await writeFile(join(part, FACTS_FILE), writeFacts(facts), { mode: FILE_MODE });
      await rename(part, join(this.#folder, name));
    } catch (error) {
      await rm(part, { recursive: true, force: true });
      throw error;
    }
    return name;
  }
}

function filesOf({ request, response, ...rest }: Draft): {
  facts: Omit<Facts, 'tape'>;
  files: [name: string, bytes: Uint8Array][];
} {
  const files: [string, Uint8Array][] = [];
  const store = (stem: string, headers: Readonly<Record<string, string>>, bytes: Uint8Array): string | null => {
    if (bytes.length === 0) return null;
    const name = `${stem}.${endingOf(headers, bytes)}`;
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
    response: response && answerOf(response, store('response', response.headers, response.body)),
  };
  return { facts, files };
}

/** The reads come last: there are many of them. */
function answerOf({ status, headers, redacted, reads }: NonNullable<Draft['response']>, body: string | null): Facts['response'] {
  return { status, headers, body, ...(redacted && { redacted }), reads };
}

/** What a person looks for in a list of folders. */
function slugOf({ protocol, model, request }: Draft): string {
  const words = protocol === null ? request.path.split('?', 1).join() : `${SHORT_NAMES[protocol]}-${model ?? ''}`;
  const slug = words
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/[-.]{2,}/g, '-');
  return slug.replace(/^[-.]+|[-.]+$/g, '').slice(0, 60) || 'exchange';
}
