export { buildCase, type Until, writeReport } from './report.ts';
export { assemble, createTest, detectEncoding, type Encoding, type Reading } from './shows.ts';
export { type ShrinkOptions, type Shrunk, shrink } from './shrinker.ts';
