import { type Codec, CodecError, checkModelName, encodeModelInfo, encodeModels, type Route } from '@sluice/core';
import type { Directory, Services } from '../exchange/services.ts';

const modelOf = (id: string) => ({ id, owned_by: id.includes('/') ? id.slice(0, id.indexOf('/')) : 'sluice' });

/** The list of models, in the client's protocol. */
export async function answerModels(client: Codec, directory: Directory, { modelLists }: Services): Promise<unknown> {
  const asked = await Promise.all(directory.unlisted.map((speaker) => modelLists.namesOf(speaker)));
  const names = [...directory.models, ...asked.flat()];
  return encodeModels({ models: names.map(modelOf), has_more: false }, { to: client });
}

export function answerModelInfo({ client, path }: Route, directory: Directory): unknown {
  const id = idOf(path);
  checkModelName(id);
  if (directory.resolve(id, client.id).length > 0) return encodeModelInfo(modelOf(id), { to: client });
  throw new CodecError({
    code: 'NOT_FOUND',
    message: directory.whyUnknown(id),
    http_status: 404,
    param: 'model',
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
