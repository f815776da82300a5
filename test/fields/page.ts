import { render } from '../../scripts/fields/render.js';
import { packageOf, readFields, SOURCES } from '../../scripts/fields/sources.js';
import { fatesOf } from './elsewhere.ts';
import { type Entry, judge } from './ledger.ts';
import { abroadOf, PROTOCOLS, routeOf } from './protocols.ts';

/** The text of docs/fields.md. */
export function page(): string {
  return render(
    Object.entries(SOURCES).map(([protocol, { sections }]) => {
      const { name, version } = packageOf(protocol);
      return {
        protocol,
        package: name.replace(/-\d+$/, ''),
        version,
        sections: Object.entries(sections).map(([section, { type }]) => ({ section, type, rows: rowsOf(protocol, section) })),
      };
    }),
  );
}

function rowsOf(protocol: string, section: string) {
  const { entries } = judge(readFields(protocol, section), PROTOCOLS[protocol]?.ledger[section] ?? {});
  const others = abroadOf(protocol, section);
  const known = new Map<string, Record<string, string>>();
  const abroadOfEntry = ({ field, pattern, decision }: Entry): Record<string, string> => {
    if (!isPortable(decision)) return {};
    const fate = known.get(pattern) ?? fatesOf(field, routeOf(protocol, section), others);
    // What is carried as a whole fares alike: one field of it speaks for all.
    if (decision.verdict === 'carried') known.set(pattern, fate);
    return fate;
  };
  return entries.map((entry) => {
    const { path, parent, owner } = entry.field;
    const name = path.slice(parent === '' ? 0 : parent.length + 1);
    return { path, parent, owner, name, pattern: entry.pattern, decision: entry.decision, abroad: abroadOfEntry(entry) };
  });
}

/** What only its own protocol knows goes nowhere else. */
const isPortable = ({ verdict }: Entry['decision']): boolean => ['mapped', 'changed', 'carried'].includes(verdict);
