import type { ProtocolId } from '@sluice/core';
import type { Faultd } from './faultd.ts';

/** Who asks, and who is asked. */
export interface Pair {
  client: ProtocolId;
  upstream: ProtocolId;
  /** Same protocol, bytes untouched. */
  isPassing: boolean;
  name: string;
}

const pair = (client: ProtocolId, upstream: ProtocolId, isPassing = false): Pair => ({
  client,
  upstream,
  isPassing,
  name: `${client} ${isPassing ? '=' : '<-'} ${upstream}`,
});

/** Every protocol asks and is asked, and every one is passed through. */
export const PAIRS: readonly Pair[] = [
  pair('openai-chat', 'openai-chat', true),
  pair('anthropic-messages', 'anthropic-messages', true),
  pair('openai-responses', 'openai-responses', true),
  pair('gemini', 'gemini', true),
  pair('anthropic-messages', 'openai-chat'),
  pair('openai-responses', 'anthropic-messages'),
  pair('openai-chat', 'gemini'),
  pair('gemini', 'openai-responses'),
  // Same protocol, mended.
  pair('openai-chat', 'openai-chat'),
];

export const modelOf = ({ upstream, isPassing }: Pair): string => `${isPassing ? 'pass' : 'mend'}-${upstream}/m`;

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

export const KEY = 'sk-canary-0123456789abcdef';

/** Providers at these upstreams: `pass-<protocol>` and `mend-<protocol>` at the first, `spare-<protocol>` at the second. */
export function providersAt(first: Faultd, second: Faultd = first): Record<string, object> {
  const at = (protocol: ProtocolId, { url }: Faultd, repair: boolean): object => ({
    protocol,
    base_url: url,
    api_key: KEY,
    repair,
  });
  return Object.fromEntries(
    PROTOCOLS.flatMap((protocol) => [
      [`pass-${protocol}`, at(protocol, first, false)],
      [`mend-${protocol}`, at(protocol, first, true)],
      [`spare-${protocol}`, at(protocol, second, true)],
    ]),
  );
}

/** Names that are answered by the first upstream, or by the second when the first has no answer. */
export const modelsWithSpare = (): Record<string, string[]> =>
  Object.fromEntries(
    PROTOCOLS.flatMap((protocol) =>
      ['pass', 'mend'].map((way) => [`${way}-${protocol}-or-spare`, [`${way}-${protocol}/m`, `spare-${protocol}/m`]]),
    ),
  );

export const sparedModelOf = ({ upstream, isPassing }: Pair): string => `${isPassing ? 'pass' : 'mend'}-${upstream}-or-spare`;

/** Each of them twice: for a stream, and for a whole answer. */
export const waysOf = (pairs: readonly Pair[]): { pair: Pair; stream: boolean; name: string }[] =>
  pairs.flatMap((pair) =>
    [true, false].map((stream) => ({ pair, stream, name: `${pair.name}, ${stream ? 'stream' : 'whole'}` })),
  );
