export { FAULTS, FaultError, type Faults, isBreaking, NO_FAULTS, parseFaults, splitModel } from './faults.ts';
export { type BodySink, type Piece, pause, play, ResponseSink, splitReads } from './play.ts';
