/** Reads shrunk streams and decides whether they still show a violation. */

import { isUtf8 } from 'node:buffer';
import { type AccumulatedMessage, Examiner, PROTOCOLS, type Protocol, type RuleId } from '@sluice/core';

/**
 * Creates tests for a violation in a stream that ends as the first one did. `shows` also requires that there are no
 * violations that the first stream did not have, so that the case is about one violation alone. `showsLoosely` does
 * not: streams that repeat their content can only shrink when the copies may differ.
 */
export function createTest(rule: RuleId, first: AccumulatedMessage, reading?: Reading): RuleTest {
  const known = new Set<string>(first.diagnostics.map((diagnostic) => diagnostic.rule));
  const end = describeEnd(first);
  const listRules = (text: string): readonly string[] => {
    const read = assemble(text, reading);
    return describeEnd(read) === end ? read.diagnostics.map((diagnostic) => diagnostic.rule) : [];
  };
  return {
    shows: (text) => {
      const rules = listRules(text);
      return rules.includes(rule) && rules.every((met) => known.has(met));
    },
    showsLoosely: (text) => listRules(text).includes(rule),
  };
}

interface RuleTest {
  shows(text: string): boolean;
  showsLoosely(text: string): boolean;
}

const describeEnd = ({ complete, error }: AccumulatedMessage): string => `${complete} ${error?.code ?? ''}`;

/** Reads a stream as `sluice doctor` and `sluice assemble` do. */
export function assemble(text: string, { protocol, encoding = 'utf8' }: Reading = {}): AccumulatedMessage {
  return Examiner.examine([Buffer.from(text, encoding)], { protocol: protocol ?? Object.values(PROTOCOLS) }).message;
}

/** How the streams of one input are read. */
export interface Reading {
  /** The protocol before shrinking; too little may be left to detect it. */
  protocol?: Protocol | undefined;
  /** `utf8` when absent. */
  encoding?: Encoding;
}

/**
 * How the text of a stream is written as bytes. A body that is not UTF-8 is read as Latin-1, so that no byte changes.
 */
export type Encoding = 'utf8' | 'latin1';

/** The encoding that preserves the bytes. */
export const detectEncoding = (bytes: Uint8Array): Encoding => (isUtf8(bytes) ? 'utf8' : 'latin1');
