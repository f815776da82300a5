import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { instrument } from './instrument.js';
import { ROOT, SUITES, sources } from './sources.js';

const local = (name) => fileURLToPath(new URL(name, import.meta.url));
const STAND_INS = { vitest: local('registry.js'), 'fast-check': local('quick-check.js') };
const isSuite = (file) => SUITES.some((suite) => file?.startsWith(ROOT + suite));

/** Tests get the stand-ins, the code under test all its mutants. */
const mutation = {
  name: 'mutation',
  enforce: 'pre',
  resolveId: (id, importer) => (isSuite(importer) ? STAND_INS[id] : undefined),
  transform(code, id) {
    const source = sources.find(({ file }) => ROOT + file === id);
    return source && { code: instrument(code, source.file, source.first).code, map: null };
  },
};

export default defineConfig({
  root: ROOT,
  plugins: [mutation],
  test: { include: ['scripts/mutation/shard.js'], pool: 'threads', testTimeout: 0, reporters: ['dot'] },
});
