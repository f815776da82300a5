import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { ConfigDocument } from '../../src/config/document.ts';
import type { Path, Problem } from '../../src/config/problems.ts';

// Excerpts of a file have the names of settings, and never a secret.

const FILE = 'sluice.yaml';

/** A configuration with a secret wherever one can be, also by mistake. */
const buildConfig = (secret: string): object => {
  const shared = { 'x-team-9': secret, authorization: `Bearer ${secret}` };
  return {
    listen: { host: '127.0.0.1', port: 70_000, tls: { cert: 'a.pem', key: 'b.pem' } },
    admin: { key: secret },
    metrics: { key: secret },
    auth: { keys: [{ name: 'alice', key: secret, tags: ['team=a'] }, secret] },
    store: `postgres://sluice:${secret}@127.0.0.1/db`,
    limits_store: { url: `redis://:${secret}@127.0.0.1`, prefix: secret },
    budgets: [{ tag: 'team=a', limit: secret }],
    providers: {
      mine: {
        protocol: 'openai-chat',
        base_url: 'http://127.0.0.1:8000/v1',
        api_key: secret,
        organization: secret,
        headers: shared,
      },
      two: { api_keys: [secret, secret], proxy: `http://user:${secret}@127.0.0.1`, headers: shared, api_kye: secret },
    },
    misspelt_section: secret,
  };
};

/** The paths of all maps, lists and values. */
const listPaths = (value: unknown, path: Path = []): Path[] => {
  if (Array.isArray(value)) return [path, ...value.flatMap((item, at) => listPaths(item, [...path, at]))];
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, item]) => listPaths(item, [...path, key]))];
};

const STYLES = fc.record({
  collectionStyle: fc.constantFrom('block', 'flow', 'any'),
  defaultStringType: fc.constantFrom('PLAIN', 'QUOTE_SINGLE', 'QUOTE_DOUBLE', 'BLOCK_LITERAL', 'BLOCK_FOLDED'),
  defaultKeyType: fc.constantFrom('PLAIN', 'QUOTE_SINGLE', 'QUOTE_DOUBLE'),
  indent: fc.constantFrom(1, 2, 4),
  lineWidth: fc.constant(0),
} as const);

const SECRET = fc.stringMatching(/^[A-Za-z0-9]{6}[A-Za-z0-9+/_.~-]{10,24}[A-Za-z0-9]$/);

const FILES = fc
  .record({ secret: SECRET, style: fc.option(STYLES), isCommented: fc.boolean() })
  .map(({ secret, style, isCommented }) => {
    const config = buildConfig(secret);
    const text = style === null ? JSON.stringify(config, null, 2) : stringify(config, style);
    const isFlow = style === null || style.defaultStringType.startsWith('BLOCK');
    return { secret, config, text: isCommented && !isFlow ? text.replace(/(?<=: \S+)$/gm, ` # ${secret}`) : text };
  });

/** Parts of a secret count, too. */
const MIN_PART = 6;

function expectHidden(secret: string, shown: string): void {
  for (let at = 0; at + MIN_PART <= secret.length; at++) expect(shown).not.toContain(secret.slice(at, at + MIN_PART));
}

const read = (text: string): ConfigDocument => new ConfigDocument(FILE, text, {});

const listExcerpts = (problems: readonly Problem[]): string =>
  problems.map(({ message, place }) => `${message}\n${place?.excerpt}`).join('\n');

const listProblems = (document: ConfigDocument, paths: readonly Path[]): Problem[] =>
  paths.flatMap((path) => [document.problem(path, '', 'key'), document.problem(path, '')]);

