import { render } from '../../scripts/fields/render.js';
import { packageOf, SOURCES } from '../../scripts/fields/sources.js';
import { HINTS } from './hints.ts';
import { rowsOf } from './rows.ts';

/** The text of docs/fields.md. */
export function page(): string {
  return render(
    Object.entries(SOURCES).map(([protocol, { sections }]) => {
      const { name, version } = packageOf(protocol);
      return {
        protocol,
        package: name.replace(/-\d+$/, ''),
        version,
        sections: Object.entries(sections).map(([section, { type }]) => ({ section, type, rows: shown(protocol, section) })),
      };
    }),
    HINTS,
  );
}

const shown = (protocol: string, section: string) =>
  rowsOf(protocol, section).map(({ field: { path, parent, owner }, pattern, decision, abroad }) => ({
    path,
    parent,
    owner,
    name: path.slice(parent === '' ? 0 : parent.length + 1),
    pattern,
    decision,
    abroad,
  }));
