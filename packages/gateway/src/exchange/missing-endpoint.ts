/** Upstreams that do not have the endpoint that was called: by a wrong base URL or protocol, as a rule. */

import type { CanonicalError, Provider, WireReply } from '@sluice/core';
import { formatProvider, REMEDY } from './response-errors.ts';

/** What was called: the upstream, and the request that was sent to it. */
export interface Called {
  provider: Pick<Provider, 'id' | 'base_url'>;
  method: string;
  url: string;
  /** The client chose the endpoint; otherwise the protocol of the provider decides. */
  isForwarded?: boolean;
}

/**
 * The error for a client whose request reached no endpoint: a web framework or a proxy responded, not a model server.
 * Undefined when the response is about something else, such as a model that does not exist.
 */
export function findMissingEndpoint(reply: WireReply, error: CanonicalError, called: Called): CanonicalError | undefined {
  if (!isMissing(reply, error)) return undefined;
  const { status } = reply;
  const { protocol = 'openai-chat' } = error.upstream ?? {};
  const where = `${formatProvider(called)} has no ${called.method} ${readEndpoint(called)} (${status})`;
  const remedy = called.isForwarded ? 'use an endpoint that it has, or a model of another provider' : WRONG_SERVER;
  return {
    ...error,
    code: 'UNSUPPORTED_INTERFACE',
    message: `${where}: ${remedy}`,
    details: { ...error.details, upstream_message: error.message },
    // Not its body and names, which clients would take for errors of the protocol.
    upstream: { protocol, status },
  };
}

/** Some servers respond like this to a model that they do not have. */
const WRONG_SERVER = `${REMEDY}, and the model name; "sluice doctor --url URL" finds the protocol`;

function isMissing({ status, body }: WireReply, { message, upstream }: CanonicalError): boolean {
  if ((status !== 404 && status !== 405) || /model|deployment/i.test(`${upstream?.code ?? ''} ${upstream?.type ?? ''}`))
    return false;
  const text = message.slice(0, MAX_READ).trim();
  return DEFAULT_TEXT.test(text) || (typeof body === 'string' && isPage(body));
}

/** A page, or nothing: no model server reports a missing model by it. */
const isPage = (body: string): boolean => /^\s*(?:$|<)/.test(body.slice(0, MAX_READ));

const MAX_READ = 200;

/** What web frameworks and servers send for a path that they do not have. */
const DEFAULT_TEXT = new RegExp(
  [
    // FastAPI, Express, Spring, Go, Hono, llama.cpp, Azure, Anthropic.
    '(?:error )?(?:404:? ?)?(?:(?:the requested )?(?:page|file|resource|path|url|route|endpoint) )?(?:was )?not found\\.?',
    // NestJS, Fastify, Kong, OpenAI; JSON without a message.
    'method not allowed\\.?',
    'cannot post /.*',
    'route post:.* not found',
    'no route matched.*',
    'invalid url\\b.*',
    'unknown (?:endpoint|path|url|route)\\b.*',
    'the server reported an error without a message',
  ]
    .map((pattern) => `^${pattern}$`)
    .join('|'),
  'is',
);

/** The path from the version on: what precedes it is a part of the base URL, which is the operator's. */
function readEndpoint({ provider, url }: Called): string {
  const { pathname } = new URL(url);
  const base = new URL(provider.base_url).pathname.replace(/\/$/, '');
  const version = /\/v\d+(?:(?:alpha|beta)\d*)?$/.exec(base)?.[0] ?? '';
  return pathname.startsWith(base) ? version + pathname.slice(base.length) : pathname;
}
