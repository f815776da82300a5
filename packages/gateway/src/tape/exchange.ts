import type { ProtocolId } from '@sluice/core';
import type { Ending, Read } from './format.ts';

/** One exchange of a tape, wherever it was read from. Bodies are read when they are wanted. */
export interface Exchange {
  /** Its folder or file, unique on the tape. */
  name: string;
  /** undefined for paths that Sluice does not know. */
  protocol: ProtocolId | undefined;
  model: string;
  /** A stream was asked for. */
  isStream: boolean;
  ending: Ending;
  request: { method: string; path: string; readBody(): Promise<Uint8Array> };
  /** undefined when nobody answered. */
  response: Answer | undefined;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** Empty where the reads are not known. */
  reads: readonly Read[];
  readBody(): Promise<Uint8Array>;
}

export const NO_BODY = async (): Promise<Uint8Array> => new Uint8Array();
