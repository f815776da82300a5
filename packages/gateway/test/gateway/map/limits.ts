import type { LimitKey } from '../../../src/config/options.ts';
import type { TestName } from './fault.ts';

/** The tests of every limit, for docs/reliability.md. */
export const LIMIT_TESTS: Readonly<Record<LimitKey, readonly TestName[]>> = {
  headerBytes: ['client-requests › headers above header_bytes are rejected with 431'],
  headers: [
    'client-requests › more headers than header_count are rejected with 431',
    'client-requests › 100 headers are accepted',
  ],
  requestBytes: [
    'client-requests › %i bytes are accepted',
    'client-requests › is rejected while it is sent, and the client gets the error',
  ],
  pendingBytes: [
    'pending-bytes › unfinished bodies of one key are refused before they take the memory of others: %s',
    'pending-bytes › all keys together may hold no more than limits.pending_bytes',
  ],
  requestDepth: ['client-requests › a body that is %s is rejected with 400', 'client-requests › %s is accepted as data'],
  messages: ['client-requests › more messages than allowed are rejected with 400'],
  tools: ['client-requests › one more than limits.$limit is rejected before anything is sent'],
  contentParts: ['client-requests › one more than limits.$limit is rejected before anything is sent'],
  callsPerMessage: ['client-requests › one more than limits.$limit is rejected before anything is sent'],
  metadataKeys: ['client-requests › one more than limits.$limit is rejected before anything is sent'],
  topLevelKeys: ['client-requests › one more than limits.$limit is rejected before anything is sent'],
  objectKeys: ['client-requests › one more than limits.$limit is rejected before anything is sent'],
  headersReadMs: ['client-requests › headers that do not arrive time out with 408'],
  requestReadMs: ['client-requests › a body that does not arrive times out with 408'],
  keepAliveMs: ['client-requests › an idle connection is closed'],
  connectMs: ['upstream-connection › takes the connection and no more'],
  headersMs: ['upstream-connection › an upstream that hangs %s', 'upstream-connection › a whole response that hangs %s'],
  firstEventMs: ['upstream-connection › an upstream that hangs %s', 'gate › a timeout after heartbeats is sent in the stream'],
  betweenEventsMs: ['upstream-connection › an upstream that hangs in the middle: $name'],
  totalMs: [
    'upstream-connection › ends with an error in the stream: $name',
    'upstream-connection › is 504 before any content: $name',
  ],
  upstreamKeepAliveMs: ['answer-sizes › upstream_keep_alive: an idle connection is reused, then closed: $name'],
  eventBytes: ['answer-sizes › event_bytes'],
  choices: ['answer-limits › choices', 'answer-limits › a response above the limit is rejected: $name'],
  toolCalls: ['answer-limits › tool calls', 'answer-limits › a response above the limit is rejected: $name'],
  contentBlocks: ['answer-limits › content blocks', 'answer-limits › a response above the limit is rejected: $name'],
  argumentBytes: ['answer-limits › bytes of arguments', 'answer-limits › a response above the limit is rejected: $name'],
  argumentDepth: ['answer-limits › depth of arguments', 'answer-limits › a response above the limit is rejected: $name'],
  answerBytes: ['answer-sizes › answer_bytes'],
  streamBytes: ['answer-sizes › stream_bytes'],
  errorBytes: ['answer-sizes › error_bytes: stream %s'],
  compressionRatio: [
    'upstream-packing › a decompression bomb is stopped: $name',
    'request-encoding › a body that grows more than 100 times is rejected with 413, unless it is small',
  ],
  writeBufferBytes: ['client-faults › pauses its upstream and is disconnected after stall_timeout: $name'],
  stallMs: [
    'client-faults › pauses its upstream and is disconnected after stall_timeout: $name',
    'client-faults › is disconnected after stall_timeout during a whole response: $name',
  ],
  connections: ['descriptors › limits.connections limits the accepted client connections'],
  streams: ['life › more requests than limits.streams get 503 with Retry-After'],
  heapShed: [
    'life › when memory is tight, new requests get 503; when it is scarce, the stream that stalled longest is cancelled',
  ],
  heapCancel: [
    'life › when memory is tight, new requests get 503; when it is scarce, the stream that stalled longest is cancelled',
  ],
  retriesPerProvider: [
    'upstream-retry › gets at most three attempts',
    'upstream-attempts › the retry on a new connection counts against both limits',
  ],
  retries: [
    'answer-sizes › retries: limits the attempts of one request across all upstreams: $name',
    'upstream-attempts › the retry on a new connection counts against both limits',
  ],
  retryShare: [
    'upstream-retry › is a share of the requests plus a small rate',
    'upstream-retry › holds when an upstream is down for all requests',
  ],
  retryAfterMs: [
    'upstream-retry › is waited for when Retry-After is %s',
    'upstream-retry › is passed to the client when Retry-After is %s',
  ],
  pauseMs: ['upstream-pauses › pauses $title'],
  heartbeatMs: ['gate › a paused stream gets heartbeats between its frames'],
  holdMs: ['gate › a silent stream opens and sends heartbeats; a Gemini stream is held'],
  drainDelayMs: ['life › accepts requests after SIGTERM during drain_delay, and reports that it is not ready'],
  drainMs: ['life › ends streams at the deadline after SIGTERM with an error of each protocol, and exits with 0'],
};