describe('excerpts of any file', () => {
  test('have every name and no secret', () => {
    fc.assert(
      fc.property(FILES, ({ secret, config, text }) => {
        const document = read(text);
        expect(document.syntax).toEqual([]);
        const paths = listPaths(config);
        expectHidden(secret, listExcerpts(listProblems(document, paths)));
        for (const path of paths) {
          const name = path.at(-1);
          if (typeof name === 'string') expect(document.problem(path, '', 'key').place?.excerpt).toContain(name);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('have no secret when the file is broken anywhere', () => {
    const damage = fc.record({
      at: fc.nat(),
      removed: fc.nat(3),
      added: fc.constantFrom(
        '',
        ':',
        ': ',
        '\n',
        '\n  ',
        '"',
        "'",
        '{',
        '}',
        '[',
        ']',
        ',',
        '|',
        '>',
        '&',
        '*',
        '#',
        '? ',
        '- ',
        '\t',
        '%',
        '!',
        '`',
      ),
    });
    fc.assert(
      fc.property(FILES, fc.array(damage, { minLength: 1, maxLength: 3 }), ({ secret, config, text }, damages) => {
        const broken = damages.reduce((rest, { at, removed, added }) => {
          const start = at % rest.length;
          return rest.slice(0, start) + added + rest.slice(start + removed);
        }, text);
        const document = read(broken);
        expectHidden(
          secret,
          listExcerpts([...document.syntax, ...document.missing, ...listProblems(document, listPaths(config))]),
        );
      }),
      { numRuns: 1500 },
    );
  });
});

describe('an excerpt shows', () => {
  const show = (text: string, path: Path): string | undefined => {
    const document = read(text);
    return (document.syntax[0] ?? document.problem(path, '')).place?.excerpt.split('\n')[0]?.replace(/^ *\d+ \| /, '');
  };

  test.each<[what: string, text: string, path: Path, line: string]>([
    ['names in a list of maps', 'budgets:\n  - { tag: a, limit: 100 }', ['budgets', 0, 'limit'], '  - { tag: ***, limit: *** }'],
    ['the key of a reference', 'admin:\n  key: env:MASTER_KEY', ['admin', 'key'], '  key: env:MASTER_KEY'],
    ['a reference in quotes', 'admin: { "key": "env:MASTER_KEY" }', ['admin', 'key'], 'admin: { "key": "env:MASTER_KEY" }'],
    [
      'a path of a secret',
      "admin: { key: 'file:/run/secrets/key' }",
      ['admin', 'key'],
      "admin: { key: 'file:/run/secrets/key' }",
    ],
    [
      'a reference in a text',
      `providers:\n  a:\n    headers: { x-a: 'Token \${NAME} tail' }`,
      ['providers', 'a', 'headers', 'x-a'],
      `    headers: { x-a: ***\${NAME}*** }`,
    ],
    [
      'names of headers',
      'providers: { a: { headers: { x-b3-id: secret } } }',
      ['providers', 'a', 'headers', 'x-b3-id'],
      'providers: { a: { headers: { x-b3-id: *** } } }',
    ],
    ['a misspelt name', 'listen: { prot: secret }', ['listen', 'prot'], 'listen: { prot: *** }'],
    ['no key that has no value', 'auth: { keys: { hunter, name: a } }', ['auth', 'keys'], 'auth: { keys: { ***, name: *** } }'],
    ['no text in the place of a map', 'admin: { key: { hunter: two } }', ['admin', 'key'], 'admin: { key: { ***: *** } }'],
    ['names of a broken file that are settings', 'admin: { key: hunter: two', ['admin'], 'admin: { key: ***: ***'],
    ['no name of a broken file that is none', 'admin: { "hunter": x, key: [ }', ['admin'], 'admin: { ***: ***, key: [ }'],
    [
      'no rest of a broken text in the place of a provider',
      'providers:\n  a: "Bea"\n  rer hunter2", y: `z',
      ['providers'],
      '  ***: ***',
    ],
    ['no escaped name', 'admin: { "hun\\u0074er": x }', ['admin'], 'admin: { ***: *** }'],
    ['the merge key', 'a: &a { key: hunter }\nadmin: { <<: *a, kye: x }', ['admin', 'kye'], 'admin: { <<: ***, kye: *** }'],
  ])('%s', (_, text, path, line) => expect(show(text, path)).toBe(line));
});
