import { expect } from 'vitest';
import type { Json, Part } from '../../../../test/sdk/gemini.ts';
import { isObject } from '../../src/json/json.ts';

/** A difference that decode + encode of an answer may make. `apply` makes it in a copy of the source. */
export interface Normalisation {
  name: string;
  reason: string;
  apply(body: Json): void;
}

const candidatesOf = (body: Json): Json[] => (Array.isArray(body['candidates']) ? body['candidates'].filter(isObject) : []);
const contentOf = (candidate: Json): Json => (isObject(candidate['content']) ? candidate['content'] : {});
const partsOf = (candidate: Json): Part[] => (contentOf(candidate)['parts'] ?? []) as Part[];
const eachParts = (body: Json, change: (parts: Part[]) => Part[]): void => {
  for (const candidate of candidatesOf(body))
    candidate['content'] = { ...contentOf(candidate), parts: change(partsOf(candidate)) };
};

const isText = (part: Part | undefined): part is Part & { text: string } => typeof part?.text === 'string';
const isPlain = (part: Part): boolean => Object.keys(part).every((key) => key === 'text' || key === 'thought');

/** Adjacent plain parts of a kind, and a signature behind them, are one part. */
function joinTexts(parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    const carries = isText(part) && part.text === '' && part.thoughtSignature !== undefined && Object.keys(part).length <= 3;
    const isSame = isText(last) && isText(part) && (last.thought === part.thought || (carries && !part.thought));
    if (isSame && isPlain(last) && (isPlain(part) || carries)) {
      const thoughtSignature = part.thoughtSignature === undefined ? {} : { thoughtSignature: part.thoughtSignature };
      out[out.length - 1] = { ...last, text: last.text + part.text, ...thoughtSignature };
    } else out.push(part);
  }
  return out;
}

export const NORMALISATIONS: readonly Normalisation[] = [
  {
    name: 'empty parts',
    reason: 'a part without text says nothing; an answer without any has one empty part, which clients wait for',
    apply: (body) =>
      eachParts(body, (parts) => {
        const said = parts.filter((part) => !(isText(part) && part.text === '' && isPlain(part)));
        return said.length > 0 ? said : [{ text: '' }];
      }),
  },
  {
    name: 'adjacent texts',
    reason:
      'adjacent texts and thoughts of one answer are one block; a signature on an empty part belongs to the part before (P83)',
    apply: (body) => eachParts(body, joinTexts),
  },
  {
    name: 'finishReason',
    reason: 'a name of the enum; clients of Vertex write its number',
    apply: (body) => {
      for (const candidate of candidatesOf(body)) if (candidate['finishReason'] === 1) candidate['finishReason'] = 'STOP';
    },
  },
  {
    name: 'ids of calls',
    reason: 'docs/canonical.md, blocks: a call has an id; a derived one where the wire had none',
    apply: (body) =>
      eachParts(body, (parts) =>
        parts.map((part) => {
          for (const key of ['functionCall', 'functionResponse'])
            if (isObject(part[key])) part[key]['id'] ??= expect.stringMatching(/^call_./);
          return part;
        }),
      ),
  },
  {
    name: 'responseId',
    reason: 'older models send none; one is derived, because every message has an id',
    apply: (body) => {
      body['responseId'] ??= expect.stringMatching(/^resp_./);
    },
  },
  {
    name: 'usage',
    reason: 'proto3 leaves out a 0; the total is the sum (in 559 of 561 recordings)',
    apply: (body) => {
      const { usageMetadata: usage } = body;
      if (!isObject(usage) || !Object.keys(usage).some((key) => key.endsWith('TokenCount'))) return;
      const count = (key: string): number => Number(usage[key] ?? 0);
      usage['promptTokenCount'] = count('promptTokenCount');
      usage['candidatesTokenCount'] = count('candidatesTokenCount');
      usage['totalTokenCount'] =
        count('promptTokenCount') +
        count('toolUsePromptTokenCount') +
        count('candidatesTokenCount') +
        count('thoughtsTokenCount');
    },
  },
];

/** The names of those that made a difference. */
export const used = new Set<string>();

export function normalForm(source: Json): Json {
  const body = structuredClone(source);
  for (const { name, apply } of NORMALISATIONS) {
    const before = JSON.stringify(body);
    apply(body);
    if (JSON.stringify(body) !== before) used.add(name);
  }
  return body;
}
