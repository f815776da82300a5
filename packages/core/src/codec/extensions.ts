import type { Note } from '../canonical/notes.ts';
import type { Node, ProtocolId } from '../canonical/protocol.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import { objectOf } from './read.ts';

export interface Keeper {
  /** What the decoder kept of a node under wire names. */
  fieldsOf(node: Node): JsonObject;
  /** As a part of a node: nothing when there is nothing to keep. */
  keep(fields: JsonObject | undefined): Node;
}

/** Fields that only one protocol knows: kept beside the canonical ones on the way in, written back on the way out. */
export const keeper = (protocol: ProtocolId): Keeper => ({
  fieldsOf: (node) => objectOf(node.extensions?.[protocol]),
  keep: (fields) => (fields && Object.keys(fields).length > 0 ? { extensions: { [protocol]: fields } } : {}),
});

type Loss = Omit<Note, 'code'>;

/** Whose the fields are, and those of them that others say, too, or do not miss; with a `/` behind, it is their fields that are such. */
interface Source {
  id: string;
  idle?: ReadonlySet<string> | undefined;
}

/** Tells each of the fields that only its own protocol knows. `within`: what they stand in, in the words of `idle`. */
export function eachUnsaid(
  fields: JsonObject,
  { id, idle }: Source,
  path: string,
  within: string,
  tell: (loss: Loss, field: string) => void,
): void {
  for (const name of Object.keys(fields)) {
    const field = within + name;
    if (idle?.has(field)) continue;
    const value = fields[name];
    const place = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (idle?.has(`${field}/`) && isObject(value)) eachUnsaid(value, { id, idle }, place, `${field}/`, tell);
    else tell({ path: place, feature: `unknown.${name}`, message: `only ${id} knows ${name}` }, field);
  }
}

/** How many tokens were embedded, in the words of those who count. */
const COUNTS: ReadonlySet<string> = new Set([
  'usage/',
  'usage/prompt_tokens',
  'usage/total_tokens',
  'usageMetadata/',
  'usageMetadata/promptTokenCount',
  'usageMetadata/totalTokenCount',
]);

/** What of a question for embeddings, or of the answer, only another protocol knows. */
export function eachForeign({ extensions = {} }: Node, own: ProtocolId, path: string, tell: (loss: Loss) => void): void {
  for (const [id, fields] of Object.entries(extensions))
    if (id !== own) eachUnsaid(fields, { id, idle: COUNTS }, `${path}/extensions/${id}`, '', tell);
}
