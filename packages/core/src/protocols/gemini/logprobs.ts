import { type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { TokenLogprob, TopLogprob } from '../../canonical/blocks.ts';
import { listOf, textOf } from '../shared/read.ts';
import { camelObject } from './wire.ts';

/** Each fragment brings the logprobs of its own tokens: lists grow, everything else is what was said last. */
export function addLogprobs(kept: JsonObject = {}, result: JsonObject): JsonObject {
  for (const key of Object.keys(result)) {
    const value = result[key];
    const list = Object.hasOwn(kept, key) ? kept[key] : undefined;
    if (!Array.isArray(value)) setOwn(kept, key, value);
    else if (Array.isArray(list)) for (const token of value) list.push(token);
    else setOwn(kept, key, [...value]);
  }
  return kept;
}

/** The tokens of one fragment; undefined when it has none. Google gives no bytes. */
export function decodeLogprobs(result: JsonObject): TokenLogprob[] | undefined {
  const { chosenCandidates, topCandidates } = camelObject(result);
  const tops = listOf(topCandidates).map((top) => listOf(camelObject(top)['candidates']).flatMap(decodeToken));
  const tokens = listOf(chosenCandidates).flatMap((chosen, i) =>
    decodeToken(chosen).map((token) => ({ ...token, ...(tops[i] && { top: tops[i] }) })),
  );
  return tokens.length > 0 ? tokens : undefined;
}

function decodeToken(value: unknown): TopLogprob[] {
  const { token, logProbability } = camelObject(value);
  return typeof logProbability === 'number' ? [{ token: textOf(token), logprob: logProbability }] : [];
}

/** In the words of the wire. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  const encode = ({ token, logprob }: TopLogprob): JsonObject => ({ token, logProbability: logprob });
  return {
    chosenCandidates: tokens.map(encode),
    topCandidates: tokens.map(({ top = [] }) => ({ candidates: top.map(encode) })),
  };
}
