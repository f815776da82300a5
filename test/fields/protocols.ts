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

export const abroadOf = (protocol: string, section: string): Abroad[] =>
  Object.entries(PROTOCOLS)
    .filter(([other]) => other !== protocol)
    .flatMap(([, { name, codec, profile }]) => abroad(name, codec, profile, section.replace(MET, '')) ?? []);

/** Fields beyond the SDK go the way of those in it. */
export function routeOf(protocol: string, section: string): Route {
  const route = PROTOCOLS[protocol]?.routes[section.replace(MET, '')];
  if (!route) throw new Error(`no way to probe ${protocol} ${section}`);
  return route;
}
