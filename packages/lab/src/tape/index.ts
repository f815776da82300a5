export { type Closeness, type Comparable, comparableOf, type Difference, differencesOf } from './compare.ts';
export {
  type Answer,
  type Ending,
  type Exchange,
  FACTS_FILE,
  type Facts,
  joinPaths,
  type Read,
  TapeError,
  writeFacts,
} from './format.ts';
export { readTape } from './read.ts';
