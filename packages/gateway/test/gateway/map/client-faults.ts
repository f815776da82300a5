import type { Fault } from './fault.ts';

const BEFORE_ANSWER = 'the request is rejected before it is routed';

/** The table "Clients" of docs/reliability.md. */
export const CLIENT_FAULTS: readonly Fault[] = [
  {
    fault: 'disconnects at any point, with a FIN or a reset',
    right: 'the upstream request is cancelled at once; reported usage is counted',
    stream: [
      'client-faults › before its request is complete: $name',
      'client-faults › before the upstream connection is established: $name',
      'client-faults › before the headers of the upstream',
      'client-faults › before the first event',
      'client-faults › in an event',
      'client-faults › after the last content',
      'client-faults › between heartbeats',
      'client-faults › its reported usage is still counted: $name',
    ],
    whole: [
      'client-faults › before its request is complete: $name',
      'client-faults › before the upstream connection is established: $name',
      'client-faults › before a whole response: $name',
    ],
  },
  {
    fault: 'HTTP/1.0 (the default of nginx towards upstreams): disconnects before the response begins',
    right:
      'the upstream request is cancelled at once; HTTP/1.0 has no interim response that would distinguish a half-close from a close',
    stream: [
      'client-faults › that %s before the response begins counts as disconnected',
      'client-faults › that closes during a stream is detected: $name',
    ],
    whole: ['client-faults › that %s before the response begins counts as disconnected'],
  },
  {
    fault: 'disconnects, and the provider has `on_disconnect: drain`',
    right: 'the response is read to its end and counted; there is no retry and no fallback',
    stream: [
      'drain › in the middle of a stream, the upstream is read to its end',
      'drain › before the first event, the upstream is read to its end',
      'drain › after it stopped reading, the upstream is read to its end',
    ],
    whole: [
      'drain › before a whole response, the upstream is read to its end',
      'drain › a failed upstream is not retried after the client has left',
    ],
  },
  {
    fault: 'disconnects during a pause between attempts',
    right: 'there is no further attempt',
    stream: ['upstream-retry › is not retried after the client has left: $name'],
    whole: ['upstream-retry › is not retried after the client has left: $name'],
  },
  {
    fault: 'reads slowly, or not at all',
    right: 'its upstream is paused; a client that reads nothing for `stall_timeout` is disconnected',
    stream: [
      'client-faults › a client that reads slowly gets everything: $name',
      'client-faults › pauses its upstream and is disconnected after stall_timeout: $name',
    ],
    whole: ['client-faults › is disconnected after stall_timeout during a whole response: $name'],
  },
  {
    fault: 'vanishes without closing the connection',
    right: 'TCP keep-alive detects it: after 30 s, ten probes one second apart; a heartbeat detects it as well',
    stream: ['client-faults › a vanished client is detected by TCP keep-alive: $name'],
    whole: ['client-faults › a vanished client is detected by TCP keep-alive: $name'],
  },
  {
    fault: 'has nothing more to send (half-close)',
    right: 'is served; with HTTP/1.0, before the response begins, it counts as disconnected',
    stream: ['client-faults › a half-closed client still gets its response: $name'],
    whole: ['client-faults › a half-closed client still gets its response: $name'],
  },
  {
    fault: 'a body that is too large, or a wrong content-length',
    right: '413 or 400, and the connection is closed',
    stream: [
      'client-requests › is rejected by its content-length before it is sent',
      'client-requests › is rejected while it is sent, and the client gets the error',
      'client-requests › with a short content-length, the rest is not a valid request',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'a body that is not JSON, not UTF-8 or too deep; duplicate keys; `__proto__`, lone surrogates, 1e400',
    right: '400 without a stack trace if it cannot be parsed; otherwise it is data',
    stream: [
      'client-requests › a body that is %s is rejected with 400',
      'client-requests › %s is accepted as data',
      'client-requests › duplicate keys are sent once',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'huge headers, too many, wrong characters, folded, two lengths, chunks and a length',
    right: '400 or 431, and nothing is sent upstream',
    stream: [
      'client-requests › a huge header',
      'client-requests › headers above header_bytes are rejected with 431',
      'client-requests › more headers than header_count are rejected with 431',
      'client-requests › a length and chunks',
      'client-requests › a folded header',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'a hundred requests at once on one connection',
    right: 'served in order, one after the other; more than 128 that wait end the connection',
    stream: ['client-requests › a hundred pipelined requests are served in order: $name'],
    whole: ['client-requests › a hundred pipelined requests are served in order: $name'],
  },
  {
    fault: 'headers or a body that do not arrive',
    right: '408, and the connection is closed',
    stream: [
      'client-requests › headers that do not arrive time out with 408',
      'client-requests › a body that does not arrive times out with 408',
    ],
    whole: ['client-requests › a body that does not arrive times out with 408'],
  },
  {
    fault: 'more tools, messages, content parts, calls or keys than allowed',
    right: '400 with the field and the limit, before anything is converted or sent',
    stream: [
      'client-requests › more messages than allowed are rejected with 400',
      'client-requests › one more than limits.$limit is rejected before anything is sent',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'tool arguments nested 50,000 levels deep',
    right: '400; passed-through requests are forwarded unchanged',
    stream: [
      'deep-arguments › in a request are rejected with 400: $name',
      'deep-arguments › in a passed-through request are forwarded unchanged: $name',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'a compressed body that is truncated, corrupt, too large, too dense, or in an unknown coding',
    right: '400, 413, or 415 with the accepted encodings',
    stream: [
      'request-encoding › a truncated or corrupt body is rejected with 400: $name',
      'request-encoding › a body that is too large when decompressed is rejected with 413',
      'request-encoding › a body that grows more than 100 times is rejected with 413, unless it is small',
      'request-encoding › %s gets 415 with the accepted encodings',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'HTTP/1.0, other methods, absolute targets, doubled slashes, dots, other case',
    right: 'authentication and routing use the same normalized path',
    stream: [
      'client-paths › paths and methods',
      'client-paths › HTTP/1.0 responses are not chunked',
      'destinations › request targets',
    ],
    whole: ['client-paths › paths and methods', 'destinations › request targets'],
  },
  {
    fault: 'retries by itself',
    right:
      '`x-should-retry: false` where a retry cannot help; with the same `idempotency-key` it joins the running response or gets the stored one, and is charged once',
    stream: [
      'idempotency › a finished request is replayed byte for byte, and charged once',
      'idempotency › receives the same response: $name',
      'upstream-answers › %i is not followed',
      'upstream-retry › x-should-retry: false overrides the default verdict',
    ],
    whole: [
      'idempotency › a finished request is replayed byte for byte, and charged once',
      'upstream-answers › %i is not followed',
    ],
  },
];
