import { didYouMean, oneLine } from '@sluice/lab/text';
import { FORMATS, type Format, type Imported, importConfig } from '../../migrate/import.ts';
import { ImportError } from '../../migrate/section.ts';
import { EXIT, UnreadableError, UsageError } from '../../terminal/errors.ts';
import { fileExists, readFileBytes } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatJsonLine } from '../../terminal/text.ts';

interface Options {
  out: string | undefined;
  force: boolean;
  json: boolean;
}

/** `sluice import`: converts the configuration of another gateway. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [word, file, more] = words;
  const format = chooseFormat(word);
  if (file === undefined) throw new UsageError(`name the configuration of ${FORMATS[format].title} to import`);
  if (more !== undefined) throw new UsageError(`only one file can be imported; "${oneLine(more)}" is the second`);
  const { out, force } = options;
  if (out !== undefined && !force && (await fileExists(out, io)))
    throw new UsageError(`${oneLine(out)} exists; use --force to overwrite it, or name another file`);
  const imported = await read(format, file, io);
  if (out !== undefined) await writeFile(out, imported.config, io);
  if (options.json) await printJson(format, file, out, imported, io);
  else if (out === undefined) await io.stdout.write(imported.config);
  if (!options.json) await io.stderr.write(formatReport(imported, file, out, io));
  return EXIT.ok;
}

const NAMES = Object.keys(FORMATS) as Format[]; // the type has exactly these keys

function chooseFormat(word: string | undefined): Format {
  const format = NAMES.find((name) => name === word);
  if (format) return format;
  throw new UsageError(
    word === undefined
      ? `name the gateway: ${NAMES.join(', ')}`
      : `unknown gateway "${oneLine(word)}"${didYouMean(word, NAMES)}\nKnown: ${NAMES.join(', ')}`,
  );
}

async function read(format: Format, file: string, io: CliIo): Promise<Imported> {
  const text = (await readFileBytes(file, io)).toString();
  try {
    return await importConfig(format, text);
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    throw new UnreadableError(oneLine(file), { code: 'import', message: error.message, canonical: 'INVALID_INPUT' }, error);
  }
}

async function writeFile(path: string, text: string, io: CliIo): Promise<void> {
  const file = await io.createFile(path);
  await file.write(new TextEncoder().encode(text));
  await file.commit();
}

async function printJson(format: Format, file: string, out: string | undefined, imported: Imported, io: CliIo): Promise<void> {
  const { config, notes } = imported;
  await io.stdout.write(formatJsonLine({ format, file, out: out ?? null, config, notes })?.join('') ?? '');
}

function formatReport({ notes }: Imported, file: string, out: string | undefined, io: CliIo): string {
  const { bold, dim, green, red, yellow } = chooseColors(io.stderr, io.env);
  const paints = { dropped: red, changed: yellow, secret: yellow } as const;
  const lines = notes.map(
    ({ path, kind, message }) =>
      `${paints[kind](kind.padEnd(8))} ${bold(oneLine(path === '' ? '(file)' : path))}: ${oneLine(message)}`,
  );
  const summary = notes.length === 0 ? 'everything was carried over' : formatCounts(notes);
  const next = out === undefined ? [] : [dim(`Next: sluice config check ${oneLine(out)}`)];
  return [...lines, `${green('●')} ${oneLine(file)}: ${summary}`, ...next, ''].join('\n');
}

function formatCounts(notes: Imported['notes']): string {
  const count = (kind: string): number => notes.filter((note) => note.kind === kind).length;
  return `${count('dropped')} not carried over, ${count('changed')} changed, ${count('secret')} keys to set`;
}
