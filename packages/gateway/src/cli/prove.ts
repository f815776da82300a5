/** Reads the inputs of `sluice prove` and prints its results. */

import type { AccumulatedError, Protocol, ProtocolId } from '@sluice/core';
import { StreamAccumulator } from '@sluice/core/engine';
import type { Body, Failure } from '@sluice/lab/prove';
import { oneLine } from '@sluice/lab/text';
import { formatInputError, UnreadableError } from '../terminal/errors.ts';
import type { Source } from '../terminal/inputs.ts';
import { type Colors, formatBytes, wrapText } from '../terminal/text.ts';

/** Reads an input whole and recognises its protocol. */
export async function readProveInput(source: Source, protocols: readonly Protocol[]): Promise<ProveInput> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of source.read()) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_PROOF_BYTES) return { error: TOO_LARGE };
    }
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    return { error: error.failure, isUnreadable: true };
  }
  return recognise(source.file, Buffer.concat(chunks), protocols);
}

/** A body of a known protocol, or why there is none. */
export type ProveInput = Body | { error: AccumulatedError; isUnreadable?: true };

/** A proof holds several copies of the body in memory. */
const MAX_PROOF_BYTES = 64 * 1024 * 1024;

const TOO_LARGE: AccumulatedError = {
  code: 'too_large',
  message: `larger than ${formatBytes(MAX_PROOF_BYTES)}; prove a part of it`,
  canonical: 'PAYLOAD_TOO_LARGE',
};

function recognise(name: string, bytes: Uint8Array, protocols: readonly Protocol[]): ProveInput {
  const accumulator = new StreamAccumulator({ protocol: protocols });
  accumulator.push(bytes);
  const { protocol, error } = accumulator.finish();
  if (error && isNoStream(error)) return { error };
  return protocol ? { protocol, name, bytes } : { error: UNKNOWN_PROTOCOL };
}

const isNoStream = ({ code }: AccumulatedError): boolean => code === 'empty_stream' || code === 'not_a_stream';

const UNKNOWN_PROTOCOL: AccumulatedError = {
  code: 'not_a_stream',
  message: 'the protocol cannot be detected from the bytes; name it with --protocol',
  canonical: 'INVALID_INPUT',
};

/** What the proof of one input found. */
export interface FileProof {
  file: string;
  protocol: ProtocolId | null;
  bytes: number;
  properties: PropertyCount[];
  failures: FileFailure[];
  /** How often conversions dropped or changed something, by code and feature. */
  notes: Record<string, number>;
  /** Why nothing could be proven. */
  error: AccumulatedError | null;
}

/** A property that does not hold for an input. */
export interface FileFailure extends Pick<Failure, 'id' | 'message'> {
  property: string;
  /** Path of the written case with the smallest stream that shows the failure. */
  case: string | null;
}

interface PropertyCount {
  property: string;
  tried: number;
  failed: number;
}

/** One line for an input, and a few more for each property that does not hold. */
export function showProof(proof: FileProof, { colors, columns }: ReportStyle): string {
  const { file, protocol, properties, failures, error } = proof;
  const name = colors.bold(file === '-' ? 'standard input' : oneLine(file));
  if (error) return `${colors.red('✗')} ${name}  ${oneLine(formatInputError(error))}\n`;
  const mark = failures.length === 0 ? colors.green('✓') : colors.red('✗');
  const head = `${mark} ${name}  ${colors.dim(`${protocol}, ${formatCount(sumCounts(properties, 'tried'), 'check')}`)}`;
  const lines = failures.flatMap(({ property, message, case: path }) => [
    `  ${colors.red(property)}`,
    ...wrapText(oneLine(shorten(message)), columns === undefined ? undefined : columns - 4).map((line) => `    ${line}`),
    ...(path === null ? [] : [`    ${colors.dim(`case: ${oneLine(path)}`)}`]),
  ]);
  return `${[head, ...lines].join('\n')}\n`;
}

/** How results are printed: colours, and the width to wrap at (undefined: no wrapping). */
export interface ReportStyle {
  colors: Colors;
  columns: number | undefined;
}

/** Messages quote two values, which may be long. */
const MAX_MESSAGE_LENGTH = 400;

const shorten = (message: string): string =>
  message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;

/** Totals over all inputs: checks per property, and notes of the conversions. */
export function showSummary(proofs: readonly FileProof[], style: ReportStyle): string {
  const counts = countProperties(proofs);
  const proven = proofs.filter(({ error }) => !error).length;
  const failed = sumCounts(counts, 'failed');
  const outcome = failed > 0 ? `${formatNumber(failed)} failed` : proven > 0 ? 'all hold' : 'nothing was proven';
  const end = `${formatCount(proven, 'response')}, ${formatCount(sumCounts(counts, 'tried'), 'check')}: ${outcome}`;
  const sections = [propertyTable(counts, style), noteTable(proofs, style), end].filter((section) => section !== '');
  return `\n${sections.join('\n\n')}\n`;
}

/** Adds up the same property over all inputs, in order of first occurrence. */
function countProperties(proofs: readonly FileProof[]): PropertyCount[] {
  const counts = new Map<string, PropertyCount>();
  for (const { property, tried, failed } of proofs.flatMap(({ properties }) => properties)) {
    const count = counts.get(property) ?? { property, tried: 0, failed: 0 };
    counts.set(property, { property, tried: count.tried + tried, failed: count.failed + failed });
  }
  return [...counts.values()];
}

function propertyTable(counts: readonly PropertyCount[], { colors }: ReportStyle): string {
  if (counts.length === 0) return '';
  const rows = counts.map(
    ({ property, tried, failed }) => [property, formatNumber(tried), failed === 0 ? '' : `${failed} failed`] as const,
  );
  const widths = [0, 1].map((at) => Math.max(...rows.map((row) => (row[at] ?? '').length)));
  const lines = rows.map(
    ([property, tried, failed]) =>
      `  ${property.padEnd(widths[0] ?? 0)}  ${tried.padStart(widths[1] ?? 0)}${failed === '' ? '' : `  ${colors.red(failed)}`}`,
  );
  return [colors.cyan('properties'), ...lines].join('\n');
}

function noteTable(proofs: readonly FileProof[], { colors }: ReportStyle): string {
  const counts = new Map<string, number>();
  for (const { notes } of proofs)
    for (const [note, count] of Object.entries(notes)) counts.set(note, (counts.get(note) ?? 0) + count);
  if (counts.size === 0) return '';
  const rows = [...counts].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const width = Math.max(...rows.map(([, count]) => formatNumber(count).length));
  return [
    colors.cyan('notes'),
    ...rows.map(([note, count]) => `  ${formatNumber(count).padStart(width)}  ${oneLine(note)}`),
  ].join('\n');
}

const formatNumber = (value: number): string => value.toLocaleString('en-US');

const sumCounts = (rows: readonly PropertyCount[], key: 'tried' | 'failed'): number =>
  rows.reduce((total, row) => total + row[key], 0);

const formatCount = (count: number, word: string): string => `${formatNumber(count)} ${word}${count === 1 ? '' : 's'}`;
