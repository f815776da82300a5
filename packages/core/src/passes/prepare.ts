import type { Note } from '../canonical/notes.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { fitCacheMarks } from './cache-marks.ts';
import { clamp } from './clamp.ts';
import { customAsFunctions } from './custom-tools.ts';
import { dropEmpty } from './drop-empty.ts';
import { dropUnsaid } from './drop-unsaid.ts';
import { filterForeign, refuseHeld } from './filter-foreign.ts';
import { filterSignatures } from './filter-signatures.ts';
import { locatedContext, locatedRules } from './located.ts';
import { mapIds } from './map-ids.ts';
import { mapNames } from './map-names.ts';
import { media } from './media.ts';
import { mergeRoles } from './merge-roles.ts';
import { midSystem } from './mid-system.ts';
import { wrapRoots } from './object-roots.ts';
import { pairTools } from './pair-tools.ts';
import { isPlainTalk } from './plain-talk.ts';
import type { Pass, Rules } from './rules.ts';
import { convertSchemas } from './schemas.ts';
import { mapServerTools } from './server-tools.ts';
import { ensureFirstUser, trailingAssistant } from './turns.ts';

/**
 * The order matters ("Request passes" in docs/canonical.md): results are paired with calls before ids are made unique, names are final before
 * tools change their form, and empty messages are removed before the passes that look at the order of roles.
 */
const PASSES: readonly Pass[] = [
  refuseHeld,
  pairTools,
  filterSignatures,
  filterForeign,
  mapServerTools,
  mapNames,
  customAsFunctions,
  mapIds,
  media,
  dropUnsaid,
  dropEmpty,
  midSystem,
  mergeRoles,
  ensureFirstUser,
  trailingAssistant,
  wrapRoots,
  convertSchemas,
  fitCacheMarks,
  clamp,
];

/** Those that have something to do where nothing but plain text is said. */
const OF_PLAIN_TALK: readonly Pass[] = [
  dropEmpty,
  midSystem,
  mergeRoles,
  ensureFirstUser,
  trailingAssistant,
  convertSchemas,
  clamp,
];

export interface Prepared<C> {
  request: CanonicalRequest;
  /** The caller's context, for all that is told of the prepared request: paths become those of the source. */
  context: C;
}

/** A request as a target wants it. */
export function prepare<C extends { note(note: Note): void; locate?: ((path: string) => string) | undefined }>(
  source: CanonicalRequest,
  rules: Rules,
  context: C,
): Prepared<C> {
  let request = source;
  const located = locatedRules(rules, () => request);
  for (const pass of isPlainTalk(source) ? OF_PLAIN_TALK : PASSES) request = pass(request, located, source);
  return { request, context: locatedContext(context, request) };
}
