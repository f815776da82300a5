import type { LimitKey } from '../../../src/config/options.ts';
import type { TestName } from './fault.ts';

/** The tests of every limit, for docs/reliability.md. */
export const LIMIT_TESTS: Readonly<Record<LimitKey, readonly TestName[]>> = {
  headerBytes: ['client-requests › headers of more bytes than allowed'],
  headers: ['client-requests › more headers than allowed', 'client-requests › 100 headers are'],
  requestBytes: ['client-requests › %i bytes are not', 'client-requests › is refused while it is sent, and the client reads why'],
  requestDepth: ['client-requests › a body that is %s is refused with 400', 'client-requests › %s is data'],
  messages: ['client-requests › more messages than allowed'],
  tools: ['client-requests › one more than limits.$limit is refused before anything is sent'],
  contentParts: ['client-requests › one more than limits.$limit is refused before anything is sent'],
  callsPerMessage: ['client-requests › one more than limits.$limit is refused before anything is sent'],
  metadataKeys: ['client-requests › one more than limits.$limit is refused before anything is sent'],
  topLevelKeys: ['client-requests › one more than limits.$limit is refused before anything is sent'],
  headersReadMs: ['client-requests › headers that do not come'],
  requestReadMs: ['client-requests › a body that does not come'],
  keepAliveMs: ['client-requests › an idle connection is closed'],
  connectMs: ['upstream-connection › takes the connection and no more'],
  headersMs: ['upstream-connection › an upstream that hangs %s', 'upstream-connection › a whole answer that hangs %s'],
  firstEventMs: ['upstream-connection › an upstream that hangs %s', 'gate › silence behind the beats, too'],
  betweenEventsMs: ['upstream-connection › an upstream that hangs in the middle: $name'],
  totalMs: [
    'upstream-connection › is ended in the stream: $name',
    'upstream-connection › is 504 as long as nothing was said: $name',
  ],
  upstreamKeepAliveMs: ['answer-sizes › upstream_keep_alive: a connection is kept, and given back: $name'],
  eventBytes: ['answer-sizes › event_bytes'],
  choices: ['answer-limits › choices', 'answer-limits › one more: $name'],
  toolCalls: ['answer-limits › tool calls', 'answer-limits › one more: $name'],
  contentBlocks: ['answer-limits › content blocks', 'answer-limits › one more: $name'],
  argumentBytes: ['answer-limits › bytes of arguments', 'answer-limits › one more: $name'],
  argumentDepth: ['answer-limits › depth of arguments', 'answer-limits › one more: $name'],
  answerBytes: ['answer-sizes › answer_bytes'],
  streamBytes: ['answer-sizes › stream_bytes'],
  errorBytes: ['answer-sizes › error_bytes: stream %s'],
  compressionRatio: [
    'upstream-packing › a bomb is stopped: $name',
    'request-encoding › a body that grows more than 100 times is refused with 413; a small one may',
  ],
  writeBufferBytes: ['client-faults › holds its upstream, and is left after a while: $name'],
  stallMs: [
    'client-faults › holds its upstream, and is left after a while: $name',
    'client-faults › is left with a whole answer, too: $name',
  ],
  connections: ['descriptors › limits.connections is how many connections of clients are accepted'],
  streams: ['life › more exchanges than there are places are refused, and told when to come back'],
  heapShed: ['life › when memory is tight, new requests are refused; when it is scarce, the longest stalled stream goes'],
  heapCancel: ['life › when memory is tight, new requests are refused; when it is scarce, the longest stalled stream goes'],
  retriesPerProvider: [
    'upstream-retry › is asked three times and no more',
    'upstream-attempts › the repeat on a new connection counts against both',
  ],
  retries: [
    'answer-sizes › retries: so many for one request, whoever is asked: $name',
    'upstream-attempts › the repeat on a new connection counts against both',
  ],
  retryShare: [
    'upstream-retry › is a share of the requests, and a little by time',
    'upstream-retry › is kept when an upstream is down for everybody',
  ],
  retryAfterMs: [
    'upstream-retry › is waited for, when it asks for %s',
    'upstream-retry › goes to the client, when it asks for %s',
  ],
  heartbeatMs: ['gate › a stream that pauses is kept alive between its frames'],
  holdMs: ['gate › a silent stream opens and beats, and Gemini’s is only held'],
  drainMs: ['life › ends its streams at the deadline after SIGTERM in the words of all four, and itself with 0'],
};

