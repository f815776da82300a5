import type { ProtocolId, SseFrame } from '../../packages/core/src/index.ts';
import * as anthropic from '../sdk/anthropic.ts';
import * as chat from '../sdk/chat.ts';
import * as gemini from '../sdk/gemini.ts';
import * as responses from '../sdk/responses.ts';

/** What a client of an official SDK ends up with, as far as every protocol says it. */
interface Heard {
  text: string;
  calls: string[];
}

export interface Oracle {
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
    calls: items.flatMap(responsesCall),
  };
};

/** The name of a call that the client runs: of a function, or of a built-in tool. */
function responsesCall(item: responses.Json): string[] {
  switch (item['type']) {
    case 'function_call':
    case 'custom_tool_call':
      return [String(item['name'])];
    case 'local_shell_call':
      return ['local_shell'];
    case 'apply_patch_call':
      return ['apply_patch'];
    case 'shell_call':
      return ((item['environment'] ?? { type: 'local' }) as responses.Json)['type'] === 'local' ? ['shell'] : [];
    case 'tool_search_call':
      return item['execution'] === 'client' ? ['tool_search'] : [];
    default:
      return [];
  }
}

/** The official readers of each protocol. */
export const ORACLES: Record<ProtocolId, Oracle> = {
  'openai-chat': {
    sdks: chat.SDKS.map(({ name, stream }) => ({ name, read: async (frames) => chatHeard(await stream(chat.bodyOf(frames))) })),
  },
  'anthropic-messages': {
    sdks: anthropic.SDKS.map(({ name, stream }) => ({
      name,
      read: async (frames) => anthropicHeard(await stream(anthropic.bodyOf(frames))),
    })),
  },
  'openai-responses': {
    sdks: responses.SDKS.map(({ name, stream }) => ({
      name,
      read: async (frames) => responsesHeard(await stream(responses.bodyOf(frames))),
    })),
  },
  gemini: {
    sdks: gemini.SDKS.map(({ name, stream }) => ({
      name,
      read: async (frames) => geminiHeard(await stream(gemini.piecesOf(frames))),
    })),
  },
};
