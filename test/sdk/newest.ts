/** The newest official SDKs, some of which ask for a newer node than Sluice: `npm run test:sdk-next` installs them. */
import type Anthropic from '@anthropic-ai/sdk';
import type { GoogleGenAI } from 'google-genai-1';
import type OpenAI from 'openai';
import type { AzureOpenAI } from 'openai';
import { describeSdk, IS_NEXT, type OpenAISdk, readVersion } from './openai.ts';

interface Named<T> {
  /** As messages name it: `@google/genai 3.1`. */
  name: string;
  major: string;
  SDK: T;
}

interface NewestSdks {
  openai: OpenAISdk;
  anthropic: Named<typeof Anthropic>;
  google: Named<typeof GoogleGenAI>;
}

const findFolder = (name: string): URL => new URL(`../sdk-next/node_modules/${name}/`, import.meta.url);

// They are called like the majors before: their types differ, what is called here does not.
const load = async <T>(name: string, file: string): Promise<T> => (await import(new URL(file, findFolder(name)).href)) as T;

function nameSdk<T>(title: string, folder: string, SDK: T): Named<T> {
  const { major, minor } = readVersion(findFolder(folder));
  return { name: `${title} ${major}.${minor}`, major: `${title} ${major}`, SDK };
}

async function loadAll(): Promise<NewestSdks> {
  const openai = await load<{ OpenAI: typeof OpenAI; AzureOpenAI: typeof AzureOpenAI }>('openai-newest', 'index.mjs');
  const { default: AnthropicNewest } = await load<{ default: typeof Anthropic }>('anthropic-newest', 'index.mjs');
  const google = await load<{ GoogleGenAI: typeof GoogleGenAI }>('google-genai-newest', 'dist/node/index.mjs');
  return {
    openai: describeSdk(findFolder('openai-newest'), openai),
    anthropic: nameSdk('@anthropic-ai/sdk', 'anthropic-newest', AnthropicNewest),
    google: nameSdk('@google/genai', 'google-genai-newest', google.GoogleGenAI),
  };
}

/** Undefined where they are not installed. */
export const NEWEST: NewestSdks | undefined = IS_NEXT ? await loadAll() : undefined;
