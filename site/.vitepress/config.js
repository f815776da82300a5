import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitepress';
import { toAnchor } from '../anchors.js';
import { SEARCH_OPTIONS } from '../search.js';

/** Written by stage.js. */
const { sidebar } = JSON.parse(readFileSync(new URL('../.cache/site.json', import.meta.url), 'utf8'));

export default defineConfig({
  title: 'Sluice',
  description:
    'A gateway and a library between LLM protocols: repair, convert and route streams of OpenAI, Anthropic and Gemini.',
  lang: 'en',
  srcDir: '.cache/pages',
  outDir: 'dist',
  cacheDir: '.cache/vitepress',
  head: [['link', { rel: 'icon', href: '/logo.svg' }]],
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
    logo: '/logo.svg',
    search: { provider: 'local', options: { miniSearch: { searchOptions: SEARCH_OPTIONS } } },
    nav: [
      { text: 'Docs', link: '/contents' },
      { text: 'Error texts', link: '/errors/' },
      { text: 'Rules', link: '/rules/' },
      { text: 'API', link: '/reference/' },
    ],
    sidebar,
    outline: [2, 3],
  },
});
