import type { ToolCallReading } from './tool-call-delta.ts';
import type { PendingCall } from './tool-calls.ts';

// Whether a delta continues a call: the rules of docs/tool-call-identity.md, by their numbers. The tracker only applies them.
// This file imports types only and begins with its constants: bundlers inline them then.

/** The id is the call's. */
export const SAYS_SAME = 0;
/** No id, from a server that begins calls with one; or the first id of a call that has none. */
export const SAYS_CONTINUES = 1;
/** No id, from a server that gives none; or an id that means nothing, because ids change within calls. */
export const SAYS_NOTHING = 2;
/** An id that no call has. */
export const SAYS_OTHER = 3;
/** What the id of a delta says about a call. */
export type Says = typeof SAYS_SAME | typeof SAYS_CONTINUES | typeof SAYS_NOTHING | typeof SAYS_OTHER;

/** The arguments of a delta beside the whole ones of a call. `IS_BEGUN`: so far they are the beginning of the same text. */
export const IS_BLANK = 0;
export const IS_SAME = 1;
export const IS_BEGUN = 2;
export const IS_OTHER = 3;
export type Compared = typeof IS_BLANK | typeof IS_SAME | typeof IS_BEGUN | typeof IS_OTHER;

/** The call that a delta speaks to. `isBound`: its id or index names the call; otherwise it is only the latest one. */
export interface Candidate {
  call: PendingCall;
  says: Says;
  isBound: boolean;
}

/** 5: whether the latest call goes on under an index that is not its own: one that drifts, or that it never had before. */
export function takesIndex(latest: PendingCall, bound: PendingCall | undefined, delta: ToolCallReading): boolean {
  if (bound?.isOpen) return false;
  const isUnbound = latest.index === undefined;
  return latest.isOpen ? !bound || isUnbound : !bound && isUnbound && hasNoArguments(delta);
}

/** What the id of a delta says about a call that does not have it. `idsChange`: as far as it is known. */
export function readSays(call: PendingCall, id: string | undefined, isBound: boolean, idsChange?: boolean): Says {
  if (id === undefined) return call.opensWithId ? SAYS_CONTINUES : SAYS_NOTHING;
  if (call.wireId === undefined) return SAYS_CONTINUES;
  return idsChange && isBound ? SAYS_NOTHING : SAYS_OTHER;
}

/** 6: a call that is known by its position in the chunk alone. */
export const asSibling = (call: PendingCall): Candidate => ({ call, says: readSays(call, undefined, false), isBound: false });

/** Whether a delta goes on with the call that it speaks to. `idsChange`: as far as it is known. */
export function continuesCall(candidate: Candidate, delta: ToolCallReading, idsChange?: boolean): boolean {
  if (candidate.call.isOpen) return continuesOpen(candidate, delta, idsChange);
  // The arguments are whole: the delta repeats the call, or they were not the real ones.
  return delta.name === undefined ? continuesUnnamed(candidate, delta) : continuesNamed(candidate, delta, delta.name);
}

/** Whether a delta goes on with a call whose arguments are not whole yet. */
function continuesOpen({ call, says, isBound }: Candidate, delta: ToolCallReading, idsChange?: boolean): boolean {
  const { name, id } = delta;
  if (name === undefined || call.name === '') return says !== SAYS_OTHER || isBound || call.name !== ''; // 3
  const isSameName = name === call.name;
  switch (says) {
    case SAYS_SAME:
      return !isElsewhere(call, delta); // 1
    case SAYS_CONTINUES:
      return isBound || id === undefined || isSameName || call.arguments.isEmpty; // 2, 3, 7
    case SAYS_NOTHING:
      return isBound || isSameName; // 4, 7
    case SAYS_OTHER:
      if (!isBound || idsChange === false) return false; // 3, 2
      // The arguments of a new call begin with a brace: anything else goes on with an open document.
      if (!call.arguments.isEmpty && /^\s*[^\s{]/.test(delta.fragment)) return true; // 2
      // A second id on a call without arguments opens another call without arguments.
      if (!isSameName || hasNoArguments(delta)) return false; // 2
      // A brace goes on with an open document where a value is due.
      return call.arguments.isEmpty || /[:,[]\s*$/.test(call.arguments.text.slice(-16)); // 2
    default:
      return says satisfies never;
  }
}

function continuesUnnamed({ call, says, isBound }: Candidate, delta: ToolCallReading): boolean {
  if (delta.id === undefined || says === SAYS_SAME) return true; // 1, 4, 8
  if (says === SAYS_OTHER && call.header?.name !== undefined) return false; // 9
  if (hasNoArguments(delta)) return true; // 2, 3
  const isAddressed = isBound || says !== SAYS_OTHER;
  return isAddressed && (call.arguments.isEmptyObject || call.compare(delta) !== IS_OTHER); // 2, 3
}

function continuesNamed({ call, says, isBound }: Candidate, delta: ToolCallReading, name: string): boolean {
  if (says === SAYS_SAME && isElsewhere(call, delta)) return false; // 1
  if (delta.id === undefined && call.header?.id !== undefined) return false; // 9
  const compared = call.compare(delta);
  if (call.name === '') return compared !== IS_OTHER || call.arguments.isEmptyObject; // 2, 4, 7
  if (name === call.name) return repeatsName(call, says, isBound, compared, delta); // 1, 2, 4, 7
  const grows = name.startsWith(call.name);
  if (says === SAYS_OTHER) return false; // 2
  if (grows && compared === IS_BLANK && (isBound || delta.id === undefined)) return isBound || says === SAYS_CONTINUES; // 1, 2, 4, 7
  if (says === SAYS_SAME) return compared === IS_SAME; // 1
  if (says === SAYS_NOTHING) return grows && compared === IS_SAME; // 4
  return delta.id === undefined ? continuesName(call, compared) : isBound && compared === IS_BLANK; // 2, 4, 7
}

/** The name once more. */
function repeatsName(call: PendingCall, says: Says, isBound: boolean, compared: Compared, delta: ToolCallReading): boolean {
  const isTold = says <= SAYS_CONTINUES;
  if (compared !== IS_OTHER) return isTold || (says === SAYS_NOTHING && isBound);
  const { isEmptyObject, snapshot } = call.arguments;
  return isTold && (isEmptyObject || (snapshot && delta.snapshot !== undefined));
}

/** Another name without an id, from a server that begins calls with one: a piece, if the arguments leave room for it. */
function continuesName({ arguments: own, isNamedLate }: PendingCall, compared: Compared): boolean {
  if (compared === IS_SAME || own.isEmptyObject) return true;
  return compared === IS_BLANK && (own.snapshot || isNamedLate);
}

/** 1: servers that give one id to several calls give each its own index. */
const isElsewhere = ({ index }: PendingCall, delta: ToolCallReading): boolean =>
  delta.index !== undefined && index !== undefined && index !== delta.index;

export const hasNoArguments = ({ fragment, snapshot }: ToolCallReading): boolean =>
  snapshot === undefined && fragment.trim() === '';
