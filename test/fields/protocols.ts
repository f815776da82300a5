import { MET } from '../../scripts/fields/sources.js';
import { anthropicMessages } from './anthropic-messages.ts';
import type { Ledger } from './decision.ts';
import { type Abroad, abroad } from './elsewhere.ts';
import { gemini } from './gemini.ts';
import { openaiChat } from './openai-chat.ts';
import { openaiResponses } from './openai-responses.ts';
import type { Route } from './probe.ts';
import type { Speaker } from './route.ts';
import { anthropicMessagesRoutes } from './routes/anthropic-messages.ts';
import { geminiRoutes } from './routes/gemini.ts';
import { openaiChatRoutes } from './routes/openai-chat.ts';
import { openaiResponsesRoutes } from './routes/openai-responses.ts';

interface Row extends Speaker {
  /** In the column of the other protocols. */
  name: string;
  ledger: Ledger;
}

export const PROTOCOLS: Readonly<Record<string, Row>> = {
  'openai-chat': { name: 'chat', ledger: openaiChat, ...openaiChatRoutes },
  'anthropic-messages': { name: 'anthropic', ledger: anthropicMessages, ...anthropicMessagesRoutes },
  'openai-responses': { name: 'responses', ledger: openaiResponses, ...openaiResponsesRoutes },
  gemini: { name: 'gemini', ledger: gemini, ...geminiRoutes },
};

/** `server`: of the other protocols, the one that takes everything, or one that takes little. */
export function abroadOf(protocol: string, section: string, server: 'profile' | 'plain' = 'profile'): Abroad[] {
  const { codec: from } = PROTOCOLS[protocol] ?? raise(`no protocol ${protocol}`);
  const { path } = routeOf(protocol, section);
  return Object.values(PROTOCOLS)
    .filter(({ codec }) => codec !== from)
    .flatMap(({ name, codec: to, [server]: profile }) => abroad(name, kindOf(section), { from, to, profile, path }) ?? []);
}

const kindOf = (section: string): string => section.replace(MET, '').replace('beta request', 'request');

function raise(message: string): never {
  throw new Error(message);
}

/** Fields beyond the SDK go the way of those in it. */
export function routeOf(protocol: string, section: string): Route {
  const route = PROTOCOLS[protocol]?.routes[section.replace(MET, '')];
  return route ?? raise(`no way to probe ${protocol} ${section}`);
}
