import Anthropic from '@anthropic-ai/sdk';
import { type Content, type FunctionDeclaration, GoogleGenAI as GoogleGenAI1, Type } from 'google-genai-1';
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import type OpenAI from 'openai';
import type { ProtocolId } from '../../packages/core/src/index.ts';
import { OPENAI_SDKS, type OpenAISdk } from '../sdk/openai.ts';

/** One conversation: a question, the tool it takes, and the last words. */
interface Asking {
  url: string;
  model: string;
  isStream: boolean;
  prompt: string;
  /** The tool: what stands in a file. */
  read(path: string): string;
}

export interface Sdk {
  name: string;
  protocol: ProtocolId;
  ask(asking: Asking): Promise<string>;
}

/** A model that goes on calling tools has lost its way. */
const TURNS = 4;
const NAME = 'read_file';
const DESCRIPTION = 'Read a text file';
const SCHEMA = {
  type: 'object',
  properties: { path: { type: 'string' } },
  required: ['path'],
  additionalProperties: false,
} as const;
const KEY = 'any';

const pathOf = (text: string): string => String((JSON.parse(text) as { path: unknown }).path);
const lost = (): never => {
  throw new Error(`no answer in ${TURNS} turns`);
};

const chat = (OpenAI: OpenAISdk['OpenAI']) => async (asking: Asking) => {
  const client = new OpenAI({ baseURL: `${asking.url}/v1`, apiKey: KEY, maxRetries: 0 });
  const tools = [{ type: 'function' as const, function: { name: NAME, description: DESCRIPTION, parameters: SCHEMA } }];
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: asking.prompt }];
  const question = { model: asking.model, messages, tools };
  for (let turn = 0; turn < TURNS; turn++) {
    const answer = asking.isStream
      ? await client.chat.completions.stream({ ...question, stream_options: { include_usage: true } }).finalChatCompletion()
      : await client.chat.completions.create(question);
    const message = answer.choices[0]?.message;
    if (!message?.tool_calls?.length) return message?.content ?? '';
    messages.push(message);
    for (const call of message.tool_calls)
      if (call.type === 'function')
        messages.push({ role: 'tool', tool_call_id: call.id, content: asking.read(pathOf(call.function.arguments)) });
  }
  return lost();
};

const responses = (OpenAI: OpenAISdk['OpenAI']) => async (asking: Asking) => {
  const client = new OpenAI({ baseURL: `${asking.url}/v1`, apiKey: KEY, maxRetries: 0 });
  const tools = [{ type: 'function' as const, name: NAME, description: DESCRIPTION, parameters: SCHEMA, strict: true }];
  const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: asking.prompt }];
  const question = { model: asking.model, input, tools, store: false, include: ['reasoning.encrypted_content' as const] };
  for (let turn = 0; turn < TURNS; turn++) {
    const answer = asking.isStream
      ? await client.responses.stream(question).finalResponse()
      : await client.responses.create(question);
    const calls = answer.output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
    if (calls.length === 0) return answer.output_text;
    input.push(...(answer.output as OpenAI.Responses.ResponseInputItem[])); // what came out may go in again
    for (const { call_id, arguments: text } of calls)
      input.push({ type: 'function_call_output', call_id, output: asking.read(pathOf(text)) });
  }
  return lost();
};

async function messages(asking: Asking): Promise<string> {
  const client = new Anthropic({ baseURL: asking.url, apiKey: KEY, maxRetries: 0 });
  const tools = [{ name: NAME, description: DESCRIPTION, input_schema: { ...SCHEMA, required: ['path'] } }];
  const said: Anthropic.MessageParam[] = [{ role: 'user', content: asking.prompt }];
  const question = { model: asking.model, max_tokens: 1024, messages: said, tools };
  for (let turn = 0; turn < TURNS; turn++) {
    const { content } = asking.isStream
      ? await client.messages.stream(question).finalMessage()
      : await client.messages.create(question);
    const calls = content.filter((block) => block.type === 'tool_use');
    if (calls.length === 0) return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    said.push({ role: 'assistant', content });
    const results = calls.map(({ id, input }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: asking.read(pathOf(JSON.stringify(input))),
    }));
    said.push({ role: 'user', content: results });
  }
  return lost();
}

const generate = (GoogleGenAI: typeof GoogleGenAI1) => async (asking: Asking) => {
  const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: asking.url } });
  const parameters = { type: Type.OBJECT, properties: { path: { type: Type.STRING } }, required: ['path'] };
  const functionDeclarations: FunctionDeclaration[] = [{ name: NAME, description: DESCRIPTION, parameters }];
  const contents: Content[] = [{ role: 'user', parts: [{ text: asking.prompt }] }];
  const question = { model: asking.model, contents, config: { tools: [{ functionDeclarations }] } };
  for (let turn = 0; turn < TURNS; turn++) {
    const parts = await partsOf(client, question, asking.isStream);
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    if (calls.length === 0) return parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('');
    contents.push({ role: 'model', parts });
    const results = calls.map(({ id, name, args }) => {
      const response = { output: asking.read(String(args?.['path'])) };
      return { functionResponse: { ...(id !== undefined && { id }), ...(name !== undefined && { name }), response } };
    });
    contents.push({ role: 'user', parts: results });
  }
  return lost();
};

type Question = Parameters<GoogleGenAI1['models']['generateContent']>[0];

async function partsOf({ models }: GoogleGenAI1, question: Question, isStream: boolean) {
  if (!isStream) return (await models.generateContent(question)).candidates?.[0]?.content?.parts ?? [];
  const parts = [];
  for await (const { candidates } of await models.generateContentStream(question))
    parts.push(...(candidates?.[0]?.content?.parts ?? []));
  return parts;
}

// The newer majors are asked in the words of the older ones: what both have in common.
const GoogleGenAI2AsOld = GoogleGenAI2 as unknown as typeof GoogleGenAI1;

export const SDKS: readonly Sdk[] = [
  ...OPENAI_SDKS.flatMap(({ major, OpenAI }): Sdk[] => [
    { name: `${major}, chat`, protocol: 'openai-chat', ask: chat(OpenAI) },
    { name: `${major}, responses`, protocol: 'openai-responses', ask: responses(OpenAI) },
  ]),
  { name: '@anthropic-ai/sdk', protocol: 'anthropic-messages', ask: messages },
  { name: '@google/genai 1', protocol: 'gemini', ask: generate(GoogleGenAI1) },
  { name: '@google/genai 2', protocol: 'gemini', ask: generate(GoogleGenAI2AsOld) },
];
