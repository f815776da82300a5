import { isObject } from '../json/json.ts';
import type { Asked, WireRequest } from './protocol.ts';
import { segmentsOf, unescaped } from './requests.ts';

/** Endpoints that Azure serves below a deployment (openai-node, azure.ts); Responses are for clients that build their own paths. */
export const DEPLOYED: ReadonlySet<string> = new Set([
  'chat/completions',
  'completions',
  'embeddings',
  'audio/speech',
  'audio/transcriptions',
  'audio/translations',
  'images/generations',
  'images/edits',
  'responses',
]);

/**
 * The deployment and the endpoint of `/openai/deployments/{model}/{endpoint}`. The name may hold slashes: the openai SDK 6 does not escape them.
 * Below an endpoint that is not known, a deployment is one segment.
 */
export function deploymentOf(path: string): { model: string; endpoint: string } | undefined {
  const segments = segmentsOf(path);
  const begin = segments.indexOf('deployments') + 1;
  if (begin === 0 || begin >= segments.length - 1) return undefined;
  const lengths = [2, 1].filter((length) => segments.length - length > begin);
  const known = lengths.find((length) => DEPLOYED.has(segments.slice(-length).join('/')));
  const end = known === undefined ? begin + 1 : segments.length - known;
  return { model: unescaped(segments.slice(begin, end).join('/')), endpoint: segments.slice(end).join('/') };
}

/** The model and the stream flag of a request that has them in its body; undefined without a model. Azure's clients name the deployment in the path. */
export function readBodyTarget({ body, path }: WireRequest): Asked | undefined {
  const { model: named, stream }: Record<string, unknown> = isObject(body) ? body : {};
  const model = path.includes('/deployments/') ? (deploymentOf(path)?.model ?? named) : named;
  return typeof model === 'string' && model !== '' ? { model, isStream: stream === true } : undefined;
}
