import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { formatRouteTable } from '../../src/admin/openapi.ts';

const page = readFileSync(fileURLToPath(new URL('../../../../docs/admin-api.md', import.meta.url)), 'utf8');

test('docs/admin-api.md has the table of endpoints', () => {
  const table = /<!-- routes:[^>]*-->\n([\s\S]*?)\n?<!-- \/routes -->/.exec(page)?.[1];
  expect(table).toBe(formatRouteTable());
});

test('docs/admin-api.md names every setting of access', () => {
  for (const name of ['admin.key', 'SLUICE_ADMIN_KEY', 'Last-Event-ID', 'If-None-Match']) expect(page).toContain(name);
});