/** What else is held. */
export const PROMISES: Readonly<Record<string, readonly TestName[]>> = {
  'More connections than file descriptors do not end the process: further ones are closed, requests that need one get 503, and the gateway serves again when some are closed.':
    [
      'descriptors › leave descriptors for upstreams, and the gateway serves when some of them close',
      'descriptors › do not end the process when they may use up all descriptors, and requests get 503',
      'descriptors › running out of file descriptors is not the fault of the upstream',
    ],
  'Upstreams take turns of 16 KiB: one that sends without end, for a client that reads or does not, does not hold up the others.':
    ['fair-reader › take turns, in the order in which they came', 'fair-reader › do not hold back one that sends little'],
  'A client that reads nothing holds at most 96 KiB of what its upstream sent, beside its write buffer and the buffers of the system.':
    [
      'paused-upstream › is whole, and little of it is buffered: %s',
      'paused-upstream › does not make the gateway hold more and more of its upstream: $name',
    ],
  'Upstreams, clients and gateways are killed at random points, 200 times and more: no crash, no hang, no socket and no timer is left.':
    ['chaos › seed %i', 'chaos › leaves no client and no upstream waiting, and another takes its place'],
  'A gateway that stops lets streams come to their end; at the deadline, every client is told in its own words.': [
    'life › lets streams come to their end: $name',
    'life › tells who still reads at the deadline: $name',
    'life › and who has read nothing yet: $name',
    'life › ends at once at a second signal',
  ],
  'A new configuration does not touch what runs; a bad one is refused with its reason; what needs a restart is warned of.': [
    'reload › a stream keeps the upstream, the key and the model it began with: $name',
    'reload › because it %s is refused with its reason, and the one before holds',
    'reload › is warned of: the socket, the limits and the log stay',
    'reload › what is doubtful about the new file is said',
  ],
  'A damaged file removes neither client keys nor providers, and every response comes from a configuration in force.': [
    'reload › a reload that removes all client keys is rejected, and clients still need one',
    'reload › a gateway that is bound to a public address keeps its client keys, also with reset: true',
    'reload › a host name that leads to a public address is no start without client keys',
    'reload › every response comes from a configuration in force, whatever the file is in between',
  ],
  'A gateway that was started from a terminal ends with it, after its streams have ended.': [
    'terminal › lets streams end, and ends by SIGHUP: %s',
    'terminal › SIGHUP reloads a gateway without a terminal',
  ],
  'Without client keys only loopback names are allowed in the Host header.': [
    'doors › %j is a name of this machine',
    'doors › %j is not a name of this machine',
    'doors › a hostile host is cut and escaped in the message',
  ],
  'Nothing that a client sends chooses a host, and a key is sent to no address but its own.': [
    'destinations › request targets',
    'destinations › models',
    'destinations › %s (%s) is not made',
    'destinations › is told to the client, and nothing of it is left',
  ],
  'Only documented endpoints are passed on with the operator’s key; with client keys, no stored object is listed, read, changed or deleted.':
    [
      'passthrough › %s %s is passed on, with and without client keys',
      'passthrough › %s %s reaches stored objects: passed on without client keys, refused with them',
      'passthrough › %s %s is not a known endpoint',
      'passthrough › other spellings of a stored object do not get past the rule',
      'known-endpoints › every endpoint is converted, known, or left out on purpose',
    ],
  'A fault of ours ends one exchange, and no other.': [
    'life › ends one exchange and no other: $name',
    'life › in a stream that has begun ends it with an error: $name',
  ],
  'No secret leaves in a header, an answer, an error or the log, whatever upstreams repeat.': [
    'canary › nothing of them left',
    'upstream-headers › is redacted in %s',
    'upstream-headers › is redacted in the answer of a passed-on endpoint with status %i',
    'upstream-headers › does not reach the client as the name of a header',
  ],
  'Error pages and private addresses of upstreams do not reach clients; errors name the provider whose key was rejected.': [
    'provider-errors › %s is redacted',
    'provider-errors › is reported as that of the provider: $name',
    'provider-errors › names the provider on passed-on endpoints',
  ],
  'Streams carry the same upstream headers as whole responses: request ids, rate limits, retry hints.': [
    'upstream-headers › reach the client, and no others: $name',
    'upstream-headers › are missing in a stream that had to open before the upstream answered: $name',
  ],
  'Model names have at most 512 bytes. Invented names fill neither caches nor metric labels.': [
    'model-names › a name of 513 bytes is rejected with 400: $name',
    'model-names › a name of 512 bytes is passed to the upstream: $name',
    'model-names › a name in use stays in the name cache',
    'model-names › real models keep their labels after 200 rejected names: $name',
    'model-names › leave a gateway with a small heap answering',
  ],
  'Tokens are estimated where an upstream has no endpoint to count them (404, 405, 501); other errors stay errors.': [
    'count-tokens › an upstream without the endpoint (%s, %i) is answered for with an estimate',
    'count-tokens › %i is an error',
  ],
  'A WebSocket upgrade on Responses gets 426 and is not tried again; other upgrades are ignored.': [
    'upgrade › %s %j is answered with 426 and the protocol to use',
    'upgrade › POST with an offer of h2c is answered over HTTP/1.1: $name',
  ],
  'Compressed requests are decompressed after authentication, within the limits of their content.': [
    'request-encoding › a body is decompressed: $name',
    'request-encoding › a body is not decompressed before the client is known',
    'request-encoding › compressed bytes without content are limited, too',
    'request-encoding › a client that leaves in the middle leaves nothing behind',
  ],
  'A request that is passed on goes to the provider that its model names, and to no other.': [
    'passthrough-models › %s goes to the provider of the model, with everything else to the letter',
    'passthrough-models › %s goes to the provider of the model, wherever its part stands',
    'passthrough-models › %s: a model of an unknown provider gets 404, as in chat',
    'passthrough-models › %s for %s gets an error that says why',
    'passthrough-models › %s %s: what could be read in two ways is refused',
    'passthrough-models › hostile bodies are read in linear time',
  ],
};
