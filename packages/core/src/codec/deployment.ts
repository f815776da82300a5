import { isObject } from '../json/json.ts';
import type { RequestTarget, WireRequest } from './protocol.ts';
import { decodeSegment, splitSegments } from './requests.ts';

/**
 * The model and stream flag of a request with both in its body; undefined without a model. Azure clients name the
 * deployment in the path instead.
 */
export function readBodyTarget({ body, path }: WireRequest): RequestTarget | undefined {
  const { model: named, stream }: Record<string, unknown> = isObject(body) ? body : {};
  const model = path.includes('/deployments/') ? (parseDeployment(path)?.model ?? named) : named;
  return typeof model === 'string' && model !== '' ? { model, isStream: stream === true } : undefined;
}

/**
 * The deployment and endpoint of `/openai/deployments/{model}/{endpoint}`. The name may contain slashes, because the
 * openai SDK 6 does not escape them. Before an unknown endpoint, a deployment is one segment.
 */
export function parseDeployment(path: string): { model: string; endpoint: string } | undefined {
  const segments = splitSegments(path);
  const begin = segments.indexOf('deployments') + 1;
  if (begin === 0 || begin >= segments.length - 1) return undefined;
  const lengths = [2, 1].filter((length) => segments.length - length > begin);
  const known = lengths.find((length) => DEPLOYED.has(segments.slice(-length).join('/')));
  const end = known === undefined ? begin + 1 : segments.length - known;
  return { model: decodeSegment(segments.slice(begin, end).join('/')), endpoint: segments.slice(end).join('/') };
}

/**
 * Endpoints that Azure serves under a deployment (azure.ts of openai-node); `responses` is for clients that build their
 * own paths.
 */
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
