import { expect, test } from 'vitest';
import { CALL_KINDS, countCalls, parseTable } from '../../../bench/check/strace.js';

const TABLE = `strace: Process 4711 attached with 11 threads
strace: Process 4711 detached
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.25    0.803131        1003       800        12 futex
 20.10    0.263500          43      6000           pwrite64
 10.00    0.131000          43      2000       900 read
  5.00    0.065000          65       600           writev
  2.00    0.026000          26       400           statx
  1.65    0.021000          21       100           getpid
------ ----------- ----------- --------- --------- ----------------
100.00    1.309631          89      9900       912 total
`;

test('a table has the calls by name, with and without errors, and not the total', () => {
  expect(parseTable(TABLE)).toEqual({ futex: 800, pwrite64: 6000, read: 2000, writev: 600, statx: 400, getpid: 100 });
});

test('output without a table is an error that shows the output', () => {
  expect(() => parseTable('strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted')).toThrow('Operation not permitted');
  expect(() => parseTable('')).toThrow('strace printed no table of calls: nothing');
});

test('counts are for each request, waits are ignored, and calls without a kind are other calls', () => {
  const counts = countCalls(parseTable(TABLE), 100);
  expect(counts).toEqual({ sends: 6, 'reads and writes': 20, 'ledger files': 60, 'other calls': 5 });
  expect(Object.keys(counts)).toEqual(CALL_KINDS);
});
