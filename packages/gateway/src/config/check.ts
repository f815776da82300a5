/** Checks a pasted configuration in a worker thread, because a hostile text takes a parser of YAML seconds. */

import { Worker } from 'node:worker_threads';
import { findProgram } from '../http/program.ts';
import type { Validation } from './validate.ts';

/** What the thread gets. */
export interface CheckRequest {
  readonly text: string;
  /** Names of variables that count as set. */
  readonly variables: readonly string[];
}

/** Why a text could not be checked. */
export class CheckError extends Error {
  override readonly name = 'CheckError';
}

const MAX_CHECK_MS = 10_000;

const MAX_HEAP_MB = 256;

let isRunning = false;

/** Checks a text; one at a time. Rejects with a `CheckError`. */
export async function checkConfig(request: CheckRequest): Promise<Validation> {
  if (isRunning) throw new CheckError('another configuration is being checked; retry when it is done');
  isRunning = true;
  try {
    return await runCheck(request);
  } finally {
    isRunning = false;
  }
}

async function runCheck(workerData: CheckRequest): Promise<Validation> {
  const worker = new Worker(findProgram('config/check-worker.js'), {
    workerData,
    name: 'check-config',
    execArgv: [],
    // The text may name any variable, so the thread has none.
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Validation>((resolve, reject) => {
      timer = setTimeout(() => reject(new CheckError(TOO_LONG)), MAX_CHECK_MS);
      worker.once('message', resolve);
      worker.once('error', (error) => reject(new CheckError(`the check failed: ${error.message}`)));
      worker.once('exit', () => reject(new CheckError('the check ended without a result')));
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

const TOO_LONG = 'the check takes too long; use "sluice config check"';
