import { jsonSchema } from './schema.ts';

const ID = 'https://unpkg.com/sluice/sluice.schema.json';
const WIDTH = 130;

/** `sluice.schema.json`, which editors check a configuration by. */
export function schemaFile(): string {
  const { $schema, ...schema } = jsonSchema();
  const text = JSON.stringify({ $schema, $id: ID, title: 'Configuration of the Sluice gateway', ...schema }, null, 2);
  return `${text.replace(LIST, inOneLine)}\n`;
}

/** A list of words: on one line where it fits, as the formatter of this repository has it. */
const LIST = /^(.*)\[\n([^[\]{}]*)\n *\](,?)$/gm;

function inOneLine(list: string, head: string, items: string, comma: string): string {
  const line = `${head}[${items.trim().replace(/,\n */g, ', ')}]${comma}`;
  return line.length <= WIDTH ? line : list;
}
