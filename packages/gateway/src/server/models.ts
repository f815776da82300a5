import { CodecError, encodeModelInfo, encodeModels, type ProtocolCodec } from '@sluice/core';
import type { Directory } from '../exchange/services.ts';
import type { Route } from './route.ts';

const modelOf = (id: string) => ({ id, owned_by: id.includes('/') ? id.slice(0, id.indexOf('/')) : 'sluice' });

/** The models that clients may ask for, in the shape that their SDK wants. */
export const answerModels = (client: ProtocolCodec, { models }: Directory): unknown =>
  encodeModels({ models: models.map(modelOf), has_more: false }, { to: client });

export function answerModelInfo({ client, path }: Route, directory: Directory): unknown {
  const id = idOf(path);
  if (directory.resolve(id, client.id).length > 0) return encodeModelInfo(modelOf(id), { to: client });
  throw new CodecError({
    code: 'NOT_FOUND',
    message: `the model ${JSON.stringify(id.slice(0, 200))} is not known here`,
    http_status: 404,
  });
}

function idOf(path: string): string {
  const [plain = ''] = path.split('?', 1);
  const id = plain.slice(plain.indexOf('/models/') + '/models/'.length);
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
