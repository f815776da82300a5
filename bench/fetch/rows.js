/** What is compared: an SDK with and without the repair, and the concat of LangChain with the linear one. */
import { buildStreamInput, countChunks } from '../library/inputs.js';
import { isExpected } from '../library/readers.js';

/** The same work of two functions of a module in bench/subjects. */
const listSides = (module, without, within) =>
  [
    ['without', without],
    ['with', within],
  ].map(([name, work]) => ({ name, create: async (input) => (await import(`../subjects/${module}.js`))[work](input) }));

const KINDS = { text: 'text', tool: 'one call' };

const buildRow = ({ id, client, stream, input, subjects }) => ({
  id,
  client,
  stream,
  units: countChunks,
  buildInput: () => buildStreamInput(input),
  check: (result, { expected }) => isExpected(result, expected),
  subjects,
});

/** Pieces of a few chunks, as a network delivers them. */
const buildRepairRow = (module, kind) =>
  buildRow({
    id: `${module}-${kind}`,
    client: module,
    stream: `${KINDS[kind]}, 1000 chunks`,
    input: { kind, n: 1000, pieceBytes: 1024 },
    subjects: listSides(module, 'endToEnd', 'endToEndRepaired'),
  });

const buildConcatRow = (n) =>
  buildRow({
    id: `concat-${n}`,
    client: '`concat` of LangChain, then `concatChunks`',
    stream: `one call, ${n} chunks, parsed`,
    input: { kind: 'tool', n },
    subjects: listSides('langchain', 'accumulate', 'accumulateLinear'),
  });

export const ROWS = [
  ...['openai', 'ai', 'langchain'].flatMap((module) => Object.keys(KINDS).map((kind) => buildRepairRow(module, kind))),
  ...[1000, 4000].map(buildConcatRow),
];
