import type { ProtocolId } from '../canonical/protocol.ts';
import type { RuleId } from '../rules/index.ts';
import { SDK_BREAKAGE } from './sdk-breakage.ts';

/** What a client does with a stream that departs. */
export interface Breakage {
  /** With its version. */
  client: string;
  effect: string;
}

const AI_SDK = 'AI SDK 6.0.326';

const AGENTS = '@openai/agents 0.20.0';

const LANGCHAIN_OPENAI = '@langchain/openai 1.5.8';

const LANGCHAIN_ANTHROPIC = '@langchain/anthropic 1.5.11';

const LANGCHAIN_GOOGLE = '@langchain/google-genai 2.3.2';

const CLAUDE_CODE = 'Claude Code 2.1.197';

const CODEX = 'Codex 0.166.0';

const GEMINI_CLI = 'Gemini CLI 0.61.0';

const OPENCODE = 'opencode 1.18.33';

const PI = 'pi 0.73.1';

const CONTINUE = 'Continue 1.5.47';

const CLINE = 'Cline 3.0.65';

const QWEN_CODE = 'Qwen Code 0.15.10';

const FAILS = 'fails';

const failing = (...clients: string[]): Record<string, string> => Object.fromEntries(clients.map((client) => [client, FAILS]));

/**
 * Agents and frameworks that were run, as they are, against a server that departs in this way and in no other: a tool had to be called and its
 * result to come back. Who is not listed got through, or was not run.
 */
const AGENT_BREAKAGE: Partial<Record<RuleId, Readonly<Record<string, string>>>> = {
  'chat/ended-early': {
    ...failing(`${AI_SDK} (chat)`, `${AI_SDK} (openai-compatible)`, QWEN_CODE),
    [CLINE]: 'prints the text and exits with an error',
    [OPENCODE]: 'prints the text and does not exit',
  },
  'chat/tool-args-object': failing(
    `${AI_SDK} (chat)`,
    `${AI_SDK} (openai-compatible)`,
    LANGCHAIN_OPENAI,
    AGENTS,
    PI,
    QWEN_CODE,
    CONTINUE,
    CLINE,
    OPENCODE,
  ),
  'chat/tool-id-missing': failing(LANGCHAIN_OPENAI, AGENTS, CONTINUE, CLINE, OPENCODE),
  'chat/tool-index-missing': failing(`${AI_SDK} (chat)`),
  'chat/tool-name-repeated': { [AGENTS]: 'joins the names: read_fileread_file' },
  'responses/terminal-missing': {
    ...failing(AI_SDK, AGENTS),
    [CODEX]: 'fails: stream closed before response.completed',
  },
  'responses/arguments-object': failing(AI_SDK, LANGCHAIN_OPENAI, AGENTS, CODEX, PI),
  'responses/output-index-missing': failing(AI_SDK, LANGCHAIN_OPENAI),
  'responses/item-not-done': { [AI_SDK]: 'does not run the call', [CODEX]: 'does not run the call' },
  'responses/output-empty': failing(AGENTS),
  'anthropic/usage-missing': failing(AI_SDK, LANGCHAIN_ANTHROPIC, PI),
  'anthropic/ended-early': { ...failing(AI_SDK, PI), [OPENCODE]: 'prints the text and exits with an error' },
  'anthropic/message-stop-missing': failing(AI_SDK, PI),
  'anthropic/input-in-start': {
    [CLAUDE_CODE]: 'calls the tool with {}',
    [LANGCHAIN_ANTHROPIC]: 'calls the tool with {}',
    ...failing(PI, CONTINUE),
  },
  'anthropic/tool-id-missing': failing(AI_SDK, LANGCHAIN_ANTHROPIC, CONTINUE, OPENCODE),
  'anthropic/index-gap': failing(AI_SDK, LANGCHAIN_ANTHROPIC, PI, OPENCODE),
  'anthropic/event-name-missing': { [LANGCHAIN_ANTHROPIC]: 'drops the frames', [PI]: FAILS },
  'anthropic/block-stop-missing': { [AI_SDK]: 'loses the call', [CLAUDE_CODE]: 'loses the call' },
  'anthropic/unknown-event': failing(AI_SDK),
  'gemini/finish-missing': failing(AI_SDK),
  'gemini/args-not-object': failing(LANGCHAIN_GOOGLE, GEMINI_CLI, PI),
  'gemini/done-sentinel': failing(LANGCHAIN_GOOGLE, GEMINI_CLI, PI),
  'gemini/comment': failing(LANGCHAIN_GOOGLE, GEMINI_CLI),
  'gemini/event-line': failing(LANGCHAIN_GOOGLE, GEMINI_CLI),
};

/** Which protocol an official SDK reads; the rules of SSE are the same for all of them, their readers are not. */
const READERS: readonly (readonly [client: RegExp, protocol: ProtocolId])[] = [
  [/\(responses\)/, 'openai-responses'],
  [/^openai /, 'openai-chat'],
  [/^@anthropic-ai\/sdk /, 'anthropic-messages'],
  [/^@google\/genai /, 'gemini'],
];

const reads = (client: string, protocol: ProtocolId): boolean =>
  READERS.find(([pattern]) => pattern.test(client))?.[1] === protocol;

/** The clients that are known to break on a departure: official SDKs first, then agents and frameworks; of a protocol when one is named. */
export function breakageOf(rule: RuleId, protocol?: ProtocolId): Breakage[] {
  const measured = Object.entries(SDK_BREAKAGE[rule] ?? {}).filter(
    ([client]) => protocol === undefined || reads(client, protocol),
  );
  return [...measured, ...Object.entries(AGENT_BREAKAGE[rule] ?? {})].map(([client, effect]) => ({ client, effect }));
}
