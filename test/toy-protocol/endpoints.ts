import type { InterfaceType } from '../../packages/core/src/canonical/request.ts';
import type { HeaderBag, Provider, RequestTarget, Target, WireRequest } from '../../packages/core/src/codec/protocol.ts';
import { objectOrEmpty, textOrEmpty } from '../../packages/core/src/codec/read.ts';

export const PATH = '/toy/chat';

export const detectInterface = (path: string): InterfaceType => (path === PATH ? 'CHAT' : 'PASSTHROUGH');

export const supports = (type: InterfaceType): boolean => type === 'CHAT';

export const buildUrl = (_type: InterfaceType, { provider }: Target): string => provider.base_url + PATH;

export const buildHeaders = ({ api_key: key }: Provider): HeaderBag => ({
  'content-type': 'application/json',
  ...(key !== undefined && { 'toy-key': key }),
});

export function readTarget({ body }: WireRequest): RequestTarget | undefined {
  const { model, stream } = objectOrEmpty(body);
  return textOrEmpty(model) === '' ? undefined : { model: textOrEmpty(model), isStream: stream === true };
}
