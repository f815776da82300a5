import { isUtf8 } from 'node:buffer';
import { type Assembled, Examiner, PROTOCOLS, type Protocol, type RuleId } from '@sluice/core';

/** How the text of a stream is written as bytes. A body that is not UTF-8 is read one byte a character, so that no byte changes. */
export type Encoding = 'utf8' | 'latin1';

/** How the streams of one input are read. */
export interface Reading {
  /** The one it was before it was shrunk; too little is left of some to tell. */
  protocol?: Protocol | undefined;
  /** `utf8` when absent. */
  encoding?: Encoding;
}

export const encodingOf = (bytes: Uint8Array): Encoding => (isUtf8(bytes) ? 'utf8' : 'latin1');

/** A stream as `sluice doctor` and `sluice assemble` read it. */
export function assemble(text: string, { protocol, encoding = 'utf8' }: Reading = {}): Assembled {
  return Examiner.examine([Buffer.from(text, encoding)], { protocol: protocol ?? Object.values(PROTOCOLS) }).message;
}

interface RuleTest {
  shows(text: string): boolean;
  showsLoosely(text: string): boolean;
}

/**
 * Whether a stream shows a departure, and ends as the first stream did. So that the case is about that departure alone, it shows no other
 * than the first did; but some streams say everything twice, and can only shrink when that need not agree.
 */
export function testFor(rule: RuleId, first: Assembled, reading?: Reading): RuleTest {
  const known = new Set<string>(first.diagnostics.map((diagnostic) => diagnostic.rule));
  const end = endOf(first);
  const rulesOf = (text: string): readonly string[] => {
    const read = assemble(text, reading);
    return endOf(read) === end ? read.diagnostics.map((diagnostic) => diagnostic.rule) : [];
  };
  return {
    shows: (text) => {
      const rules = rulesOf(text);
      return rules.includes(rule) && rules.every((met) => known.has(met));
    },
    showsLoosely: (text) => rulesOf(text).includes(rule),
  };
}

const endOf = ({ complete, error }: Assembled): string => `${complete} ${error?.code ?? ''}`;
