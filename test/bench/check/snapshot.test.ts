import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { countNodes, divideGrowth } from '../../../bench/check/snapshot.js';

const NODE_TYPES = ['hidden', 'array', 'string', 'object', 'code', 'closure', 'concatenated string', 'sliced string', 'native'];

/** A snapshot of nodes with these types; the second field of a node is its id, which may look like a type. */
const buildSnapshot = (...types: string[]) => ({
  snapshot: { meta: { node_fields: ['type', 'id'], node_types: [NODE_TYPES, 'number'] } },
  nodes: types.flatMap((type) => [NODE_TYPES.indexOf(type), NODE_TYPES.indexOf('object')]),
});

test('nodes are counted by type; strings of all kinds are strings', () => {
  const snapshot = buildSnapshot('object', 'closure', 'object', 'array', 'string', 'sliced string', 'concatenated string');
  expect(countNodes(snapshot)).toEqual({ objects: 2, closures: 1, arrays: 1, strings: 3 });
});

test('code, hidden nodes and native ones are not counted', () => {
  expect(countNodes(buildSnapshot('code', 'hidden', 'native'))).toEqual({ objects: 0, closures: 0, arrays: 0, strings: 0 });
});

test('the position of the type is read from the snapshot', () => {
  const snapshot = {
    snapshot: { meta: { node_fields: ['id', 'type'], node_types: ['number', NODE_TYPES] } },
    nodes: [NODE_TYPES.indexOf('closure'), NODE_TYPES.indexOf('object')],
  };
  expect(countNodes(snapshot)).toMatchObject({ objects: 1, closures: 0 });
});

test('growth is divided by the number of streams', () => {
  const before = { objects: 100, closures: 10, heap: 5000 };
  expect(divideGrowth(before, { objects: 700, closures: 10, heap: 4000 }, 200)).toEqual({ objects: 3, closures: 0, heap: -5 });
});

/** Writes snapshots of its own heap, before and after it creates 1000 closures. */
const WRITES_SNAPSHOTS = `
  const { writeHeapSnapshot } = require('node:v8');
  writeHeapSnapshot('before');
  globalThis.kept = Array.from({ length: 1000 }, (_, i) => () => i);
  writeHeapSnapshot('after');
`;

test('closures of a program of node are found in its snapshots', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-snapshot-'));
  try {
    execFileSync(process.execPath, ['-e', WRITES_SNAPSHOTS], { cwd: folder });
    const [before, after] = ['before', 'after'].map((name) => countNodes(JSON.parse(readFileSync(join(folder, name), 'utf8'))));
    const { closures = 0 } = divideGrowth(before, after, 1000);
    expect(closures).toBeCloseTo(1, 1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
