import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Note } from '../../packages/core/src/index.ts';
import { buildCase, type Failure } from '../../packages/lab/src/prove/failure.ts';
import type { Outcome } from './generated.ts';
import { openReason } from './open.ts';

/** What came of one property for one subject: a protocol, or a pair of them. */
export interface Row {
  property: string;
  subject: string;
  tried: number;
  /** Failures that nobody has explained. */
  failed: number;
  /** Failures that `open.ts` lists, with the reason. */
  open: number;
  seed: number | null;
  /** What was seen on the way, by name: notes, providers. */
  seen: Record<string, number>;
}

/** A full run for the record, or a short one among the tests. */
export const IS_FULL: boolean = process.env['PROVE'] === 'full';
/** The same inputs every time, unless somebody asks for others. */
export const SEED = Number(process.env['PROVE_SEED'] ?? 20_261_115);

/** So many of something: in the short run, and in the full one. */
export const scale = (short: number, full: number): number => (IS_FULL ? full : short);

const root = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(root, '.cache', 'prove');

/** Where a run for the record keeps its rows; several may go on at once. */
const runFolder = (): string | undefined => process.env['PROVE_FOLDER'];
export const casesFolder = (): string => join(runFolder() ?? CACHE, 'cases');

/** Counts what was tried and keeps what failed. */
export class Tally {
  readonly failures: Failure[] = [];
  readonly #rows = new Map<string, Row>();

  /** Inputs that held. */
  add(property: string, subject: string, tried: number, seed: number | null = null): Row {
    const key = `${property}\n${subject}`;
    const row = this.#rows.get(key) ?? { property, subject, tried: 0, failed: 0, open: 0, seed, seen: {} };
    row.tried += tried;
    row.seed ??= seed;
    this.#rows.set(key, row);
    return row;
  }

  /** An input, and what is wrong with it, if anything is. */
  check(property: string, subject: string, failure: Failure | undefined, seed: number | null = null): void {
    const row = this.add(property, subject, 1, seed);
    if (!failure) return;
    if (openReason(failure) !== undefined) {
      row.open++;
      return;
    }
    row.failed++;
    // One of a kind is enough to work with.
    if (!this.failures.some(({ id, property: other }) => id === failure.id && other === failure.property))
      this.failures.push(failure);
  }

  /** Counts the notes of conversions among what was seen. */
  noteCounter(property: string, subject: string): (note: Note) => void {
    const { seen } = this.add(property, subject, 0);
    return ({ code, feature }) => {
      const key = `${code} ${feature}`;
      seen[key] = (seen[key] ?? 0) + 1;
    };
  }

  /** All that came of generated inputs. */
  generated(property: string, subject: string, seed: number, { runs, failures, repeats }: Outcome): void {
    this.add(property, subject, runs - failures.length - repeats.length, seed);
    for (const failure of [...failures, ...repeats]) this.check(property, subject, failure, seed);
  }

  /** Keeps the rows for the report, and every failure as a case. Gives back what failed, in words. */
  finish(name: string): string[] {
    const folder = runFolder();
    if (folder) writeFileSync(join(folder, `${name}.json`), JSON.stringify([...this.#rows.values()]));
    for (const failure of this.failures) writeCase(failure);
    return this.failures.map(({ property, id, message }) => `${property} ${id}: ${message}`);
  }
}

function writeCase(failure: Failure): void {
  const found = buildCase(failure);
  if (!found) return;
  mkdirSync(casesFolder(), { recursive: true });
  writeFileSync(join(casesFolder(), `${found.id}.jsonl`), `${JSON.stringify(found)}\n`);
}

/** A folder of its own for the run that begins; the workers find it in the environment. */
export function openRun(): string {
  const folder = join(CACHE, `run-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  process.env['PROVE_FOLDER'] = folder;
  return folder;
}

/** The rows of all properties of the run. Only the cases of what failed are left of it. */
export function closeRun(folder: string): Row[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .toSorted()
    .map((file) => join(folder, file));
  const rows = files.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')) as Row[]);
  for (const file of existsSync(casesFolder()) ? files : [folder]) rmSync(file, { recursive: true });
  return rows;
}
