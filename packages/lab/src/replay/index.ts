export { FAULTS, FaultError, type Faults, isBreaking, NO_FAULTS, parseFaults, splitModel } from './faults.ts';
export { type BodySink, inReads, type Piece, play, ResponseSink, silence } from './play.ts';
