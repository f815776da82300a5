import type { Note } from '@sluice/core';
import type { Result } from '../exchange/conversation.ts';
import type { Services } from '../exchange/services.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Incoming } from './handle.ts';

/** Records a finished exchange in the metrics and the log. */
export function record(incoming: Incoming, result: Result, seconds: number, { log, metrics }: Services): void {
  count(incoming, result, seconds, metrics);
  if (log.isLevelEnabled('info')) log.info(buildLine(incoming, result, seconds), 'answered');
}

function count({ route }: Incoming, result: Result, seconds: number, metrics: Metrics): void {
  const { status, provider = '', model = '', upstream = '', notes, usage } = result;
  const series = result.series ?? metrics.of({ provider, model, client_protocol: route.client.id, upstream_protocol: upstream });
  series.answered(status, seconds);
  for (const { code } of notes) series.noted(code);
  if (usage) {
    series.tokens('input', usage.input_tokens);
    series.tokens('output', usage.output_tokens);
  }
}

/** A loss in every message makes many notes; the first ones are enough to find the cause. */
const MAX_CHANGES = 20;
const MAX_CHANGE_CHARS = 120;

/** What was changed, and where. Without messages, which may quote the request. */
const buildChange = ({ code, path, feature }: Note): object => ({
  code,
  path: path.slice(0, MAX_CHANGE_CHARS),
  feature: feature.slice(0, MAX_CHANGE_CHARS),
});

function buildLine({ id, request, route }: Incoming, result: Result, seconds: number): object {
  const { status, ending, error, provider, model, attempts, notes, tried = [], usage } = result;
  return {
    request_id: id,
    method: request.method,
    // Without the query, which may contain a key.
    path: route.path.split('?', 1)[0],
    status,
    ending,
    ...(provider && { provider, model, attempts }),
    ...(tried.length > 0 && { tried }),
    ...(notes.length > 0 && { notes: notes.length, changes: notes.slice(0, MAX_CHANGES).map(buildChange) }),
    ...(usage && { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens }),
    ...(error && { error: error.code, reason: error.message }),
    ms: Math.round(seconds * 1000),
  };
}
