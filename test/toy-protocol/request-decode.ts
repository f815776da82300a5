import type { CanonicalMessage, CanonicalRequest } from '../../packages/core/src/canonical/request.ts';
import { withSource } from '../../packages/core/src/canonical/source.ts';
import type { CodecContext, WireRequest } from '../../packages/core/src/codec/protocol.ts';
import { expectList, expectObject, expectText, optional, unknownFields } from '../../packages/core/src/codec/read.ts';
import { invalid } from '../../packages/core/src/codec/report.ts';
import { decodePart } from './blocks.ts';
import { decodeParameters } from './settings.ts';
import { decodeTools } from './tools.ts';
import { keep, REQUEST_FIELDS } from './wire.ts';

const ROLES: Readonly<Record<string, CanonicalMessage['role']>> = { user: 'user', model: 'assistant', tool: 'tool' };

export function decodeRequest({ body }: WireRequest, context: CodecContext): CanonicalRequest {
  const wire = expectObject(body, 'body');
  const system = optional(wire['system'], 'system', expectText);
  return {
    model: expectText(wire['model'], 'model'),
    ...(system !== undefined && { system: [{ type: 'text', text: system }] }),
    messages: expectList(wire['turns'], 'turns').map((turn, i) => decodeTurn(turn, i, context)),
    ...(wire['tools'] !== undefined && { tools: decodeTools(wire['tools']) }),
    parameters: decodeParameters(wire),
    ...(wire['stream'] === true && { stream: true }),
    ...keep(unknownFields(wire, REQUEST_FIELDS)),
  };
}

function decodeTurn(turn: unknown, i: number, context: CodecContext): CanonicalMessage {
  const { by, parts } = expectObject(turn, `turns[${i}]`);
  const role = ROLES[expectText(by, `turns[${i}].by`)];
  if (!role) throw invalid(`turns[${i}].by`, 'must be user, model or tool');
  const content = expectList(parts, `turns[${i}].parts`).map((part, k) =>
    withSource(`/turns/${i}/parts/${k}`, decodePart(part), context),
  );
  return withSource(`/turns/${i}`, { role, content }, context);
}
