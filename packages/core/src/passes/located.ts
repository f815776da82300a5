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

/** What the caller hears. */
interface Noting {
  note(note: Note): void;
  locate?: ((path: string) => string) | undefined;
}

/** The caller's context, in which everything that is told of this request is told of the source. */
export function locatedContext<C extends Noting>(context: C, request: object): C {
  return {
    ...context,
    note: (note: Note) => context.note({ ...note, path: locate(note.path, request) }),
    locate: (path: string) => context.locate?.(locate(path, request)) ?? locate(path, request),
  };
}
