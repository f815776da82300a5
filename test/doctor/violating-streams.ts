import { isDeepStrictEqual } from 'node:util';
import type { AccumulatedMessage, ProtocolId, RuleId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { listMutations, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { readCases } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { cleanStreams, PROTOCOL_IDS } from './clean-streams.ts';
import { examine } from './examine.ts';
import type { Heard } from './sdk-readers.ts';

/** A stream with one violation. */
export interface Violating {
  rule: RuleId;
  protocol: ProtocolId;
  chunks: Uint8Array[];
  message: AccumulatedMessage;
}

/** The one violation of a stream; undefined when there is none, or when it is not clear which of several a client stumbles over. */
function violating(protocol: ProtocolId, chunks: Uint8Array[]): Violating[] {
  // Arguments that Gemini streams, and calls that Google runs itself, are parts like others to its SDK, violations or not.
  if (/willContinue|functionResponse/.test(Buffer.concat(chunks).toString())) return [];
  const { findings, message } = examine(chunks, { protocol: CODECS[protocol] });
  const [only, another] = findings;
  return only && !another ? [{ rule: only.rule, protocol, chunks, message }] : [];
}

interface Choice {
  protocols?: readonly ProtocolId[];
  /** The most clean streams that each violation is made out of. */
  most?: number;
}

/** Every violation that can be made out of a clean stream, and the reported ones. */
export function violatingStreams({ protocols = PROTOCOL_IDS, most = Number.POSITIVE_INFINITY }: Choice = {}): Violating[] {
  const made = protocols.flatMap((protocol) => {
    const mutations = listMutations(protocol).map((mutation) => ({ mutation, count: 0 }));
    return cleanStreams(protocol).flatMap((clean) =>
      mutations.flatMap((entry) => {
        if (entry.count >= most) return [];
        const random = seededRandom(7);
        const mutated = entry.mutation.apply(clean, random);
        const found = mutated === clean ? [] : violating(protocol, writeStream(mutated, random));
        entry.count += found.length;
        return found;
      }),
    );
  });
  const reported = readCases()
    .filter(({ protocol }) => protocols.includes(protocolOf(protocol).id))
    .flatMap(({ protocol, raw }) => violating(protocolOf(protocol).id, [bytesOf(raw)]));
  return [...made, ...reported];
}

const MOST = 90;

/** A message of an SDK in one line, without what differs from stream to stream. */
export function words(error: unknown): string {
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  const line = message
    .replaceAll(/(?<=\w)'(?=\w)/g, '’')
    .replaceAll("'", '"')
    .replaceAll(/ at position \d+|\\/g, '')
    .replaceAll(/\b(?=\w*\d)\w{20,}/g, '…')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return line.length > MOST ? `${line.slice(0, MOST).trim()}…` : line;
}

/** What is wrong with what a client heard; undefined when nothing is. */
export function effectOf(heard: Heard, { text, tool_calls: calls, complete, error }: AccumulatedMessage): string | undefined {
  if (error) return 'does not see the error';
  if (!complete) return 'treats a truncated response as complete';
  // Half a character that stayed alone is none to us.
  if (heard.text.toWellFormed() !== text) return heard.text.length < text.length ? 'loses text' : 'reads text that was not sent';
  if (heard.calls.length !== calls.length) return heard.calls.length < calls.length ? 'loses a call' : 'reads an extra call';
  const hasName = (name: string, at: number): boolean => heard.calls[at]?.name === name;
  if (!calls.every(({ name }, at) => hasName(name, at))) return 'reads another tool name';
  const isSame = calls.every(({ arguments: args }, at) => isDeepStrictEqual(heard.calls[at]?.input, parsed(args)));
  return isSame ? undefined : 'reads other arguments';
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json || '{}');
  } catch {
    return json;
  }
}
