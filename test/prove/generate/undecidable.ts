import { isDeepStrictEqual } from 'node:util';
import type { GeneratedStream, Step } from './tool-calls.ts';

/** A pattern of the wire that two different lists of calls would write in the same way. */
export interface Undecidable {
  name: string;
  /** What the two readings are, and which one is taken. docs/tool-call-identity.md has the same list. */
  reason: string;
  applies(stream: GeneratedStream): boolean;
}

const isBlankId = (id: unknown): boolean => typeof id !== 'string' || id.trim() === '';
const argumentsOf = ({ arguments: value }: Step): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value);
const indexOf = ({ index }: Step): number | undefined => (index === undefined ? undefined : Number(index));

/** A delta together with what came before it. */
interface Moment {
  step: Step;
  chunk: readonly Step[];
  /** Earlier deltas of the same call. */
  own: readonly Step[];
  /** All earlier deltas. */
  before: readonly Step[];
  /** The last earlier chunk with more than one entry. */
  batch: readonly Step[] | undefined;
  stream: GeneratedStream;
}

function momentsOf(stream: GeneratedStream): Moment[] {
  const moments: Moment[] = [];
  const before: Step[] = [];
  let batch: readonly Step[] | undefined;
  for (const chunk of stream.chunks) {
    for (const step of chunk) {
      const own = before.filter(({ call }) => call === step.call);
      moments.push({ step, chunk, own, before: [...before], batch, stream });
      before.push(step);
    }
    if (chunk.length > 1) batch = chunk;
  }
  return moments;
}

const isOpener = ({ own }: Moment): boolean => own.length === 0;
const isBare = (steps: readonly Step[]): boolean => steps.every((step) => argumentsOf(step).trim() === '');

/** The text so far, as the server meant it. */
function isWhole(steps: readonly Step[], { truth }: GeneratedStream): boolean {
  const call = steps[0]?.call ?? -1;
  const meant = truth[call]?.arguments;
  const texts = steps.map(argumentsOf).filter((text) => text !== '');
  if (texts.length === 0) return false;
  const joined = texts.join('');
  return [joined, joined.replace(/^\{\}/, ''), texts.at(-1)].some((text) => text === meant || same(text, meant));
}

function same(a: string | undefined, b: string | undefined): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(a ?? ''), JSON.parse(b ?? ''));
  } catch {
    return false;
  }
}

const nameOf = (steps: readonly Step[]): string =>
  steps.reduce((name, step) => {
    const piece = typeof step.name === 'string' ? step.name : '';
    return piece.startsWith(name) ? piece : name + piece;
  }, '');

/** The call that a delta would go to if it were a continuation: that of its index, or the latest one. */
function callBefore({ step, before }: Moment): readonly Step[] {
  const index = indexOf(step);
  const bound = index === undefined ? undefined : before.findLast((one) => indexOf(one) === index);
  const call = (bound ?? before.at(-1))?.call;
  return before.filter((one) => one.call === call);
}

/** Nothing but the order tells that the delta is not of the call before it. */
const sharesPlace = (moment: Moment): boolean => {
  const index = indexOf(moment.step);
  return index === undefined || moment.before.some((one) => indexOf(one) === index && one.call !== moment.step.call);
};

const hasKnownId = ({ step, before }: Moment): boolean => !isBlankId(step.id) && before.some(({ id }) => id === step.id);
const hasNewId = (moment: Moment): boolean => !isBlankId(moment.step.id) && !hasKnownId(moment);
const hasName = ({ step }: Moment): boolean => typeof step.name === 'string';

/** The chunk has an entry for each call of the last chunk with several entries, in the same order. */
const isAligned = ({ chunk, batch }: Moment): boolean =>
  batch !== undefined && batch.length === chunk.length && chunk.every(({ call }, i) => call === batch[i]?.call);

const some =
  (test: (moment: Moment) => boolean) =>
  (stream: GeneratedStream): boolean =>
    momentsOf(stream).some(test);

