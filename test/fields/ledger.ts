import type { Field } from '../../scripts/fields/fields.js';
import { matcher, weightOf } from '../../scripts/fields/pattern.js';
import type { Decision, Table } from './decision.ts';
import { type Observed, probe, type Route } from './probe.ts';

/** A field with what was decided; `structure` needs no decision. */
export interface Entry {
  field: Field;
  pattern: string;
  decision: Decision | Structure;
}

/** `label`: a constant that names the thing. `container`: what is in it is decided below. */
interface Structure {
  verdict: 'label' | 'container';
}

export interface Judged {
  entries: Entry[];
  undecided: string[];
  /** Patterns that no field has. */
  unused: string[];
}

/** Lays the decisions over the fields. */
export function judge(fields: readonly Field[], table: Table): Judged {
  const rules = Object.entries(table)
    .map(([pattern, decision]) => ({ pattern, decision, isMeant: matcher(pattern), weight: weightOf(pattern) }))
    .toSorted((a, b) => b.weight - a.weight);
  const used = new Set<string>();
  const holders = new Set(fields.flatMap(({ parent }) => prefixesOf(parent)));
  const entries: Entry[] = [];
  const undecided: string[] = [];
  for (const field of fields) {
    const rule = rules.find(({ isMeant }) => isMeant(field.path));
    if (rule) used.add(rule.pattern);
    const structure = structureOf(field, holders, rule?.pattern);
    if (structure) entries.push({ field, pattern: rule?.pattern ?? '', decision: structure });
    else if (rule) entries.push({ field, pattern: rule.pattern, decision: rule.decision });
    else undecided.push(field.path);
  }
  return { entries, undecided, unused: rules.map(({ pattern }) => pattern).filter((pattern) => !used.has(pattern)) };
}

/** A decision that names a container wins over what is in it; one that names a whole tree does not. */
function structureOf(field: Field, holders: ReadonlySet<string>, pattern: string | undefined): Structure | undefined {
  if (field.constant) return pattern === field.path ? undefined : { verdict: 'label' };
  if (pattern && !pattern.endsWith('.**')) return undefined;
  return holders.has(field.path) && field.shapes.every(({ kind }) => CONTAINERS.has(kind)) ? { verdict: 'container' } : undefined;
}

const CONTAINERS: ReadonlySet<string> = new Set(['object', 'array', 'null']);

/** `a.b[c].d`: a, a.b, a.b[c], a.b[c].d. */
const prefixesOf = (path: string): string[] => [
  ...Array.from(path.matchAll(/[.[(]/g), ({ index }) => path.slice(0, index)),
  path,
];

/** What the probe finds wrong with a decision; undefined when it holds. */
export function complaintOf({ field, decision }: Entry, route: Route): string | undefined {
  if (isUnprobed(decision) || 'test' in decision) return undefined;
  const observed = probe(field, route, 'as' in decision ? decision.as : undefined);
  const complaint = COMPLAINTS[decision.verdict](observed, decision as never); // the table is closed over the verdicts
  return complaint === false ? undefined : `${field.path}: ${complaint}${observed.error ? ` (${observed.error})` : ''}`;
}

type Verdict = Exclude<Decision['verdict'], 'outside'>;
type Complain<V> = (observed: Observed, decision: Extract<Decision, { verdict: V }>) => string | false;

/** A label stands and falls with what it names. */
const isUnprobed = (decision: Entry['decision']): decision is Structure | Extract<Decision, { verdict: 'outside' }> =>
  decision.verdict === 'outside' || decision.verdict === 'container' || decision.verdict === 'label';

const isExtension = (place: string): boolean => /(^|\.)extensions(\.|$)/.test(place);
const seen = (places: readonly string[]): string => `[${places.join(', ')}]`;

const COMPLAINTS: { [V in Verdict]: Complain<V> } = {
  mapped: ({ survives, places, varies }, { where }) =>
    (!survives && 'does not survive') ||
    (varies &&
      !places.some((place) => place.startsWith(where) && !isExtension(place)) &&
      `is not in ${where} but in ${seen(places)}`),
  carried: ({ survives, places, varies }, { where }) =>
    (!survives && 'does not survive') ||
    (varies && !places.some((place) => place.startsWith(where)) && `is not in ${where} but in ${seen(places)}`),
  extension: ({ survives, places, varies }) =>
    (!survives && 'does not survive') ||
    (varies && !(places.length > 0 && places.every(isExtension)) && `is not in extensions alone: ${seen(places)}`),
  changed: ({ survives, places }, { where }) =>
    (survives && 'survives: it is mapped') ||
    (!places.some((place) => place.startsWith(where) && !isExtension(place)) && `is not in ${where} but in ${seen(places)}`),
  derived: ({ isWritten }) => !isWritten && 'is not written',
  dropped: ({ survives }) => survives && 'survives: it is not dropped',
};
