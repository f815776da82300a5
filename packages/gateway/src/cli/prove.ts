import { type AssembledError, Assembler, type Protocol, type ProtocolId } from '@sluice/core';
import type { Body, Failure } from '@sluice/lab/prove';
import { oneLine, systemCode } from '@sluice/lab/text';
import { readInput } from '../terminal/inputs.ts';
import { type CliIo, describeSystemError } from '../terminal/io.ts';
import { type Colors, bytes as inUnits, wrap } from '../terminal/text.ts';

/** A proof holds the body in memory, many times over. */
const MAX_PROOF_BYTES = 64 * 1024 * 1024;

/** A body whose protocol is known, or why there is none. */
export type ProveInput = Body | { error: AssembledError };

export async function readBody(file: string, protocols: readonly Protocol[], io: CliIo): Promise<ProveInput> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of readInput(file, io)) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_PROOF_BYTES) return { error: tooLarge };
    }
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return { error: describeSystemError(code, error, file, 'prove') };
  }
  return recognise(file, Buffer.concat(chunks), protocols);
}

const tooLarge: AssembledError = {
  code: 'too_large',
  message: `larger than ${inUnits(MAX_PROOF_BYTES)}: prove a part of it`,
  canonical: 'PAYLOAD_TOO_LARGE',
};

function recognise(name: string, bytes: Uint8Array, protocols: readonly Protocol[]): ProveInput {
  const assembler = new Assembler({ protocol: protocols });
  assembler.push(bytes);
  const { protocol, error } = assembler.end();
  if (error && isNothing(error)) return { error };
  return protocol ? { protocol, name, bytes } : { error: notKnown };
}

/** A body that says nothing, or something else: there is nothing to prove. */
const isNothing = ({ code }: AssembledError): boolean => code === 'empty_stream' || code === 'not_a_stream';

const notKnown: AssembledError = {
  code: 'not_a_stream',
  message: 'the protocol cannot be told from the bytes: name it with --protocol',
  canonical: 'INVALID_INPUT',
};

interface PropertyCount {
  property: string;
  tried: number;
  failed: number;
}

export interface FileFailure extends Pick<Failure, 'id' | 'message'> {
  property: string;
  /** Where the smallest stream that shows it was written as a case. */
  case: string | null;
}

/** What came of one input. */
export interface FileProof {
  file: string;
  protocol: ProtocolId | null;
  bytes: number;
  properties: PropertyCount[];
  failures: FileFailure[];
  /** What the conversions could not carry, or carried in other words: how often, by code and feature. */
  notes: Record<string, number>;
  /** Why there was nothing to prove. */
  error: AssembledError | null;
}

export interface ReportStyle {
  colors: Colors;
  columns: number | undefined;
}

const number = (value: number): string => value.toLocaleString('en-US');

const sum = (rows: readonly PropertyCount[], key: 'tried' | 'failed'): number => rows.reduce((total, row) => total + row[key], 0);

const plural = (count: number, word: string): string => `${number(count)} ${word}${count === 1 ? '' : 's'}`;

/** A message quotes two values; more than this of them helps nobody on a terminal. */
const MAX_MESSAGE = 400;

/** One input: a line, and a line more for each property that does not hold. */
export function showProof(proof: FileProof, { colors, columns }: ReportStyle): string {
  const { file, protocol, properties, failures, error } = proof;
  const name = colors.bold(file === '-' ? 'standard input' : oneLine(file));
  if (error) return `${colors.red('✗')} ${name}  ${oneLine(`${error.code}: ${error.message}`)}\n`;
  const mark = failures.length === 0 ? colors.green('✓') : colors.red('✗');
  const head = `${mark} ${name}  ${colors.dim(`${protocol}, ${plural(sum(properties, 'tried'), 'check')}`)}`;
  const lines = failures.flatMap(({ property, message, case: path }) => [
    `  ${colors.red(property)}`,
    ...wrap(oneLine(shortened(message)), columns === undefined ? undefined : columns - 4).map((line) => `    ${line}`),
    ...(path === null ? [] : [`    ${colors.dim(`case: ${oneLine(path)}`)}`]),
  ]);
  return `${[head, ...lines].join('\n')}\n`;
}

const shortened = (message: string): string => (message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message);

/** All inputs: what was tried, property by property, and what the conversions told. */
export function showSummary(proofs: readonly FileProof[], skipped: number, style: ReportStyle): string {
  const counts = counted(proofs);
  const proven = proofs.filter(({ error }) => !error).length;
  const failed = sum(counts, 'failed');
  const outcome = failed > 0 ? `${number(failed)} failed` : proven > 0 ? 'all hold' : 'nothing was proven';
  const end = [
    `${plural(proven, 'answer')}, ${plural(sum(counts, 'tried'), 'check')}: ${outcome}`,
    ...(skipped > 0 ? [`${plural(skipped, 'file')} skipped: no answer of a model`] : []),
  ];
  const sections = [propertyTable(counts, style), noteTable(proofs, style), end.join('\n')].filter((section) => section !== '');
  return `\n${sections.join('\n\n')}\n`;
}

/** The same property of all inputs together, in the order in which they were met. */
function counted(proofs: readonly FileProof[]): PropertyCount[] {
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
    ({ property, tried, failed }) => [property, number(tried), failed === 0 ? '' : `${failed} failed`] as const,
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
  const width = Math.max(...rows.map(([, count]) => number(count).length));
  return [colors.cyan('notes'), ...rows.map(([note, count]) => `  ${number(count).padStart(width)}  ${oneLine(note)}`)].join(
    '\n',
  );
}
