import { type Codec, CodecError } from '@sluice/core';
import { checkModelName, encodeModelInfo, encodeModels, type Route } from '@sluice/core/engine';
import type { Directory, Services } from '../exchange/types.ts';

/** The list of models, in the client's protocol. */
export async function listModels(client: Codec, directory: Directory, { modelLists }: Services): Promise<unknown> {
  const fetched = await Promise.all(directory.unlisted.map((endpoint) => modelLists.listNames(endpoint)));
  const names = [...directory.models, ...fetched.flat()];
  return encodeModels({ models: names.map(buildModel), has_more: false }, { to: client });
}

/** One model, in the client's protocol. Throws when no provider serves it. */
export function describeModel({ client, path }: Route, directory: Directory): unknown {
  const id = readId(path);
  checkModelName(id);
  if (directory.resolve(id, client.id).length > 0) return encodeModelInfo(buildModel(id), { to: client });
  throw new CodecError({
    code: 'NOT_FOUND',
    message: directory.whyUnknown(id),
    http_status: 404,
    param: 'model',
  });
}

const buildModel = (id: string) => ({ id, owned_by: id.includes('/') ? id.slice(0, id.indexOf('/')) : 'sluice' });

function readId(path: string): string {
  const [plain = ''] = path.split('?', 1);
  const id = plain.slice(plain.indexOf('/models/') + '/models/'.length);
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
