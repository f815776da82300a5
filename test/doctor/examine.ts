import { type Examination, type ExamineOptions, Examiner } from '@sluice/core';

export function examine(chunks: Iterable<Uint8Array>, options: ExamineOptions): Examination {
  const examiner = new Examiner(options);
  for (const chunk of chunks) examiner.push(chunk);
  return examiner.end();
}
