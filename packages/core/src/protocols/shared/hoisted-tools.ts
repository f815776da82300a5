import type { ProtocolId } from '../../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool } from '../../canonical/request.ts';

// Tools that a conversation declares on its way. Other protocols declare all tools at once, so these join the tools of the request; in
// their own protocol the block that declares them is sent, and they are left out.

const HOISTED = 'hoisted';

const identityOf = ({ kind = 'function', namespace = '', name }: CanonicalTool): string =>
  JSON.stringify([kind, namespace, name]);

/** Those of `found` that are new, marked: the first declaration of a name counts. The tools are the caller's own, and are changed. */
export function hoistTools(
  found: readonly CanonicalTool[],
  declared: readonly CanonicalTool[],
  protocol: ProtocolId,
): CanonicalTool[] {
  const known = new Set(declared.map(identityOf));
  return found.filter((tool) => {
    const identity = identityOf(tool);
    if (known.has(identity)) return false;
    known.add(identity);
    tool.extensions = { ...tool.extensions, [protocol]: { ...tool.extensions?.[protocol], [HOISTED]: true } };
    return true;
  });
}

/** The request without the tools that blocks of this protocol declare themselves. */
export function withoutHoisted(request: CanonicalRequest, protocol: ProtocolId): CanonicalRequest {
  const isHoisted = ({ extensions }: CanonicalTool): boolean => extensions?.[protocol]?.[HOISTED] === true;
  if (!request.tools?.some(isHoisted)) return request;
  const { tools, ...rest } = request;
  const left = tools.filter((tool) => !isHoisted(tool));
  return left.length > 0 ? { ...rest, tools: left } : rest;
}
