/**
 * The code of the documentation. In Markdown, `ts` and `js` blocks are type-checked, `ts run` blocks are run as well, and
 * `sh run` blocks are executed beside a copy of `examples`. Before a block, an HTML comment may declare what it takes for granted:
 *
 *   <!-- prelude: declare const response: Response; -->      for the type checker; all lines up to the end of the comment
 *   <!-- file: recorded.sse                                  a file that a command reads
 *   data: …
 *   -->
 *
 * `js unchecked` is for code that needs packages which are not installed here. The info string of a command may state its exit code: `sh run exit=1`. In `ts run` blocks, `console.log(…); // text`
 * states what is printed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listFences } from '../scripts/guides/fences.js';

const root = fileURLToPath(new URL('..', import.meta.url));

export interface Block {
  /** `docs/api.md:12` or the source of a doc comment. */
  place: string;
  /** The first word of the info string. */
  language: string;
  /** The other words. */
  flags: readonly string[];
  code: string;
  prelude: string;
  files: readonly { name: string; text: string }[];
}

/** README.md, docs/*.md and the README of each package. */
export function listPages(): string[] {
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
  const inFolder = (folder: string): string[] =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`);
  return ['README.md', ...inFolder('docs'), ...packages.flatMap(inFolder).filter((name) => name.endsWith('/README.md'))];
}

/** The blocks of a page, with the comments right before each. */
export function readPage(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return listFences(text).map(({ index, line, language, flags, code }) => ({
    place: `${page}:${line}`,
    language,
    flags,
    code,
    ...readComments(text.slice(0, index)),
  }));
}

/** The comments at the end of what precedes a block. */
function readComments(before: string): Pick<Block, 'prelude' | 'files'> {
  const comments = /(?:<!--(?:(?!-->)[\s\S])*-->\s*)*$/.exec(before)?.[0] ?? '';
  const list = [...comments.matchAll(/<!--\s*(prelude|file):\s*([\s\S]*?)-->/g)];
  const texts = (kind: string): string[] => list.flatMap(([, found, text = '']) => (found === kind ? [text] : []));
  return {
    prelude: texts('prelude').join('\n'),
    files: texts('file').map((text) => {
      const [name = '', ...lines] = text.split('\n');
      return { name: name.trim(), text: lines.join('\n') };
    }),
  };
}

/** The examples in the doc comment of a value that a source file exports. */
export function readDocComment(file: string, name: string): Block[] {
  const text = readFileSync(file, 'utf8');
  const declared = new RegExp(`^export (?:async )?(?:const|function\\*?|class) ${name}\\b`, 'm').exec(text);
  const comment = declared && /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(text.slice(0, declared.index))?.[0];
  const plain = (comment ?? '').replace(/^ ?\* ?/gm, '').replace(/^ \* ?/gm, '');
  return listFences(plain).map(({ language, code }) => ({
    place: `${relative(root, file)}: ${name}`,
    language,
    flags: [],
    code,
    prelude: '',
    files: [],
  }));
}
