/** Extensions: fields that only one protocol has. Decoders keep them, encoders of the same protocol write them back. */
import type { Node, ProtocolId } from '../canonical/protocol.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import type { Loss } from '../passes/rules.ts';
import { objectOrEmpty } from './read.ts';

/** The fields that a protocol's decoder kept of a node, under their wire names. */
export const readFields = (node: Node, protocol: ProtocolId): JsonObject => objectOrEmpty(node.extensions?.[protocol]);

/** Fields of one protocol as a part of a node: `{}` when there are none. */
export const keepFields = (fields: JsonObject | undefined, protocol: ProtocolId): Node =>
  fields && Object.keys(fields).length > 0 ? { extensions: { [protocol]: fields } } : {};

/**
 * The path of a kept field within its node. Decoders record the field's position under it (`withSource`) when the source
 * has the field on another object than the node: fields of a message that are kept on its first block.
 */
export const extensionPath = (protocol: ProtocolId, field: string): string => `extensions/${protocol}/${field}`;

/**
 * Calls `report` for every field that has no canonical form. `within`: the path of the object, in the form of
 * `ignorableFields`.
 */
export function eachProtocolOnlyField(
  fields: JsonObject,
  { id, ignorableFields }: Source,
  path: string,
  within: string,
  report: (loss: Loss, field: string) => void,
): void {
  for (const name of Object.keys(fields)) {
    const field = within + name;
    if (ignorableFields?.has(field)) continue;
    const value = fields[name];
    const pointer = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (ignorableFields?.has(`${field}/`) && isObject(value))
      eachProtocolOnlyField(value, { id, ignorableFields }, pointer, `${field}/`, report);
    else report({ path: pointer, feature: `unknown.${name}`, message: `field "${name}" is specific to ${id}; dropped` }, field);
  }
}

/**
 * The protocol of the fields, and the ones that are not reported because the canonical form has them or clients do not
 * miss them. `name/` in `ignorableFields` covers the fields inside.
 */
interface Source {
  id: string;
  ignorableFields?: ReadonlySet<string> | undefined;
}

/** Calls `report` for every field of an embeddings request or response that only another protocol has. */
export function eachForeignField({ extensions = {} }: Node, own: ProtocolId, path: string, report: (loss: Loss) => void): void {
  for (const [id, fields] of Object.entries(extensions))
    if (id !== own) eachProtocolOnlyField(fields, { id, ignorableFields: COUNTS }, `${path}/extensions/${id}`, '', report);
}

/** Token counts of an embeddings response, under the names of the protocols that count them. */
const COUNTS: ReadonlySet<string> = new Set([
  'usage/',
  'usage/prompt_tokens',
  'usage/total_tokens',
  'usageMetadata/',
  'usageMetadata/promptTokenCount',
  'usageMetadata/totalTokenCount',
]);
