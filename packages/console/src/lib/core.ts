/** The part of `@sluice/core` that reads responses. Loaded when it is first needed: it is larger than the rest of the console. */

import { PROTOCOLS } from '@sluice/core';
import { StreamAccumulator } from '@sluice/core/engine';

/** Reads a response of a protocol as it arrives. */
export const createReader = (protocol: string): StreamAccumulator =>
  new StreamAccumulator({ protocol: Object.values(PROTOCOLS).filter(({ id }) => id === protocol) });
