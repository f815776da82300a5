import type { Examination, RuleId } from '@sluice/core';
import { protocolOf } from '../run.ts';
import { type Recording, readManifest, readRecording } from '../shared.ts';
import { examine } from './examine.ts';

export interface Scanned {
  protocol: string;
  provider: string;
  examination: Examination;
  /** The rules that say something of the provider, and not of whoever recorded it. */
  rules: RuleId[];
}

interface Recorded extends Recording {
  framing?: string;
  json?: string;
}

const SAYS: readonly (readonly [note: RegExp, rule: RegExp])[] = [
  [/keeps no \[DONE\]/, /^sse\/missing-done$/],
  [/replaced/, /(^|-|\/)ids?(-|$)/],
  [/by hand|hand-edited/, /./],
];

/** What a recorder changed is no habit of the provider. */
const isOfRecorder = (rule: RuleId, { framing, notes = [] }: Recorded): boolean =>
  (framing === 'rebuilt' && rule.startsWith('sse/')) ||
  SAYS.some(([said, about]) => about.test(rule) && notes.some((note) => said.test(note)));

/** Every recorded stream that was answered well, examined. */
export const scanRecordings = (): Scanned[] =>
  (readManifest() as Recorded[])
    .filter(({ stream, status }) => stream && status < 300)
    .map((recording) => {
      const { protocol, provider, file } = recording;
      const examination = examine([readRecording(file)], { protocol: protocolOf(protocol) });
      const rules = examination.findings.map(({ rule }) => rule).filter((rule) => !isOfRecorder(rule, recording));
      return { protocol, provider, examination, rules };
    });
