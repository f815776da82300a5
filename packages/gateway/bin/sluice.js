#!/usr/bin/env node
// Committed, so that npm can link the command before the first build.
import { existsSync, readFileSync } from 'node:fs';

if (isCheckout()) {
  const { ensureBuilt } = await import('../../../scripts/build/ensure.js');
  await ensureBuilt();
}
const { main } = await import('../dist/cli/main.js');
process.exitCode = await main(process.argv.slice(2));

/** An installed package has no sources, and the folder above belongs to somebody else. */
function isCheckout() {
  if (!existsSync(new URL('../src', import.meta.url))) return false;
  try {
    const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
    return JSON.parse(manifest).name === 'sluice-workspace';
  } catch {
    return false;
  }
}
