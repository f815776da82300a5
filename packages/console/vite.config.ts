import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: local('.'),
  base: '/console/',
  logLevel: 'warn',
  resolve: {
    alias: [
      // Pure modules that the console shares with the gateway; types are erased.
      { find: /^@gateway\/(.+)$/, replacement: `${local('../gateway/src')}/$1.ts` },
      { find: '@sluice/lab/text', replacement: local('../lab/src/text.ts') },
      // The core is loaded by the inspector only.
      { find: /^@sluice\/core$/, replacement: local('../core/src/index.ts') },
      { find: /^@sluice\/core\/engine$/, replacement: local('../core/src/engine/index.ts') },
      { find: /^@sluice\/core\/internal$/, replacement: local('../core/src/internal.ts') },
    ],
  },
  build: {
    target: 'es2022',
    // The gateway serves a list of names, without folders.
    assetsDir: '',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    emptyOutDir: true,
    // Apart, so that the size of the console can be told without it.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'core', test: /packages\/core\/src\// }] } } },
  },
});
