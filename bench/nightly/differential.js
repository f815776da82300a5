/** 100,000 mutated streams through the official SDKs, the AI SDK and Sluice. A failure names the seed of its stream. */
import { runTestFiles } from './test-files.js';

const STREAMS = '100000';

const seed = process.env['SLUICE_SEED'] ?? String(Math.floor(Math.random() * 2 ** 30));

console.log(`seed ${seed}`);
runTestFiles({
  having: "'SLUICE_MUTATED_STREAMS'",
  env: { SLUICE_MUTATED_STREAMS: process.env['SLUICE_MUTATED_STREAMS'] ?? STREAMS, SLUICE_SEED: seed },
  kind: `with ${process.env['SLUICE_MUTATED_STREAMS'] ?? STREAMS} mutated streams from seed ${seed}`,
});
