import type { CanonicalRequest } from '../canonical/request.ts';
import { limitCacheMarks } from './cache-marks.ts';
import { clamp } from './clamp.ts';
import { dropEmpty } from './drop-empty.ts';
import { media } from './media.ts';
import { mergeRoles } from './merge-roles.ts';
import { pairTools } from './pair-tools.ts';
import { mapIds, mapNames, type Renames } from './rename.ts';
import type { Rules } from './rules.ts';

export interface Prepared {
  request: CanonicalRequest;
  /** New tool names by old ones: answers are mapped back. */
  names: Renames;
  ids: Renames;
}

/** A request as a target wants it. The order matters: results must stand by their calls before ids are told apart (CANONICAL §12). */
export function prepare(request: CanonicalRequest, rules: Rules): Prepared {
  const paired = pairTools(request, rules);
  const named = mapNames(paired, rules.toolName, rules);
  const identified = mapIds(named.request, rules.toolId, rules);
  const shown = media(identified.request, rules);
  const spoken = dropEmpty(shown);
  const merged = rules.alternate ? mergeRoles(spoken) : spoken;
  const marked = limitCacheMarks(merged, rules.maxCacheMarks, rules);
  return { request: clamp(marked, rules), names: named.names, ids: identified.ids };
}
