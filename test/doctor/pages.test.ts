import { readdirSync } from 'node:fs';
import { RULES, type RuleId } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../packages/gateway/src/cli/commands.ts';
import { renderCli } from './cli-page.ts';
import { renderProviders } from './providers-page.ts';
import { pageName, renderIndex, renderRule } from './rule-page.ts';
import { scanRecordings } from './scan.ts';

const docs = '../../docs';

const rules = Object.keys(RULES) as RuleId[];

// These pages are written by this file, and held by it: npm run docs.
test('docs/cli.md matches the help', async () => {
  await expect(renderCli(COMMANDS)).toMatchFileSnapshot(`${docs}/cli.md`);
});

describe('pages generated from recordings', () => {
  const scanned = scanRecordings();

  test('docs/providers.md', async () => {
    await expect(renderProviders(scanned)).toMatchFileSnapshot(`${docs}/providers.md`);
  });

  test.each(rules)('docs/rules: %s', async (rule) => {
    await expect(renderRule(rule, scanned)).toMatchFileSnapshot(`${docs}/rules/${pageName(rule)}`);
  });

  test('docs/rules/README.md lists them, and there is no other page', async () => {
    await expect(renderIndex()).toMatchFileSnapshot(`${docs}/rules/README.md`);
    const pages = readdirSync(new URL(`${docs}/rules`, import.meta.url)).toSorted();
    expect(pages).toEqual([...rules.map(pageName), 'README.md'].toSorted());
  });
});
