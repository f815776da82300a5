import { readFileSync } from 'node:fs';
import OpenAI, { AzureOpenAI } from 'openai';

/** A major of the official OpenAI client. */
export interface OpenAISdk {
  /** As pages and messages name it: `openai 6.49`. */
  name: string;
  major: string;
  OpenAI: typeof OpenAI;
  AzureOpenAI: typeof AzureOpenAI;
}

/**
 * Whether this run has the majors that ask for a newer node than Sluice: `npm run test:sdk-next` installs them and repeats the
 * suites that use them. Suites that need their type declarations run there only.
 */
export const IS_NEXT = process.env['SLUICE_SDK'] === 'next';

const NEXT = new URL('../sdk-next/node_modules/openai-7/', import.meta.url);

/** The majors of this run, the newest last. */
export const OPENAI_SDKS: readonly OpenAISdk[] = [
  describeSdk(new URL('../../node_modules/openai/', import.meta.url), { OpenAI, AzureOpenAI }),
  ...(IS_NEXT ? [describeSdk(NEXT, await importNext())] : []),
];

export function describeSdk(folder: URL, classes: Pick<OpenAISdk, 'OpenAI' | 'AzureOpenAI'>): OpenAISdk {
  const { major, minor } = readVersion(folder);
  return { name: `openai ${major}.${minor}`, major: `openai ${major}`, ...classes };
}

/** The version of an installed package. */
export function readVersion(folder: URL): { major: string; minor: string } {
  const { version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')) as { version: string };
  const [major = '', minor = ''] = version.split('.');
  return { major, minor };
}

/** The same calls in both; their types are too big to be joined. */
async function importNext(): Promise<typeof import('openai')> {
  return import(new URL('index.mjs', NEXT).href);
}
