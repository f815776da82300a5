import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PACKAGES, readManifest } from '../../scripts/build/packages.js';
import { buildSbom } from '../../scripts/sbom.js';

const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'));

describe.each(PACKAGES)('the SBOM of $name', ({ folder }) => {
  const manifest = readManifest(folder);
  const sbom = buildSbom(manifest, lock, folder);
  const refs = sbom.components.map((component) => component['bom-ref']);

  test('lists every dependency of the manifest in its version, and no tool', () => {
    const direct = Object.entries<string>(manifest.dependencies ?? {}).map(
      ([name, version]) => `pkg:npm/${name.replace('@', '%40')}@${version}`,
    );
    for (const ref of direct) expect(refs).toContain(ref);
    expect(refs.filter((ref) => /vitest|biome|sluice\/lab/.test(ref))).toEqual([]);
  });

  test('every component has a licence, and all but those of this repository a hash', () => {
    for (const { name, version, licenses, hashes } of sbom.components) {
      expect([name, version, licenses]).not.toContain(undefined);
      if (!name.startsWith('@sluice/')) expect(hashes?.[0]?.content, name).toMatch(/^[0-9a-f]{40,128}$/);
    }
  });

  test('every reference leads to a component', () => {
    const known = new Set([sbom.metadata.component['bom-ref'], ...refs]);
    expect(sbom.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !known.has(ref))).toEqual([]);
    expect(sbom.dependencies).toHaveLength(known.size);
  });
});
