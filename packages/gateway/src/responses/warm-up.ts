/** `generate: false`, over WebSocket: the input becomes a response without output, which the client continues. */

import { encodeSse } from '@sluice/core';
import { ClientStream } from '../exchange/client-stream.ts';
import type { ModelRequest, Result } from '../exchange/model-request.ts';
import { Race } from '../exchange/race.ts';
import { buildExchangeHeaders, STREAM_HEADERS } from '../exchange/reply.ts';
import type { Services } from '../exchange/types.ts';
import { buildUnstarted } from './background.ts';
import { createId, isJson, type Json } from './items.ts';
import { RequestState, type StateParts } from './request-state.ts';

/** Keeps the input of a request, and responds without an upstream. Costs nothing. */
export async function warmUp(request: ModelRequest, parts: StateParts, services: Services): Promise<Result> {
  const { id, wire, connection, admission } = request;
  const body: Json = isJson(wire.body) ? wire.body : {};
  const state = new RequestState(wire, body, parts);
  const response = buildUnstarted(createId('resp'), body, { status: 'in_progress', background: false, store: state.isStored });
  const completed = { ...response, status: 'completed', usage: NO_USAGE };
  await state.during(async () => {
    state.checkReferences();
    await state.keepLocal(completed);
  });
  const progress = { id, attempts: 0, notes: [], limits: admission?.headers };
  const stream = new ClientStream(connection, {
    headers: () => buildExchangeHeaders(progress, STREAM_HEADERS.sse),
    heartbeat: undefined,
    heartbeatMs: 0,
    stallMs: services.limits.stallMs,
    onStall: (isStalled) => services.streams.stall(connection, isStalled),
  });
  const events: [string, Json][] = [
    ['response.created', response],
    ['response.in_progress', response],
    ['response.completed', completed],
  ];
  const claim = new Race(connection).conclude();
  for (const [number, [type, object]] of events.entries())
    stream.write(
      Buffer.from(encodeSse({ event: type, data: JSON.stringify({ type, sequence_number: number, response: object }) })),
      claim,
    );
  stream.end(claim);
  return { ...progress, status: 200, ending: 'answered' };
}

const NO_USAGE = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};
