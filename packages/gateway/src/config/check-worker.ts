/** The worker thread that checks a pasted configuration. Its environment is empty. */

import { parentPort, workerData } from 'node:worker_threads';
import type { CheckRequest } from './check.ts';
import { validateConfig } from './validate.ts';

const { text, variables } = workerData as CheckRequest; // check.ts starts this thread, and nothing else does
parentPort?.postMessage(validateConfig(text, variables));
