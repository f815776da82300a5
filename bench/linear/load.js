/** Loads what exists in TypeScript only: the recipes that complete sampled bodies, and the library's sources beside them. */
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = new URL('../../', import.meta.url);

const CODE = `
export { PROTOCOLS, routeOf } from './test/fields/protocols.ts';
export { withoutHoles } from './test/fields/probe.ts';
export { convertRequest, convertResponse, convertError, createStreamConverter, CodecError, PROTOCOLS as READERS } from './packages/core/src/index.ts';
export { CODECS, StreamAccumulator, convertResponseToStream, convertStreamToResponse } from './packages/core/src/engine/index.ts';
`;

/** Scripts find the declarations of the SDKs relative to themselves, so they are not bundled. */
const keepScripts = {
  name: 'keep-scripts',
  setup(bundler) {
    bundler.onResolve({ filter: /\/scripts\/fields\// }, ({ path, resolveDir }) => ({
      path: new URL(path, `file://${resolveDir}/`).href,
      external: true,
    }));
  },
};

export async function load() {
  const { outputFiles } = await build({
    stdin: { contents: CODE, resolveDir: fileURLToPath(ROOT), loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    write: false,
    plugins: [keepScripts],
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}
