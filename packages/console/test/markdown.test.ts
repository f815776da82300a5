import { describe, expect, test } from 'vitest';
import { type Block, type Inline, parseInline, parseMarkdown, readHref } from '../src/lib/markdown.ts';

/** Blocks in a short form. */
const show = (block: Block): unknown => {
  switch (block.type) {
    case 'paragraph':
      return ['p', ...block.content.map(showInline)];
    case 'heading':
      return [`h${block.level}`, ...block.content.map(showInline)];
    case 'code':
      return ['code', block.language, block.text];
    case 'quote':
      return ['quote', ...block.content.map(show)];
    case 'list':
      return [block.isOrdered ? 'ol' : 'ul', ...block.items.map((item) => item.map(showInline))];
    case 'rule':
      return ['hr'];
    default:
      return block satisfies never;
  }
};

const showInline = (part: Inline): unknown =>
  part.type === 'text' ? part.text : 'content' in part ? [part.type, ...part.content.map(showInline)] : [part.type, part.text];

test.each([
  { text: '', blocks: [] },
  {
    text: 'a\nb\n\nc',
    blocks: [
      ['p', 'a\nb'],
      ['p', 'c'],
    ],
  },
  { text: '## Title', blocks: [['h2', 'Title']] },
  { text: '#no title', blocks: [['p', '#no title']] },
  {
    text: '```js\nlet a;\n\n```\nb',
    blocks: [
      ['code', 'js', 'let a;\n'],
      ['p', 'b'],
    ],
  },
  { text: '```\ncut', blocks: [['code', '', 'cut']] },
  { text: '````\n```\n````', blocks: [['code', '', '```']] },
  { text: '> a\n> > b', blocks: [['quote', ['p', 'a'], ['quote', ['p', 'b']]]] },
  { text: '- a\n- b\n  more', blocks: [['ul', ['a'], ['b more']]] },
  { text: '1. a\n2) b', blocks: [['ol', ['a'], ['b']]] },
  { text: '---', blocks: [['hr']] },
  { text: 'a **b `c`** *d*', blocks: [['p', 'a ', ['strong', 'b ', ['code', 'c']], ' ', ['em', 'd']]] },
  { text: '2 * 3 * 4', blocks: [['p', '2 * 3 * 4']] },
  { text: '[a](https://x.example/y)', blocks: [['p', ['link', 'a']]] },
  { text: '<script>alert(1)</script>', blocks: [['p', '<script>alert(1)</script>']] },
  { text: '![a](https://x.example/i.png)', blocks: [['p', '![a](https://x.example/i.png)']] },
])('$text', ({ text, blocks }) => expect(parseMarkdown(text).map(show)).toEqual(blocks));

describe('links', () => {
  test.each([
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    ' javascript:alert(1)',
    'java\tscript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    '//evil.example',
    '/admin/v1/session',
    'blob:https://x/1',
    'https://',
  ])('%j is no link', (target) => {
    expect(readHref(target)).toBeUndefined();
    expect(parseInline(`[x](${target})`).every(({ type }) => type !== 'link')).toBe(true);
  });

  test.each(['https://x.example/a?b#c', 'HTTP://x.example/'])('%s is one', (target) => {
    expect(readHref(target)).toBe(new URL(target).href);
  });
});

test.each([
  '*'.repeat(20_000),
  '`'.repeat(20_000),
  '['.repeat(20_000),
  '> '.repeat(20_000),
  '[a]('.repeat(8000),
  '**a'.repeat(8000),
])('hostile text is read in linear time', (text) => {
  const measure = (): number => {
    const started = performance.now();
    parseMarkdown(text);
    return performance.now() - started;
  };
  // The best of three: a busy machine may interrupt one of them.
  expect(Math.min(measure(), measure(), measure())).toBeLessThan(1000);
});
