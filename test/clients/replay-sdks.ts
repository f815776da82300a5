import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import type { ProtocolId } from '../../packages/core/src/index.ts';
import { OPENAI_SDKS, type OpenAISdk } from '../sdk/openai.ts';

/** What an SDK makes of an answer. */
export interface Heard {
  text: string;
  calls: string[];
}

export interface Reader {
  name: string;
  protocol: ProtocolId;
  read(asking: { url: string; model: string; isStream: boolean; headers: Record<string, string> }): Promise<Heard>;
}

type Asking = Parameters<Reader['read']>[0];

const PROMPT = 'hi';
const KEY = 'any';

const chat =
  (OpenAI: OpenAISdk['OpenAI']) =>
  async ({ url, model, isStream, headers }: Asking): Promise<Heard> => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0, defaultHeaders: headers });
    const question = { model, messages: [{ role: 'user' as const, content: PROMPT }] };
    const { choices } = isStream
      ? await client.chat.completions.stream(question).finalChatCompletion()
      : await client.chat.completions.create(question);
    const message = choices[0]?.message;
    const calls = (message?.tool_calls ?? []).map((call) => (call.type === 'function' ? call.function.name : call.custom.name));
    const legacy = message?.function_call?.name;
    return { text: message?.content ?? '', calls: legacy === undefined ? calls : [legacy] };
  };

const responses =
  (OpenAI: OpenAISdk['OpenAI']) =>
  async ({ url, model, isStream, headers }: Asking): Promise<Heard> => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0, defaultHeaders: headers });
    const question = { model, input: PROMPT };
    const { output } = isStream
      ? await client.responses.stream(question).finalResponse()
      : await client.responses.create(question);
    const text = output
      .flatMap((item) => (item.type === 'message' ? item.content : []))
      .map((part) => (part.type === 'output_text' ? part.text : ''))
      .join('');
    const calls = output.flatMap((item) =>
      item.type === 'apply_patch_call'
        ? ['apply_patch']
        : item.type === 'function_call' || item.type === 'custom_tool_call'
          ? [item.name]
          : [],
    );
    return { text, calls };
  };

async function messages({ url, model, isStream, headers }: Asking): Promise<Heard> {
  const client = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0, defaultHeaders: headers });
  const question = { model, max_tokens: 1024, messages: [{ role: 'user' as const, content: PROMPT }] };
  const { content } = isStream ? await client.messages.stream(question).finalMessage() : await client.messages.create(question);
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [block.name] : [])),
  };
}

const generate =
  (GoogleGenAI: typeof GoogleGenAI1) =>
  async ({ url, model, isStream, headers }: Asking): Promise<Heard> => {
    const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url, headers } });
    const question = { model, contents: PROMPT };
    const fragments = isStream ? await models.generateContentStream(question) : [await models.generateContent(question)];
    const heard: Heard = { text: '', calls: [] };
    for await (const { candidates } of fragments) {
      const first = candidates?.find(({ index = 0 }) => index === 0);
      for (const { text, thought, functionCall } of first?.content?.parts ?? []) {
        if (!thought) heard.text += text ?? '';
        if (functionCall) heard.calls.push(functionCall.name ?? '');
      }
    }
    return heard;
  };

function openaiReaders({ major, OpenAI }: OpenAISdk): Reader[] {
  return [
    { name: `${major}, chat`, protocol: 'openai-chat', read: chat(OpenAI) },
    { name: `${major}, responses`, protocol: 'openai-responses', read: responses(OpenAI) },
  ];
}

/** One for each protocol; the older majors read with the full set. */
export const READERS: readonly Reader[] = [
  ...OPENAI_SDKS.slice(-1).flatMap(openaiReaders),
  { name: '@anthropic-ai/sdk', protocol: 'anthropic-messages', read: messages },
  { name: '@google/genai 2', protocol: 'gemini', read: generate(GoogleGenAI2 as unknown as typeof GoogleGenAI1) },
];

export const OLDER: readonly Reader[] = [
  ...OPENAI_SDKS.slice(0, -1).flatMap(openaiReaders),
  { name: '@google/genai 1', protocol: 'gemini', read: generate(GoogleGenAI1) },
];
