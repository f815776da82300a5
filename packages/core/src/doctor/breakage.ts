/** Which clients fail on which violations. */

import type { ProtocolId } from '../canonical/protocol.ts';
import type { RuleId } from '../rules/index.ts';
import { SDK_BREAKAGE } from './sdk-breakage.ts';

/** What a client does with a stream that violates its protocol. */
export interface Breakage {
  /** The client and its version. */
  client: string;
  effect: string;
}

/**
 * Lists the clients that are known to fail on a violation: official SDKs first, then agents and frameworks; only those
 * of `protocol` when one is given.
 */
export function findBreakage(rule: RuleId, protocol?: ProtocolId): Breakage[] {
  const measured = Object.entries(SDK_BREAKAGE[rule] ?? {}).filter(
    ([client]) => protocol === undefined || reads(client, protocol),
  );
  return [...measured, ...Object.entries(AGENT_BREAKAGE[rule] ?? {})].map(([client, effect]) => ({ client, effect }));
}

/** The protocol that an official SDK reads. SSE rules are the same for all protocols, but their readers differ. */
const READERS: readonly (readonly [client: RegExp, protocol: ProtocolId])[] = [
  [/\(responses\)/, 'openai-responses'],
  [/^openai /, 'openai-chat'],
  [/^@anthropic-ai\/sdk /, 'anthropic-messages'],
  [/^@google\/genai /, 'gemini'],
];

const reads = (client: string, protocol: ProtocolId): boolean =>
  READERS.find(([pattern]) => pattern.test(client))?.[1] === protocol;

// ---- measured

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

const markFailing = (...clients: string[]): Record<string, string> =>
  Object.fromEntries(clients.map((client) => [client, FAILS]));

/**
 * Agents and frameworks, run unchanged against a server that has this violation only; a tool had to be called and its
 * result returned. A client that is not listed succeeded or was not run.
 */
const AGENT_BREAKAGE: Partial<Record<RuleId, Readonly<Record<string, string>>>> = {
  'chat/ended-early': {
    ...markFailing(`${AI_SDK} (chat)`, `${AI_SDK} (openai-compatible)`, QWEN_CODE),
    [CLINE]: 'prints the text and exits with an error',
    [OPENCODE]: 'prints the text and does not exit',
  },
  'chat/tool-args-object': markFailing(
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
  'chat/tool-id-missing': markFailing(LANGCHAIN_OPENAI, AGENTS, CONTINUE, CLINE, OPENCODE),
  'chat/tool-index-missing': markFailing(`${AI_SDK} (chat)`),
  'chat/tool-name-repeated': { [AGENTS]: 'joins the names: read_fileread_file' },
  'responses/terminal-missing': {
    ...markFailing(AI_SDK, AGENTS),
    [CODEX]: 'fails: stream closed before response.completed',
  },
  'responses/arguments-object': markFailing(AI_SDK, LANGCHAIN_OPENAI, AGENTS, CODEX, PI),
  'responses/output-index-missing': markFailing(AI_SDK, LANGCHAIN_OPENAI),
  'responses/item-not-done': { [AI_SDK]: 'does not run the call', [CODEX]: 'does not run the call' },
  'responses/output-empty': markFailing(AGENTS),
  'anthropic/usage-missing': markFailing(AI_SDK, LANGCHAIN_ANTHROPIC, PI),
  'anthropic/ended-early': { ...markFailing(AI_SDK, PI), [OPENCODE]: 'prints the text and exits with an error' },
  'anthropic/message-stop-missing': markFailing(AI_SDK, PI),
  'anthropic/input-in-start': {
    [CLAUDE_CODE]: 'calls the tool with {}',
    [LANGCHAIN_ANTHROPIC]: 'calls the tool with {}',
    ...markFailing(PI, CONTINUE),
  },
  'anthropic/tool-id-missing': markFailing(AI_SDK, LANGCHAIN_ANTHROPIC, CONTINUE, OPENCODE),
  'anthropic/index-gap': markFailing(AI_SDK, LANGCHAIN_ANTHROPIC, PI, OPENCODE),
  'anthropic/event-name-missing': { [LANGCHAIN_ANTHROPIC]: 'drops the frames', [PI]: FAILS },
  'anthropic/block-stop-missing': { [AI_SDK]: 'loses the call', [CLAUDE_CODE]: 'loses the call' },
  'anthropic/unknown-event': markFailing(AI_SDK),
  'gemini/finish-missing': markFailing(AI_SDK),
  'gemini/args-not-object': markFailing(LANGCHAIN_GOOGLE, GEMINI_CLI, PI),
  'gemini/done-sentinel': markFailing(LANGCHAIN_GOOGLE, GEMINI_CLI, PI),
  'gemini/comment': markFailing(LANGCHAIN_GOOGLE, GEMINI_CLI),
  'gemini/event-line': markFailing(LANGCHAIN_GOOGLE, GEMINI_CLI),
};
