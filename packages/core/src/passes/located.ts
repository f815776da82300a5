import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { locate } from '../canonical/source.ts';
import type { Rules } from './rules.ts';

/** The rules for the passes: what each tells of the request at hand is told of the source. */
export function locatedRules(rules: Rules, current: () => CanonicalRequest): Rules {
  const place = <T extends { path: string }>(loss: T): T => ({ ...loss, path: locate(loss.path, current()) });
  return {
    ...rules,
    note: (note) => rules.note(place(note)),
    drop: (loss) => rules.drop(place(loss)),
    repair: (loss) => rules.repair(place(loss)),
    refuse: (loss) => rules.refuse(place(loss)),
  };
}

/** The caller's context, in which everything that is told of this request is told of the source. */
export function locatedContext<C extends { note(note: Note): void }>(context: C, request: CanonicalRequest): C {
  const place = (path: string): string => locate(path, request);
  const own = {
    note: (note: Note) => context.note({ ...note, path: place(note.path) }),
    locate: place,
  };
  return Object.assign(Object.create(context), own);
}
