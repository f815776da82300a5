import { readFields } from '../../scripts/fields/sources.js';
import { type Fate, fatesOf } from './elsewhere.ts';
import { type Hint, hintFor } from './hints.ts';
import { type Entry, judge } from './ledger.ts';
import { abroadOf, PROTOCOLS, routeOf } from './protocols.ts';

/** `hint`: silent, and a line says why nobody misses it. */
type Told = Fate | 'hint';

/** A field with what was decided, and what becomes of it in the other protocols. */
export interface FieldRow extends Entry {
  abroad: Record<string, Told>;
}

/** Hints that some field needs. */
export const usedHints = new Set<Hint>();

const known = new Map<string, FieldRow[]>();

/** The fields of a section, and what servers that take everything, or little, do with them. Each is probed once, whoever asks. */
export function rowsOf(protocol: string, section: string, server: 'profile' | 'plain' = 'profile'): FieldRow[] {
  const key = `${protocol} ${section} ${server}`;
  const rows = known.get(key) ?? readRows(protocol, section, server);
  known.set(key, rows);
  return rows;
}

function readRows(protocol: string, section: string, server: 'profile' | 'plain'): FieldRow[] {
  const { entries } = judge(readFields(protocol, section), PROTOCOLS[protocol]?.ledger[section] ?? {});
  const others = abroadOf(protocol, section, server);
  const carried = new Map<string, Record<string, Fate>>();
  return entries.map((entry) => {
    const { field, pattern, decision } = entry;
    if (!isPortable(decision, section)) return { ...entry, abroad: {} };
    const fates = carried.get(pattern) ?? fatesOf(field, routeOf(protocol, section), others);
    // What is carried as a whole fares alike: one field of it speaks for all.
    if (decision.verdict === 'carried') carried.set(pattern, fates);
    return { ...entry, abroad: explained(fates, protocol, section, field.path) };
  });
}

/** What only its own protocol knows goes nowhere else. In requests its loss is told. */
const isPortable = ({ verdict }: Entry['decision'], section: string): boolean =>
  ['mapped', 'changed', 'carried'].includes(verdict) || (verdict === 'extension' && section.includes('request'));

function explained(fates: Record<string, Fate>, protocol: string, section: string, path: string): Record<string, Told> {
  return Object.fromEntries(
    Object.entries(fates).map(([to, fate]) => {
      const hint = fate === 'silent' ? hintFor(protocol, section, path, to) : undefined;
      if (hint) usedHints.add(hint);
      return [to, hint ? 'hint' : fate];
    }),
  );
}
