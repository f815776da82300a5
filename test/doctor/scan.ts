import type { Examination, RuleId } from '@sluice/core';
import { type Recording, readManifest, readRecording } from '../corpus.ts';
import { protocolOf } from '../run.ts';
import { examine } from './examine.ts';

export interface Scanned {
  protocol: string;
  provider: string;
  examination: Examination;
  /** The rules that say something of the provider, and not of whoever recorded it. */
  rules: RuleId[];
}

/** Rules that are about what a recorder changed. */
const CHANGED: Readonly<Record<string, RegExp>> = {
  'done-not-kept': /^sse\/missing-done$/,
  'ids-replaced': /(^|-|\/)ids?(-|$)/,
  edited: /./,
};

/** What a recorder changed is no habit of the provider. */
const isOfRecorder = (rule: RuleId, { framing, recorder }: Recording): boolean =>
  (framing === 'rebuilt' && rule.startsWith('sse/')) || recorder.some((change) => CHANGED[change]?.test(rule));

/** Every recorded stream that was answered well, examined. */
export const scanRecordings = (): Scanned[] =>
  readManifest()
    .filter(({ stream, status }) => stream && status < 300)
    .map((recording) => {
      const { protocol, provider, file } = recording;
      const examination = examine([readRecording(file)], { protocol: protocolOf(protocol) });
      const rules = examination.findings.map(({ rule }) => rule).filter((rule) => !isOfRecorder(rule, recording));
      return { protocol, provider, examination, rules };
    });
