/** Code that sends a request to this gateway: curl, and the SDKs of the four protocols in Python and TypeScript. */

import { formatCurl } from './curl.ts';

/** A request in the protocol of a client. */
export interface CodeRequest {
  readonly protocol: string;
  readonly path: string;
  readonly model: string;
  readonly isStream: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Languages of the code. */
export const LANGUAGES = { curl: 'curl', python: 'Python', typescript: 'TypeScript' } as const;

/** A language of the code. */
export type Language = keyof typeof LANGUAGES;

/** An SDK, and how its methods are called. */
interface Sdk {
  readonly python: { readonly head: readonly string[]; readonly client: (origin: string) => string; readonly show: string };
  readonly typescript: { readonly head: string; readonly client: (origin: string) => string; readonly show: string };
  readonly method: string;
  /** Parameters that the Python method has. It raises an error for others, which are sent as `extra_body`. */
  readonly known: string;
}

const SDKS: Readonly<Record<string, Sdk>> = {
  'openai-chat': {
    ...createOpenai('chunk.choices'),
    method: 'chat.completions.create',
    known:
      'audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options',
  },
  'openai-responses': {
    ...createOpenai('chunk'),
    method: 'responses.create',
    known:
      'background conversation include input instructions max_output_tokens max_tool_calls metadata model parallel_tool_calls previous_response_id prompt prompt_cache_key reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user',
  },
  'anthropic-messages': {
    python: {
      head: ['from anthropic import Anthropic'],
      client: (origin) => `Anthropic(base_url=${quote(origin)}, api_key="YOUR_KEY")`,
      show: 'chunk',
    },
    typescript: {
      head: "import Anthropic from '@anthropic-ai/sdk';",
      client: (origin) => `new Anthropic({ baseURL: ${quote(origin)}, apiKey: "YOUR_KEY" })`,
      show: 'chunk',
    },
    method: 'messages.create',
    known:
      'container inference_geo max_tokens messages metadata model output_config service_tier stop_sequences stream system temperature thinking tool_choice tools top_k top_p',
  },
};

function createOpenai(show: string): Pick<Sdk, 'python' | 'typescript'> {
  return {
    python: {
      head: ['from openai import OpenAI'],
      client: (origin) => `OpenAI(base_url=${quote(`${origin}/v1`)}, api_key="YOUR_KEY")`,
      show,
    },
    typescript: {
      head: "import OpenAI from 'openai';",
      client: (origin) => `new OpenAI({ baseURL: ${quote(`${origin}/v1`)}, apiKey: "YOUR_KEY" })`,
      show,
    },
  };
}

/** Writes the code. `origin` is that of the gateway. */
export function formatCode(request: CodeRequest, language: Language, origin: string): string {
  const { protocol, path, body } = request;
  switch (language) {
    case 'curl':
      return formatCurl({ method: 'POST', path, body: JSON.stringify(body) }, origin);
    case 'python':
      return protocol === 'gemini' ? formatGeminiPython(request, origin) : formatPython(request, origin);
    case 'typescript':
      return protocol === 'gemini' ? formatGeminiTypescript(request, origin) : formatTypescript(request, origin);
    default:
      return language satisfies never;
  }
}

function formatPython({ protocol, isStream, body }: CodeRequest, origin: string): string {
  const sdk = requireSdk(protocol);
  const known = new Set(sdk.known.split(' '));
  const others = Object.fromEntries(Object.entries(body).filter(([name]) => !known.has(name)));
  const given = [
    ...Object.entries(body).filter(([name]) => known.has(name)),
    ...(Object.keys(others).length > 0 ? ([['extra_body', others]] as const) : []),
  ];
  const { client, show } = sdk.python;
  const code = [
    ...sdk.python.head,
    '',
    `client = ${client(origin)}`,
    `response = client.${sdk.method}(`,
    ...given.map(([name, value]) => `    ${name}=${writePython(value, 1)},`),
    ')',
    ...(isStream ? ['for chunk in response:', `    print(${show})`] : ['print(response)']),
  ];
  return addJson(code);
}

function formatTypescript({ protocol, isStream, body }: CodeRequest, origin: string): string {
  const { typescript, method } = requireSdk(protocol);
  return [
    typescript.head,
    '',
    `const client = ${typescript.client(origin)};`,
    `const response = await client.${method}(${writeTypescript(body, 0)});`,
    isStream ? `for await (const chunk of response) console.log(${typescript.show});` : 'console.log(response);',
    '',
  ].join('\n');
}

function requireSdk(protocol: string): Sdk {
  const sdk = SDKS[protocol];
  if (!sdk) throw new Error(`no SDK is known for the protocol ${protocol}`);
  return sdk;
}

// ---- Gemini: the SDK has its own form of the body, with the parameters and the rest in `config`

/** Parts of the body that the SDK takes in `config`, under the same names. */
const GEMINI_CONFIG: ReadonlySet<string> = new Set([
  'systemInstruction',
  'tools',
  'toolConfig',
  'safetySettings',
  'cachedContent',
]);

interface GeminiParts {
  readonly contents: unknown;
  readonly config: Readonly<Record<string, unknown>>;
  /** Fields that the SDK does not know. */
  readonly others: Readonly<Record<string, unknown>>;
}

function splitGemini({ contents, generationConfig, ...rest }: CodeRequest['body']): GeminiParts {
  const entries = Object.entries(rest);
  return {
    contents,
    config: {
      ...(typeof generationConfig === 'object' ? generationConfig : {}),
      ...Object.fromEntries(entries.filter(([name]) => GEMINI_CONFIG.has(name))),
    },
    others: Object.fromEntries(entries.filter(([name]) => !GEMINI_CONFIG.has(name))),
  };
}

function formatGeminiPython({ model, isStream, body }: CodeRequest, origin: string): string {
  const { contents, config, others } = splitGemini(body);
  const isPlain = Object.keys(others).length === 0;
  const all = isPlain ? config : { ...config, httpOptions: { extraBody: others } };
  return addJson([
    'from google import genai',
    '',
    `client = genai.Client(api_key="YOUR_KEY", http_options={"base_url": ${quote(origin)}})`,
    `response = client.models.generate_content${isStream ? '_stream' : ''}(`,
    `    model=${quote(model)},`,
    `    contents=${writePython(contents, 1)},`,
    ...(Object.keys(all).length > 0 ? [`    config=${writePython(all, 1)},`] : []),
    ')',
    ...(isStream ? ['for chunk in response:', '    print(chunk.text)'] : ['print(response.text)']),
  ]);
}

function formatGeminiTypescript({ model, isStream, body }: CodeRequest, origin: string): string {
  const { contents, config, others } = splitGemini(body);
  const all = Object.keys(others).length === 0 ? config : { ...config, httpOptions: { extraBody: others } };
  const given = { model, contents, ...(Object.keys(all).length > 0 && { config: all }) };
  return [
    "import { GoogleGenAI } from '@google/genai';",
    '',
    `const client = new GoogleGenAI({ apiKey: "YOUR_KEY", httpOptions: { baseUrl: ${quote(origin)} } });`,
    `const response = await client.models.generateContent${isStream ? 'Stream' : ''}(${writeTypescript(given, 0)});`,
    isStream ? 'for await (const chunk of response) console.log(chunk.text);' : 'console.log(response.text);',
    '',
  ].join('\n');
}

// ---- values

/** JSON strings are strings of Python and TypeScript, too: the escapes that JSON writes mean the same in both. */
const quote = (text: string): string => JSON.stringify(text);

/** Compilers limit how deep an expression may be nested. */
const MAX_DEPTH = 40;

const LOADS = 'json.loads(';

/** A line that uses the module `json` needs its import. */
function addJson(code: readonly string[]): string {
  // Strings cannot have it outside of quotes, and an unused import does no harm.
  const isUsed = code.some((line) => line.includes(LOADS));
  return [...(isUsed ? ['import json', ''] : []), ...code, ''].join('\n');
}

function writePython(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH && typeof value === 'object' && value !== null) return `${LOADS}${quote(JSON.stringify(value))})`;
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return writeNumber(value);
  if (typeof value === 'string') return quote(value);
  const pad = '    '.repeat(depth);
  if (Array.isArray(value))
    return join(
      value.map((one) => writePython(one, depth + 1)),
      pad,
      '[]',
    );
  return join(
    Object.entries(value).map(([name, one]) => `${quote(name)}: ${writePython(one, depth + 1)}`),
    pad,
    '{}',
  );
}

