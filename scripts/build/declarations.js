/** Type declarations of a package: one file for each entry point, and one for what they share. */
import { isAbsolute, join } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { ROOT } from './packages.js';

/** Bundles the declarations of tsc (`out`) and resolves with the files: `[{ name: 'index.d.ts', text }]`. */
export async function bundleDeclarations({ folder }, entries) {
  const out = join(ROOT, folder, 'out');
  const input = Object.fromEntries(entries.map(({ module }) => [module, join(out, `${module}.d.ts`)]));
  const entryFiles = new Set(Object.values(input));
  const bundle = await rollup({
    input,
    external: (id) => !id.startsWith('.') && !isAbsolute(id),
    plugins: [dts()],
    preserveEntrySignatures: 'strict',
    onwarn: (warning) => {
      throw new Error(warning.message);
    },
  });
  const { output } = await bundle.generate({
    format: 'es',
    entryFileNames: '[name].d.ts',
    chunkFileNames: 'chunks/[name].d.ts',
    // One declaration for each class: a copy with private fields would be another type.
    manualChunks: (id) => (entryFiles.has(id) ? undefined : 'types'),
    minifyInternalExports: false,
  });
  await bundle.close();
  return output.map(({ fileName, code }) => ({ name: fileName, text: code }));
}
