import type { CanonicalRequest, HeaderBag } from '@sluice/core';
import { findRoute } from '@sluice/core/engine';
import { PROMPT_PLACE, readCapturedRequests } from '../corpus.ts';

export interface RecordedRequest {
  /** The client, and the number of the request in it. */
  name: string;
  path: string;
  headers: HeaderBag;
  body: object;
}

/** Every conversation request that real clients sent, with this prompt. */
export function recordedRequests(prompt: string): RecordedRequest[] {
  return readCapturedRequests().flatMap(({ name, path, headers, body }) => {
    if (typeof body !== 'object' || body === null) return [];
    const text = JSON.stringify(body).replaceAll(PROMPT_PLACE, prompt);
    return [{ name, path, headers, body: JSON.parse(text) as object }];
  });
}

/** The request as the demo reads it. */
export function decode({ path, headers, body }: RecordedRequest): CanonicalRequest {
  const { client, path: route } = findRoute(path, headers);
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
