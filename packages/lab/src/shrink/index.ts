export { caseOf, reportOf, type Until } from './report.ts';
export { assemble, type Encoding, encodingOf, type Reading, testFor } from './shows.ts';
export { type ShrinkOptions, type Shrunk, shrink } from './shrinker.ts';
