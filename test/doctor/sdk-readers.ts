import type { ProtocolId } from '@sluice/core';
import * as anthropic from '../sdk/anthropic.ts';
import * as chat from '../sdk/chat.ts';
import * as gemini from '../sdk/gemini.ts';
import * as responses from '../sdk/responses.ts';

/** What a client of an official SDK ends up with: the text, and the calls with their arguments as values. */
export interface Heard {
  text: string;
  calls: { name: string; input: unknown }[];
}

export interface SdkReader {
  client: string;
  read(pieces: readonly string[]): Promise<Heard>;
}

const argumentsOf = (json: unknown): unknown => {
  try {
    return JSON.parse(String(json));
  } catch {
    return json;
  }
};

const isObject = (value: unknown): value is chat.Json => typeof value === 'object' && value !== null;

export const chatHeard = ({ choices: [choice] }: chat.Completion): Heard => {
  const message = choice?.message;
  const legacy = message?.['function_call'];
  const functions = isObject(legacy) ? [legacy] : (message?.tool_calls ?? []).map((call) => call['function'] as chat.Json);
  return {
    text: message?.content ?? '',
    calls: functions.map(({ name, arguments: args }) => ({ name: String(name), input: argumentsOf(args || '{}') })),
  };
};

export const anthropicHeard = ({ content }: anthropic.SdkMessage): Heard => ({
  text: content.map((block) => (block.type === 'text' ? String(block['text']) : '')).join(''),
  calls: content.flatMap((block) => (block.type === 'tool_use' ? [{ name: String(block['name']), input: block['input'] }] : [])),
});

export const responsesHeard = ({ output = [], output_text: text = '' }: responses.Response7): Heard => ({
  text,
  calls: output.flatMap(({ type, name, arguments: args }) =>
    type === 'function_call' ? [{ name: String(name), input: argumentsOf(args || '{}') }] : [],
  ),
});

export const geminiHeard = (fragments: readonly gemini.Fragment[]): Heard => {
  const { text, calls } = gemini.hear(fragments);
  return { text, calls: calls.map(({ name, args }) => ({ name: String(name), input: args ?? {} })) };
};

/** The official readers, with their versions. */
export const SDK_READERS: Record<ProtocolId, readonly SdkReader[]> = {
  'openai-chat': chat.SDKS.map(({ name, stream }) => ({
    client: name,
    read: async (pieces) => chatHeard(await stream(pieces.join(''))),
  })),
  'anthropic-messages': [
    { client: '@anthropic-ai/sdk 1.8', read: async (pieces) => anthropicHeard(await anthropic.readStream(pieces.join(''))) },
  ],
  'openai-responses': responses.SDKS.map(({ name, stream }) => ({
    client: `${name} (responses)`,
    read: async (pieces) => responsesHeard(await stream(pieces.join(''))),
  })),
  gemini: gemini.SDKS.map(({ name, stream }) => ({
    client: `@google/${name}`,
    read: async (pieces) => geminiHeard(await stream(pieces)),
  })),
};
