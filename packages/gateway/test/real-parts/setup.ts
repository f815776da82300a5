import { afterAll, afterEach } from 'vitest';
import { cleanFile, cleanTest } from './cleanups.ts';

// Vitest runs this for every test file.
afterEach(cleanTest);
afterAll(cleanFile);
