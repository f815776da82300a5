/** Prints the fields of a section: `node scripts/fields/list.js gemini request [pattern]`. */
import { matcher } from './pattern.js';
import { readFields, SOURCES } from './sources.js';

const [protocol = '', section = 'request', pattern] = process.argv.slice(2);
if (!SOURCES[protocol]?.sections[section]) {
  const known = Object.entries(SOURCES).flatMap(([id, { sections }]) => Object.keys(sections).map((name) => `${id} '${name}'`));
  console.error(`Usage: list.js <protocol> <section> [pattern]\n${known.join('\n')}`);
  process.exit(1);
}
const isMeant = pattern ? matcher(pattern) : () => true;
for (const { path, optional, shapes } of readFields(protocol, section))
  if (isMeant(path)) console.log(`${path}${optional ? '?' : ''}  ${[...new Set(shapes.map(nameOf))].join(' | ')}`);

/** @param {import('./types.js').Shape} shape */
function nameOf(shape) {
  if (shape.kind === 'literal') return JSON.stringify(shape.value);
  return shape.kind === 'object' ? shape.name || 'object' : shape.kind;
}
