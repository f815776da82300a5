import { CodecError } from '@sluice/core';
import { findMutation, MUTATIONS, type Mutation, SHORT_NAMES } from '../mutate/index.ts';
import { didYouMean } from '../text.ts';

/** What can go wrong with a response besides its content. */
export const FAULTS = {
  status: { value: 'CODE', least: 400, most: 599, title: "error with this status, in the client's protocol" },
  page: { value: 'CODE', least: 200, most: 599, title: 'HTML page with this status, as proxies send' },
  delay: { value: 'MS', least: 0, most: 600_000, title: 'delay before the response' },
  slow: { value: 'MS', least: 0, most: 600_000, title: 'delay before every chunk' },
  cut: { value: 'BYTES', least: 0, most: 2 ** 31, title: 'end the body cleanly after this many bytes' },
  stall: { value: 'BYTES', least: 0, most: 2 ** 31, title: 'stop sending after this many bytes and keep the connection open' },
  reset: { value: 'BYTES', least: 0, most: 2 ** 31, title: 'reset the connection after this many bytes' },
  times: { value: 'N', least: 1, most: 1_000_000, title: 'apply the fault to the first N requests only' },
} as const satisfies Record<string, { value: string; least: number; most: number; title: string }>;

type FaultName = keyof typeof FAULTS;

/** The faults of a response. */
export interface Faults extends Partial<Readonly<Record<FaultName, number>>> {
  /** The faults as the client wrote them. */
  readonly text: string;
  /** Dialects to rewrite the stream in. */
  readonly mutations: readonly Mutation[];
}

/** A response without faults. */
export const NO_FAULTS: Faults = { text: '', mutations: [] };

/** An unknown fault, or one whose number is out of range. */
export class FaultError extends CodecError {
  constructor(message: string) {
    super({ code: 'INVALID_INPUT', message, http_status: 400 });
  }
}

/** Parses `cut=300`, `status=429,times=2`, `sse/crlf,slow=20`; `none` is no fault. */
export function parseFaults(text: string): Faults {
  const numbers: Partial<Record<FaultName, number>> = {};
  const mutations: Mutation[] = [];
  for (const word of text.split(',').map((part) => part.trim())) {
    const [name = '', value] = word.split('=', 2);
    if (word === '' || word === 'none') continue;
    const mutation = findMutation(word);
    if (mutation) mutations.push(mutation);
    else if (isFaultName(name)) numbers[name] = readNumber(name, value);
    else throw unknownFault(name);
  }
  return { text, mutations, ...numbers };
}

const isFaultName = (name: string): name is FaultName => Object.hasOwn(FAULTS, name);

function readNumber(name: FaultName, value: string | undefined): number {
  const { least, most, value: shown } = FAULTS[name];
  const number = value === undefined && least === 0 ? 0 : Number(value);
  if (/^\d+$/.test(value ?? '0') && number >= least && number <= most) return number;
  throw new FaultError(`fault "${name}" must be a number from ${least} to ${most}, for example ${name}=${shown}`);
}

function unknownFault(name: string): FaultError {
  const known = [...Object.keys(FAULTS), ...SHORT_NAMES.keys(), ...MUTATIONS.map(({ id }) => id)];
  return new FaultError(`unknown fault "${name.slice(0, 80)}"${didYouMean(name, known)}`);
}

/** Splits a model name at its last "!", which is followed by the requested fault: `gpt-5!cut=300`. */
export function splitModel(model: string): { model: string; fault: string | undefined } {
  const at = model.lastIndexOf('!');
  return at < 0 ? { model, fault: undefined } : { model: model.slice(0, at), fault: model.slice(at + 1) };
}

/** Whether the client gets no response, or an incomplete one. */
export const isBreaking = ({ status, page, cut, stall, reset }: Faults): boolean =>
  [status, page, cut, stall, reset].some((fault) => fault !== undefined);