function writeTypescript(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH && typeof value === 'object' && value !== null) return `JSON.parse(${quote(JSON.stringify(value))})`;
  if (typeof value === 'number') return writeNumber(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const pad = '    '.repeat(depth);
  if (Array.isArray(value))
    return join(
      value.map((one) => writeTypescript(one, depth + 1)),
      pad,
      '[]',
    );
  const members = Object.entries(value).map(([name, one]) => `${writeName(name)}: ${writeTypescript(one, depth + 1)}`);
  return join(members, pad, '{}');
}

/** `__proto__` in an object literal would set the prototype. */
function writeName(name: string): string {
  if (name === '__proto__') return '["__proto__"]';
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
}

/** Numbers beyond the range of JSON's writer were read as infinite, which both languages read from this again. */
const writeNumber = (value: number): string => (Number.isFinite(value) ? String(value) : value > 0 ? '1e999' : '-1e999');

function join(parts: readonly string[], pad: string, brackets: '[]' | '{}'): string {
  const [open, close] = [brackets.charAt(0), brackets.charAt(1)];
  if (parts.length === 0) return `${open}${close}`;
  const isShort = parts.join(', ').length <= 60 && !parts.some((part) => part.includes('\n'));
  if (isShort) return `${open}${parts.join(', ')}${close}`;
  return `${open}\n${parts.map((part) => `${pad}    ${part},`).join('\n')}\n${pad}${close}`;
}
