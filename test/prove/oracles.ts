import type { ProtocolId, SseFrame } from '../../packages/core/src/index.ts';
import * as anthropic from '../sdk/anthropic.ts';
import { MessagesGrammar } from '../sdk/anthropic-grammar.ts';
import * as chat from '../sdk/chat.ts';
import { ChatGrammar } from '../sdk/chat-grammar.ts';
import * as gemini from '../sdk/gemini.ts';
import { GeminiGrammar } from '../sdk/gemini-grammar.ts';
import * as responses from '../sdk/responses.ts';
import { ResponsesGrammar } from '../sdk/responses-grammar.ts';

/** What a client of an official SDK ends up with, as far as every protocol says it. */
interface Heard {
  text: string;
  calls: string[];
}

export interface Oracle {
  /** Throws when a client could stumble over the stream. */
  grammar(frames: readonly SseFrame[]): 'done' | 'error';
  readonly sdks: readonly { name: string; read(frames: readonly SseFrame[]): Promise<Heard> }[];
}

const chatHeard = ({ choices: [choice] }: chat.Completion): Heard => ({
  text: choice?.message.content ?? '',
  calls: (choice?.message.tool_calls ?? []).map((call) =>
    String((call['function'] as chat.Json | undefined)?.['name'] ?? (call['custom'] as chat.Json)['name']),
  ),
});

const anthropicHeard = ({ content }: anthropic.SdkMessage): Heard => ({
  text: content.map((block) => (block.type === 'text' ? String(block['text']) : '')).join(''),
  calls: content.flatMap((block) => (block.type === 'tool_use' ? [String(block['name'])] : [])),
});

const geminiHeard = (fragments: readonly gemini.Fragment[]): Heard => {
  const parts = fragments.flatMap(({ candidates = [] }) => candidates.find(({ index = 0 }) => index === 0)?.content?.parts ?? []);
  return {
    text: parts.map(({ text = '', thought }) => (thought ? '' : text)).join(''),
    calls: parts.flatMap(({ functionCall }) => (functionCall?.name ? [functionCall.name] : [])),
  };
};

const responsesHeard = ({ output }: responses.Response7): Heard => {
  const items = (Array.isArray(output) ? output : []) as responses.Json[];
  const parts = items.flatMap(({ type, content }) => (type === 'message' ? (content as responses.Json[]) : []));
  return {
    text: parts.map(({ type, text }) => (type === 'output_text' ? String(text) : '')).join(''),
    calls: items.flatMap(({ type, name }) => (type === 'function_call' || type === 'custom_tool_call' ? [String(name)] : [])),
  };
};

/** Grammars and official readers, a line a protocol. */
export const ORACLES: Record<ProtocolId, Oracle> = {
  'openai-chat': {
    grammar: (frames) => ChatGrammar.check(frames),
    sdks: chat.SDKS.map(({ name, stream }) => ({ name, read: async (frames) => chatHeard(await stream(chat.bodyOf(frames))) })),
  },
  'anthropic-messages': {
    grammar: (frames) => (MessagesGrammar.check(frames) === 'error' ? 'error' : 'done'),
    sdks: [
      {
        name: '@anthropic-ai/sdk 1.8',
        read: async (frames) => anthropicHeard(await anthropic.readStream(anthropic.bodyOf(frames))),
      },
    ],
  },
  'openai-responses': {
    grammar: (frames) => (ResponsesGrammar.check(frames) === 'failed' ? 'error' : 'done'),
    sdks: responses.SDKS.map(({ name, stream }) => ({
      name,
      read: async (frames) => responsesHeard(await stream(responses.bodyOf(frames))),
    })),
  },
  gemini: {
    grammar: (frames) => GeminiGrammar.check(frames, true),
    sdks: gemini.SDKS.map(({ name, stream }) => ({
      name,
      read: async (frames) => geminiHeard(await stream(gemini.piecesOf(frames))),
    })),
  },
};
