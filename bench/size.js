/** `npm run size`: exit code 1 when a bundle is larger than its limit. */
import { measureSizes } from './sizes.js';

const found = await measureSizes();
for (const { name, limit, bytes, gzipped } of found)
  console.log(`${name}: ${bytes} bytes, ${gzipped} gzipped, limit ${limit}${gzipped > limit ? ': TOO BIG' : ''}`);
process.exitCode = found.some(({ gzipped, limit }) => gzipped > limit) ? 1 : 0;
