import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../../test/needs/needs.ts';
import { tried } from '../../../../test/tries.ts';
import { assertBuilt } from '../store/processes.ts';

// The whole proof has 10,000: npm run nightly -- --only clients

const PROOF = fileURLToPath(new URL('../../../../bench/nightly/clients.js', import.meta.url));
const CLIENTS = 300;

describe('clients with a stream each', needs('linux', 'build'), () => {
  beforeAll(assertBuilt);

  test('are served, do not keep others waiting, and leave nothing behind', { timeout: 240_000 }, async () => {
    tried(CLIENTS);
    // Rejects with what is wrong.
    const { stdout } = await promisify(execFile)(process.execPath, [PROOF, '--clients', String(CLIENTS)]);
    expect(stdout).toContain(`${CLIENTS} clients with a stream each`);
  });
});
