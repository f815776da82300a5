import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitepress';

/** Written by stage.js. */
const { sidebar } = JSON.parse(readFileSync(new URL('../.cache/site.json', import.meta.url), 'utf8'));

const toAnchor = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');

export default defineConfig({
  title: 'Sluice',
  description: 'The gate between LLM protocols: repair, convert and route streams of OpenAI, Anthropic and Gemini.',
  lang: 'en',
  srcDir: '.cache/pages',
  outDir: 'dist',
  cacheDir: '.cache/vitepress',
  // The icon is inline, because a missing one is an error in the console of browsers.
  head: [['link', { rel: 'icon', href: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>' }]],
  lastUpdated: false,
  markdown: {
    // Braces at the end of a line are text, not attributes.
    attrs: { disable: true },
    // The usual colours have too little contrast.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    // Anchors as on GitHub, where the same pages are read.
    anchor: { slugify: toAnchor },
  },
  // fields.md has 5,700 lines of tables; the warning about its size is noise.
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: { searchOptions: { fuzzy: 0.1, prefix: true } } } },
    nav: [
      { text: 'Docs', link: '/' },
      { text: 'Error texts', link: '/errors/' },
      { text: 'Rules', link: '/rules/' },
      { text: 'API', link: '/reference/' },
    ],
    sidebar,
    outline: [2, 3],
  },
});
