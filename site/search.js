/** How the search of the site ranks pages. VitePress writes the function into the page as text, so it may use nothing outside of itself. */
export const SEARCH_OPTIONS = {
  fuzzy: 0.1,
  prefix: true,
  boost: { title: 4, text: 2, titles: 1 },
  boostDocument(id) {
    const page = id.replace(/^\/|\.html.*$|#.*$/g, '');
    // Guides before references, and references before pages for those who change the code.
    if (/^(reference\/|fields$)/.test(page)) return 0.02;
    if (/^(conformance|mutation|seed-004|clients-tested|pitfalls|architecture|adding|canonical|dependencies)/.test(page))
      return 0.15;
    if (/^(cli|config|api|providers|admin-api)$/.test(page)) return 0.25;
    // adapters.md has tables of all rules.
    if (/^(rules\/|adapters$)/.test(page)) return 0.6;
    return 1;
  },
};

/** What people search for, and the page that must come first. `site/check.js` tries them on the built index. */
export const EXPECTED = {
  budget: 'limits',
  'rate limit': 'limits',
  'client key': 'keys',
  'claude code': 'clients',
  cursor: 'clients',
  codex: 'clients',
  'broken stream': 'start-broken-stream',
  createRepairFetch: 'fetch',
  fallback: 'reliability',
  litellm: 'import',
  postgresql: 'scale',
  https: 'network',
  proxy: 'network',
  docker: 'network',
  cost: 'usage',
  price: 'prices',
  cache: 'cache',
  'idempotency-key': 'idempotency',
  doctor: 'doctor',
  record: 'tapes',
  systemd: 'deploy',
  install: 'install',
  'Unexpected end of JSON input': 'errors/unexpected-end-of-json-input',
  'tool-index-reused': 'rules/chat-tool-index-reused',
};
