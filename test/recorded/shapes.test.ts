import * as core from '@sluice/core';
import * as engine from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { render } from '../../fixtures/corpus/render.js';
import { digest } from '../../scripts/corpus/digest.js';
import { readManifest, readRecording, readShapes } from '../corpus.ts';

// Only with recordings: `npm run test:recordings`.
const recordings = new Map(readManifest().map((recording) => [recording.file.replace(/\.(sse|json)$/, ''), recording]));

/** Runs of this many words in a row are somebody's sentence. */
const RUN = 6;

function listRuns(text: string): string[] {
  const words = text.split(/[\s.,;:!?"'()\\]+/).filter((word) => /^\p{L}+$/u.test(word));
  return words.slice(RUN - 1).map((_, at) => words.slice(at, at + RUN).join(' '));
}

describe.each(readShapes())('$name', (shape) => {
  const recording = recordings.get(shape.name);
  const recorded = recording && readRecording(recording.file);
  const rendered = render(shape);

  test('rules, events, stop reason, usage and repairs are those of the recording', () => {
    if (!recorded) throw new Error('no recording has this shape');
    const read = (bytes: Uint8Array) => digest({ core, engine }, shape.protocol, bytes);
    expect(read(Buffer.from(rendered.body))).toEqual(read(recorded));
  });

  test('no generated text shares six words in a row with the recording', () => {
    const request = recording?.request && readRecording(recording.request).toString();
    const known = new Set(listRuns(`${recorded?.toString()} ${request ?? ''}`));
    expect(rendered.strings.flatMap(listRuns).filter((run) => known.has(run))).toEqual([]);
  });
});
