import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkLinks } from '../site/links.js';
import { SEARCH_OPTIONS } from '../site/search.js';

// The parts of the site that need no build; `npm run site:check` opens the built pages.

describe('the check of links, by which "npm run site" fails', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-site-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (name: string, html: string): void => {
    writeFileSync(join(folder, `${name}.html`), html);
    writeFileSync(join(folder, `${name}.md`), '');
  };

  test.each([
    ['<a href="/b.html">', []],
    ['<a href="b.html#here">', []],
    ['<a href="https://example.com/x">', []],
    ['<a href="/c.html">', ['a.html: /c.html: no such page']],
    ['<a href="/b.html#there">', ['a.html: /b.html#there: no such anchor']],
    ['<a href="#there">', ['a.html: #there: no such anchor']],
    ['<img src="https://example.com/x.png">', ['a.html: loads https://example.com/x.png']],
  ])('%s: %j', (html, problems) => {
    write('a', html);
    write('b', '<h2 id="here">');
    expect(checkLinks(folder)).toEqual(problems);
  });
});

describe('the ranking of search results', () => {
  const order = [
    '/limits.html#budgets',
    '/rules/sse-bom.html',
    '/config.html#limits',
    '/architecture.html',
    '/reference/index.html',
  ];

  test('guides come before references, and references before pages for those who change the code', () => {
    const boosts = order.map((id) => SEARCH_OPTIONS.boostDocument(id));
    expect(boosts).toEqual(boosts.toSorted((a, b) => b - a));
    expect(new Set(boosts).size).toBe(order.length);
    expect(SEARCH_OPTIONS.boostDocument('/fields.html#x')).toBe(SEARCH_OPTIONS.boostDocument('/reference/x.html'));
  });

  test('the function uses nothing outside of itself, because the site has it as text', () => {
    const text = SEARCH_OPTIONS.boostDocument.toString();
    const { boostDocument } = new Function(`return { ${text} }`)();
    expect(order.map(boostDocument)).toEqual(order.map(SEARCH_OPTIONS.boostDocument));
  });
});
