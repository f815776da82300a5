import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CanonicalRequest, type HeaderBag, routeOf } from '@sluice/core';
import { SHARED } from '../../../../test/shared.ts';

export interface RecordedRequest {
  /** The client, and the number of the request. */
  name: string;
  path: string;
  headers: HeaderBag;
  body: object;
}

/** The prompt of the recorded runs, in filler. */
const PROMPT = 'loremi dolo sit amet /cons/sadi/elitrse/diam/nonu.eir tem lore ipsu do sit ametc sadi elitrse di no.';

/** Every conversation request that real clients sent, with this prompt. */
export function recordedRequests(prompt: string): RecordedRequest[] {
  if (SHARED === undefined) return [];
  const shared = SHARED;
  return ['requests-shape', 'requests-more'].flatMap((folder) =>
    readdirSync(join(shared, 'clients', folder)).flatMap((file) => {
      const text = readFileSync(join(shared, 'clients', folder, file), 'utf8').replaceAll(PROMPT, prompt);
      const { requests } = JSON.parse(text) as { requests: Partial<RecordedRequest>[] };
      return requests.flatMap(({ path = '', headers = {}, body }, i) =>
        body ? [{ name: `${file.slice(0, -5)} ${i + 1}`, path, headers, body }] : [],
      );
    }),
  );
}

/** The request as the demo reads it. */
export function decode({ path, headers, body }: RecordedRequest): CanonicalRequest {
  const { client, path: route } = routeOf(path, headers);
  return client.request.decode(
    { method: 'POST', path: route, headers, body },
    {
      report: () => undefined,
      note: () => undefined,
      now: () => 0,
      newId: (prefix) => `${prefix}1`,
      profile: client.profileFor(''),
      policy: {},
    },
  );
}
