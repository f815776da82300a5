import { basename, relative } from 'node:path';
import { findProtocol, type ProtocolId } from '@sluice/core';
import { oneLine } from '@sluice/lab/text';
import { formatInput, readFiles } from '../../capture/inspect/input.ts';
import { InspectError, type InspectInput, type Inspection, inspect, readText } from '../../capture/inspect/inspect.ts';
import { Timeline } from '../../capture/inspect/timeline.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { createUnknownProtocolError, readFileBytes } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatBytes, formatColumns, formatJsonLine } from '../../terminal/text.ts';

interface Options {
  protocol: string | undefined;
  to: string | undefined;
  json: boolean;
  html: boolean;
}

/** `sluice inspect`: follows the bytes of a stream to its events and to what a client receives. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [word = '-', more] = words;
  if (options.json && options.html) throw new UsageError('--json and --html exclude each other');
  if (more !== undefined) throw new UsageError(`only one input can be inspected; "${oneLine(more)}" is the second`);
  if (words.length === 0 && io.stdin.isTTY) throw new UsageError('no input; name a FILE, or pipe one to standard input');
  const chosen = { protocol: chooseProtocol(options.protocol), to: chooseProtocol(options.to) };
  try {
    const found = await readInput(word, io);
    const input: InspectInput = found.is === 'body' ? { ...found, ...dropUndefined(chosen) } : found;
    // Also for a page: an input that cannot be inspected is an error here, not in the browser.
    const inspection = inspect(input);
    if (options.html) return await writePage(input, io);
    if (options.json) for (const piece of formatJsonLine(buildRecord(inspection)) ?? []) await io.stdout.write(piece);
    else await io.stdout.write(formatSummary(inspection, io));
    return inspection.comparison.is === 'different' ? EXIT.failed : EXIT.ok;
  } catch (error) {
    if (!(error instanceof InspectError)) throw error;
    await io.stderr.write(`${chooseColors(io.stderr, io.env).red('sluice:')} ${oneLine(word)}: ${oneLine(error.message)}\n`);
    return EXIT.unusable;
  }
}

function chooseProtocol(name: string | undefined): ProtocolId | undefined {
  if (name === undefined) return undefined;
  const found = findProtocol(name);
  if (!found) throw createUnknownProtocolError(name);
  return found.id;
}

const dropUndefined = <T extends object>(fields: T): Partial<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>; // fewer of the same fields

/** A file, standard input, or the folder of one exchange. */
async function readInput(word: string, io: CliIo): Promise<InspectInput> {
  const files = word === '-' ? undefined : await io.listFolder(word);
  if (!files) return readFiles([{ name: word === '-' ? 'standard input' : word, bytes: await readFileBytes(word, io) }]);
  const folder = word.replace(/(?<=.)[\\/]+$/, '');
  const own = files.map((path) => relative(folder, path)).filter((path) => basename(path) === path);
  if (own.includes('capture.json')) {
    const { readCapture } = await import('../../capture/files.ts');
    const capture = await readCapture(folder);
    if (!capture) throw new InspectError('the capture is cut, or of another version');
    return { is: 'capture', name: folder, capture };
  }
  if (!own.includes('exchange.json')) throw new InspectError('the folder is not a recorded exchange; name one, or a file');
  const read = own.map(async (name) => ({ name: `${folder}/${name}`, bytes: await readFileBytes(`${folder}/${name}`, io) }));
  return readFiles(await Promise.all(read));
}

async function writePage(input: InspectInput, io: CliIo): Promise<number> {
  const { renderInspectPage } = await import('../../server/console.ts');
  const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  const page = renderInspectPage(formatInput(input, toBase64));
  if (page === undefined) throw new UsageError('this installation has no console; build it with "npm run build"');
  await io.stdout.write(page);
  return EXIT.ok;
}

/** Everything of an inspection as JSON. Frames have their text, so that the line can be read without the body. */
function buildRecord({ name, upstream, events, client, findings, comparison, hasTimes, endMs }: Inspection): object {
  const { message, complete, error } = new Timeline(events.map(({ event }) => event)).at(events.length).finish();
  return {
    name,
    protocol: upstream.protocol,
    client_protocol: client.protocol,
    bytes: upstream.bytes.length,
    has_times: hasTimes,
    end_ms: endMs,
    comparison: comparison.is === 'different' ? { is: comparison.is, at: comparison.at } : toSnake(comparison),
    reads: upstream.reads,
    frames: upstream.frames.map((frame) => ({ ...frame, text: readText(upstream.bytes, frame) })),
    events: events.map(({ event, frame }) => ({ frame, event })),
    client_frames: client.frames.map((frame) => ({ ...frame, text: readText(client.bytes, frame) })),
    heartbeats: client.heartbeats.map(({ ms, to }) => ({ ms, bytes: to })),
    findings,
    message,
    complete,
    error,
  };
}

const toSnake = (comparison: Exclude<Inspection['comparison'], { is: 'different' }>): object =>
  comparison.is === 'equal' ? { is: comparison.is, is_prefix: comparison.isPrefix } : comparison;

const COMPARISONS = {
  equal: 'the derived bytes equal those that the client received',
  different: 'the derived bytes DIFFER from those that the client received',
  unknown: 'not compared',
} as const satisfies Record<Inspection['comparison']['is'], string>;

function formatSummary({ name, upstream, events, client, findings, comparison }: Inspection, io: CliIo): string {
  const { bold, dim, red } = chooseColors(io.stdout, io.env);
  const place = (frame: number): string =>
    frame < 0 ? 'request' : frame >= upstream.frames.length ? 'end' : `frame ${frame + 1}`;
  const detail =
    comparison.is === 'unknown' ? `: ${comparison.reason}` : comparison.is === 'different' ? ` at byte ${comparison.at}` : '';
  const verdict = `${COMPARISONS[comparison.is]}${detail}`;
  const rows = [
    ['upstream', upstream.protocol, `${upstream.frames.length} frames, ${formatBytes(upstream.bytes.length)}`],
    ['events', '', `${events.length}`],
    ['client', client.protocol, `${client.frames.length} frames, ${formatBytes(client.bytes.length)}`],
  ];
  const found = findings.map(({ frame, severity, id, message, count }) => [
    place(frame),
    severity,
    id,
    oneLine(count > 1 ? `${message} (${count} times)` : message),
  ]);
  const lines = [
    bold(oneLine(name)),
    ...formatColumns(rows, [dim]),
    comparison.is === 'different' ? red(verdict) : verdict,
    ...(found.length > 0 ? ['', ...formatColumns(found, [dim])] : []),
  ];
  return `${lines.join('\n')}\n`;
}
