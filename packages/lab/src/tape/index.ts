export { type Closeness, type Comparable, type Difference, listDifferences, readComparable } from './compare.ts';
export {
  type Ending,
  type Exchange,
  FACTS_FILE,
  type Facts,
  joinPaths,
  type Read,
  type RecordedResponse,
  readFacts,
  TapeError,
  writeFacts,
} from './format.ts';
export { readTape } from './read.ts';