export const UNDECIDABLE: readonly Undecidable[] = [
  {
    name: 'overlapping calls without identity',
    reason:
      'A fragment has no id and no index of its own, and another call was touched since: it could continue either. It goes to the call bound to its index, else to the latest one.',
    applies: some((moment) => {
      if (isOpener(moment) || hasKnownId(moment) || isAligned(moment) || !sharesPlace(moment)) return false;
      return moment.before.at(-1)?.call !== moment.step.call;
    }),
  },
  {
    name: 'a name after a call without arguments',
    reason:
      'A delta with a name and without an id follows a call on the same index (or none) that has no arguments yet: a repeated name or the next piece of it, or a second call after one without arguments. It is the same call; without an index, only if the name is the same or the call began with an id.',
    applies: some((moment) => isOpener(moment) && hasName(moment) && isBlankId(moment.step.id) && followsBare(moment)),
  },
  {
    name: 'as many fragments of one call as the last chunk had calls',
    reason:
      'A chunk has as many entries as the last one with several, and nothing distinguishes them: one for each of those calls, or several fragments of one. They go by position.',
    applies: some((moment) => {
      const { chunk, batch } = moment;
      if (chunk.length < 2 || batch?.length !== chunk.length || isAligned(moment)) return false;
      return (
        sharesPlace(moment) &&
        chunk.every(({ id }) => isBlankId(id)) &&
        new Set(batch.map(({ call }) => call)).size === batch.length
      );
    }),
  },
  {
    name: 'a new id with another name after a call without arguments',
    reason:
      'On one index, a call without arguments is followed by another id and another name, and the id changes again after that: a name in pieces under changing ids, or two calls. It is one call; if the id does not change again, they are two.',
    applies: some((moment) => {
      if (!isOpener(moment) || !hasNewId(moment) || !hasName(moment) || !followsBare(moment)) return false;
      return indexOf(moment.step) !== undefined && hasChangingIds(moment.stream);
    }),
  },
  {
    name: 'a new id with the name and a brace in an open document',
    reason:
      'The document of a call is open, and a delta on its index has another id, the same name and arguments that begin with a brace: a changing id, or a second call. It is the same call where a value is due, otherwise a second one.',
    applies: some((moment) => {
      const { step, own } = moment;
      if (!hasNewId(moment) || indexOf(step) === undefined || !argumentsOf(step).trimStart().startsWith('{')) return false;
      const before = callBefore(moment);
      if (nameOf(before) !== step.name || isBare(before)) return false;
      const isDue = /[:,[]\s*$/.test(before.map(argumentsOf).join(''));
      return isOpener(moment) ? isDue && sharesPlace(moment) : !isDue && own.length > 0;
    }),
  },
  {
    name: 'a new id with the name and arguments after a call without arguments',
    reason:
      'The id of a call changes and the name is repeated, or a second call of the same name follows one without arguments on the same index. It is the same call.',
    applies: some((moment) => {
      if (!isOpener(moment) || !hasNewId(moment) || !hasName(moment) || !followsBare(moment)) return false;
      return indexOf(moment.step) !== undefined && nameOf(callBefore(moment)) === moment.step.name;
    }),
  },
  {
    name: 'a call whose name comes late after a call without arguments',
    reason:
      'A delta without a name follows a call that has no arguments yet: fragments of that call with a changing id or a drifting index, or a call whose name comes late. It is the same call.',
    applies: some(
      (moment) =>
        isOpener(moment) &&
        !hasName(moment) &&
        isBare(callBefore(moment)) &&
        nameOf(callBefore(moment)) !== '' &&
        (sharesPlace(moment) || isBlankId(moment.step.id)),
    ),
  },
  {
    name: 'an index that other calls had, after a call without arguments',
    reason:
      'A call began without an index and has no arguments; the index on what follows belongs to the call before. It goes to the call that the index is bound to.',
    applies: some((moment) => {
      const bound = callBefore(moment);
      return (
        !isOpener(moment) &&
        indexOf(moment.step) !== undefined &&
        sharesPlace(moment) &&
        !hasKnownId(moment) &&
        bound[0]?.call !== moment.step.call &&
        isBare(bound)
      );
    }),
  },
  {
    name: 'a new id with a piece of the name, and nothing after it',
    reason:
      'A call without arguments is followed on the same index by another id and another name: a changing id and a piece of the name, or a second call. They are two calls, unless the next delta has yet another id and no name.',
    applies: some(({ step, own, stream }) => {
      if (own.length === 0 || typeof step.name !== 'string' || isBlankId(step.id) || own.some(({ id }) => id === step.id))
        return false;
      if (own.some(({ id }, i) => i > 0 && typeof own[i]?.name !== 'string' && !isBlankId(id))) return false;
      const steps = stream.chunks.flat().filter(({ call }) => call === step.call);
      const rest = steps.slice(own.length + 1);
      const next = rest.find(({ name }) => typeof name !== 'string');
      return (
        nameOf(own) !== step.name &&
        nameOf(own) !== '' &&
        !isBlankId(own[0]?.id) &&
        (next === undefined || isWhole([...own, step], stream))
      );
    }),
  },
  {
    name: 'a piece of the name after whole arguments',
    reason: 'The rest of a name follows whole arguments, or a second call without arguments does. It is a second call.',
    applies: some(({ step, own, stream }) => {
      if (typeof step.name !== 'string' || argumentsOf(step).trim() !== '' || !isWhole(own, stream)) return false;
      const name = nameOf(own);
      return name !== '' && !step.name.startsWith(name);
    }),
  },
  {
    name: 'a new id with the name and no arguments',
    reason:
      'The header is repeated with another id, on a call that has whole arguments or none: a changing id, or a second call without arguments. It is a second call, unless ids were seen to change before.',
    applies: some((moment) => {
      const { step, own, stream } = moment;
      if (own.length === 0 || !hasNewId(moment) || nameOf(own) !== step.name || argumentsOf(step).trim() !== '') return false;
      return !isBlankId(own[0]?.id) && (isBare(own) || isWhole(own, stream));
    }),
  },
  {
    name: 'a name again after whole arguments, and nothing after it',
    reason:
      'A header without an id and without arguments follows whole arguments on the same index: repeated, or a second call without arguments. It is the same call.',
    applies: some((moment) => {
      const { step, stream } = moment;
      const before = callBefore(moment);
      if (!isOpener(moment) || before.length === 0 || !sharesPlace(moment)) return false;
      if (hasNewId(moment) && !hasChangingIds(stream)) return false;
      return typeof step.name === 'string' && step.name.startsWith(nameOf(before)) && stream.truth[step.call]?.arguments === '{}';
    }),
  },
  {
    name: 'arguments after an empty object',
    reason:
      'A call has the arguments {}, and a delta without a name follows on its index: the real arguments after an empty object, or those of a call whose name comes late. It is the same call.',
    applies: some((moment) => {
      const before = callBefore(moment);
      if (!isOpener(moment) || before.length === 0 || hasName(moment) || !sharesPlace(moment)) return false;
      return argumentsOf(moment.step).trim() !== '' && moment.stream.truth[before[0]?.call ?? -1]?.arguments === '{}';
    }),
  },
  {
    name: 'the same call twice',
    reason:
      'A call is followed on the same index by one with the same name and the same arguments, and no new id: sent again, or called twice. It is one call.',
    applies: some((moment) => {
      const { step, stream } = moment;
      const before = callBefore(moment);
      const [one, two] = [stream.truth[before[0]?.call ?? -1], stream.truth[step.call]];
      if (!isOpener(moment) || !one || !two || hasNewId(moment) || !sharesPlace(moment)) return false;
      return one.name === two.name && same(one.arguments, two.arguments);
    }),
  },
];

/** Whether some call has more than one id. */
const hasChangingIds = ({ chunks, truth }: GeneratedStream): boolean =>
  truth.some((_, call) => {
    const ids = chunks.flat().flatMap((step) => (step.call === call && !isBlankId(step.id) ? [step.id] : []));
    return new Set(ids).size > 1;
  });

function followsBare(moment: Moment): boolean {
  const before = callBefore(moment);
  return before.length > 0 && sharesPlace(moment) && isBare(before);
}

export const undecidable = (stream: GeneratedStream): Undecidable | undefined => UNDECIDABLE.find((one) => one.applies(stream));
