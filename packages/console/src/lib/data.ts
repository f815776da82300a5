/** Loads data for pages: reads with a session, and components that follow them. */

import type { AdminResponses } from '@gateway/admin/types';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, type Endpoint, type RequestOptions, request } from './api.ts';
import { describeError, readCsrf, refreshSession } from './session.ts';

/** Reads a resource, or changes something. When the session has ended, the login is shown. */
export async function call<E extends Endpoint>(endpoint: E, options: RequestOptions = {}): Promise<AdminResponses[E]> {
  try {
    return await request(endpoint, endpoint.startsWith('GET ') ? options : { ...options, csrf: readCsrf() });
  } catch (error) {
    if (isDenied(error)) await refreshSession('The session has ended.');
    throw error;
  }
}

const isDenied = (error: unknown): boolean => error instanceof ApiError && (error.status === 401 || error.status === 403);

/** What a component knows of a resource. */
export type Loaded<Value> =
  | { readonly is: 'loading' }
  | { readonly is: 'failed'; readonly message: string; readonly status: number; readonly requestId: string | undefined }
  | { readonly is: 'ready'; readonly value: Value };

/** When a value is loaded again while the old one is still shown. */
interface Refresh {
  readonly everyMs?: number;
  /** Another value of it means that the resource has changed. */
  readonly revision?: string | number | undefined;
}

/** Loads a value for a component, from the start when one of `inputs` changes. */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
  { everyMs, revision }: Refresh = {},
): Loaded<Value> {
  const [state, setState] = useState<Loaded<Value>>({ is: 'loading' });
  const run = useRef<() => void>(() => undefined);
  const seen = useRef(revision);
  // Before anything is drawn: the value of other inputs must not be shown as that of these.
  useLayoutEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setState({ is: 'loading' });
    let [asked, shown] = [0, 0];
    run.current = () => {
      const number = ++asked;
      const show = (loaded: Loaded<Value>): void => {
        // A slow response must not replace that of a later request.
        if (signal.aborted || number < shown) return;
        shown = number;
        setState(loaded);
      };
      load(signal).then(
        (value) => show({ is: 'ready', value }),
        (error: unknown) => show(describeFailure(error)),
      );
    };
    run.current();
    seen.current = revision;
    const timer = everyMs === undefined ? undefined : setInterval(run.current, everyMs);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, inputs);
  useEffect(() => {
    if (seen.current === revision) return;
    seen.current = revision;
    run.current();
  }, [revision]);
  return state;
}

function describeFailure(error: unknown): Loaded<never> {
  const [status, requestId] = error instanceof ApiError ? [error.status, error.problem.request_id] : [0, undefined];
  return { is: 'failed', message: describeError(error), status, requestId };
}
