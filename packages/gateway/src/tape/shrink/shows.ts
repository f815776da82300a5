import { type Assembled, Assembler, PROTOCOLS, type Protocol, type RuleId } from '@sluice/core';

/** A stream as the reader understands it. `protocol`: the one it was before it was shrunk; too little is left of some to tell. */
export function assemble(text: string, protocol: Protocol | undefined): Assembled {
  const assembler = new Assembler({ protocol: protocol ?? Object.values(PROTOCOLS) });
  assembler.push(new TextEncoder().encode(text));
  return assembler.end();
}

interface RuleTest {
  shows(text: string): boolean;
  showsLoosely(text: string): boolean;
}

/**
 * Whether a stream shows a departure, and ends as the first stream did. So that the case is about that departure alone, it shows no other
 * than the first did; but some streams say everything twice, and can only shrink when that need not agree.
 */
export function testFor(rule: RuleId, first: Assembled, protocol: Protocol | undefined): RuleTest {
  const known = new Set<string>(first.diagnostics.map((diagnostic) => diagnostic.rule));
  const end = endOf(first);
  const rulesOf = (text: string): readonly string[] => {
    const read = assemble(text, protocol);
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