/** What else is held. */
export const PROMISES: Readonly<Record<string, readonly TestName[]>> = {
  'More connections than file descriptors do not end the process: further ones are closed, requests that need one get 503, and the gateway serves again when some are closed.':
    [
      'descriptors › leave descriptors for upstreams, and the gateway serves when some of them close',
      'descriptors › do not end the process when they may use up all descriptors, and requests get 503',
      'descriptors › running out of file descriptors does not count as an upstream failure',
    ],
  'Upstreams take turns of 16 KiB: an endless one does not delay the others, whether its client reads or not.': [
    'fair-reader › take turns in order of arrival',
    'fair-reader › do not delay one that sends little',
  ],
  'For a client that reads nothing, at most 96 KiB are buffered besides its write buffer and the buffers of the system.': [
    'paused-upstream › arrives complete, with a small buffer: %s',
    'paused-upstream › does not make the gateway buffer more and more: $name',
  ],
  'Upstreams, clients and gateways are killed at random points at least 200 times: no crash, no hang, no leaked socket or timer.':
    ['chaos › seed %i', 'chaos › leaves no client and no upstream waiting, and a new process can start'],
  'A client that leaves at any point, also with requests sent ahead, leaves nothing behind: no slot, no reservation, no open row, no timer.':
    [
      'pipelining › a client that reads nothing and %s leaves nothing behind',
      'pipelining › a client that leaves during a stream leaves nothing of the requests behind it',
      'pipelining › a client that stops reading is disconnected, and leaves nothing behind',
    ],
  'A gateway that stops lets streams finish; at the deadline, every client gets an error in its own protocol.': [
    'life › lets streams finish: $name',
    'life › sends an error to clients that still read at the deadline: $name',
    'life › sends an error to clients that have received nothing yet: $name',
    'life › exits at once on a second signal',
  ],
  'A new configuration does not affect running requests; an invalid one is rejected with the reason; settings that need a restart cause a warning.':
    [
      'reload › a stream keeps the upstream, the key and the model it began with: $name',
      'reload › that %s is rejected with the reason, and the previous configuration stays',
      'reload › listen, limits and log keep their values with a warning',
      'reload › warnings of the new file are logged',
    ],
  'A damaged file removes neither client keys nor providers, and every response comes from a configuration in force.': [
    'reload › a reload that removes all client keys is rejected, and clients still need one',
    'reload › a gateway that is bound to a public address keeps its client keys, also with reset: true',
    'reload › a host name that resolves to a public address needs client keys at start',
    'reload › every response comes from a configuration in force, while the file changes',
  ],
  'A gateway that was started from a terminal exits when the terminal closes, after its streams have finished.': [
    'terminal › lets streams finish and exits by SIGHUP: %s',
    'terminal › SIGHUP reloads a gateway without a terminal',
  ],
  'Without client keys only loopback names are allowed in the Host header.': [
    'doors › %j is a name of this machine',
    'doors › %j is not a name of this machine',
    'doors › a hostile Host is truncated and escaped in the error',
  ],
  'Client input never selects a host, and a key is sent only to its own base URL.': [
    'destinations › request targets',
    'destinations › models',
    'destinations › %s (%s) is not sent',
    'destinations › is reported to the client, and no connection is left',
  ],
  'Only documented endpoints are passed through with the operator’s key; with client keys, no stored object can be listed, read, changed or deleted.':
    [
      'passthrough › %s %s is passed through, with and without client keys',
      'passthrough › %s %s accesses stored objects: passed through without client keys, rejected with them',
      'passthrough › %s %s is not a known endpoint',
      'passthrough › other spellings of a stored object do not bypass the rule',
      'known-endpoints › every endpoint is converted, known, or listed as excluded',
    ],
  'An internal error ends only the request in which it occurs.': [
    'life › ends only its own request: $name',
    'life › in a started stream ends it with an error: $name',
  ],
  'No secret appears in a header, a response, an error or the log, even if upstreams repeat it.': [
    'canary › no secret appears in any output',
    'upstream-headers › is redacted in %s',
    'upstream-headers › is redacted in the response of a passed-through endpoint with status %i',
    'upstream-headers › does not reach the client as the name of a header',
  ],
  'Error pages and private addresses of upstreams do not reach clients; errors name the provider whose key was rejected.': [
    'provider-errors › %s is redacted',
    'provider-errors › is reported with the name of the provider: $name',
    'provider-errors › names the provider on passed-through endpoints',
  ],
  'Streams have the same upstream headers as whole responses: request ids, rate limits, retry hints.': [
    'upstream-headers › reach the client, and no others: $name',
    'upstream-headers › are missing in a stream that opened before the upstream responded: $name',
  ],
  'Model names have at most 512 bytes. Invented names fill neither caches nor metric labels.': [
    'model-names › a name of 513 bytes is rejected with 400: $name',
    'model-names › a name of 512 bytes is passed to the upstream: $name',
    'model-names › a name in use stays in the name cache',
    'model-names › real models keep their labels after 200 rejected names: $name',
    'model-names › do not exhaust a gateway with a small heap',
  ],
  'Tokens are estimated if an upstream has no token count endpoint (404, 405, 501); other errors stay errors.': [
    'count-tokens › an upstream without the endpoint (%s, %i) gets an estimate from the gateway',
    'count-tokens › %i is an error',
  ],
  'A WebSocket upgrade on Responses gets 426 where WebSocket is off, so that clients do not retry it; other upgrades are ignored.':
    [
      'upgrade › %s %j gets 426 with the protocol to use where it is off',
      'upgrade › POST with an h2c offer is served over HTTP/1.1: $name',
    ],
  'Compressed requests are decompressed after authentication, within the limits of their content.': [
    'request-encoding › a body is decompressed: $name',
    'request-encoding › a body is not decompressed before authentication',
    'request-encoding › compressed bytes without content are limited',
    'request-encoding › a client that disconnects midway leaves no resources',
  ],
  'A passed-through request goes only to the provider of its model.': [
    'passthrough-models › %s goes to the provider of the model, everything else unchanged',
    'passthrough-models › %s goes to the provider of the model, at any position of its part',
    'passthrough-models › %s: a model of an unknown provider gets 404, as in chat',
    'passthrough-models › %s for %s gets an error with the reason',
    'passthrough-models › %s %s: an ambiguous model is rejected',
    'passthrough-models › hostile bodies are read in linear time',
  ],
};
