/**
 * Attacks on the gateway, by surface. Each is made by tests of the suite over real connections: `tests` names them as docs/security.md does,
 * and a name may be that of a whole `describe`. `outcome` is what the tests prove.
 */

/**
 * @typedef {object} Attack
 * @property {string} surface
 * @property {string} attack
 * @property {string} outcome
 * @property {readonly string[]} tests `folder/file › title`
 */

const strangers = {
  'guess, forge, cut and misplace client keys': {
    outcome: '401 before the body is read; none opens',
    tests: [
      'gateway/doors › %s: %s is accepted, and the client key is not forwarded',
      'gateway/doors › a key in the query is accepted only for Gemini, and never logged',
      'gateway/doors › %s needs a client key, whether it exists or not',
      'keys/gateway › credentials',
      'keys/key-book › are kept apart, and 2,000 fuzzed credentials are refused without a read of the store',
    ],
  },
  'every route in every spelling of its path, without a key': {
    outcome: 'the same refusal in all spellings',
    tests: ['security/routes › $name without a key, in any spelling and for any host', 'admin/access › spellings of the path'],
  },
  'smuggle a request, or send what is not HTTP': {
    outcome: 'refused; no second response inside of one that has begun',
    tests: [
      'gateway/client-requests › invalid requests',
      'gateway/pipelining › bytes that are no request end a response that has begun, and are not responded to inside of it',
    ],
  },
  'invent client addresses by headers of proxies': {
    outcome: 'read from trusted proxies alone',
    tests: ['http/client-address › headers of another peer are ignored: %s'],
  },
  'send ahead without reading, then leave': {
    outcome: 'no slot, reservation or row is left; others are served; the gateway stops',
    tests: [
      'gateway/pipelining › many at once: %s',
      'gateway/pipelining › a client that leaves during a stream leaves nothing of the requests behind it',
      'gateway/pipelining › a gateway stops although clients have left behind requests that they sent ahead',
    ],
  },
  'more connections than file descriptors': {
    outcome: 'the process goes on, and serves when some close',
    tests: [
      'gateway/descriptors › leave descriptors for upstreams, and the gateway serves when some of them close',
      'gateway/descriptors › do not end the process when they may use up all descriptors, and requests get 503',
    ],
  },
  'make the gateway build pages of metrics without reading them': {
    outcome: 'one after the other; disconnected after `limits.stall_timeout`',
    tests: [
      'admin/metrics › and sends thousands of requests ahead does not get a page made for each: %s',
      'admin/metrics › is disconnected after limits.stall_timeout: %s',
    ],
  },
};

const pages = {
  'a web page of another origin, or a rebound name': {
    outcome: '403',
    tests: ['gateway/doors › web pages', 'gateway/doors › %j is not a name of this machine'],
  },
  'the session of a browser without its CSRF token': {
    outcome: 'nothing is changed or sent',
    tests: [
      'admin/access › with $sign: refusal $refusal',
      'play › a page of another origin and a session without its token send nothing',
    ],
  },
  'text of models, tools and clients as code in the console': {
    outcome: 'shown as text',
    tests: ['console › no text of a model, tool, error, model id or client becomes code'],
  },
  'guess the admin key, or lock out its holder': {
    outcome: 'five attempts a minute; a long key and a token still open',
    tests: [
      'admin/access › wrong keys are refused after five, also the right one if it is short, and forgiven with time',
      'admin/access › wrong keys keep neither the holder of a long key nor of a token out',
    ],
  },
};

const clients = {
  'read objects of another key: ids in paths, bodies, forms, escapes, other fields': {
    outcome: 'as if they did not exist',
    tests: [
      'responses/objects › an object of another key is not found',
      'responses/objects › an id that no key is known to have',
      'responses/keys › objects of another key',
    ],
  },
  'use models that the key does not have': {
    outcome: '403, whichever field or path names them',
    tests: ['keys/gateway › models'],
  },
  'share the response of another key': {
    outcome: 'never',
    tests: [
      'gateway/idempotency › never share a response, and never a key of the upstream',
      'gateway/response-cache › scope: %s',
    ],
  },
  'a small request that is expanded: repeated references, tools, long conversations': {
    outcome: 'refused before anything is sent',
    tests: ['responses/references › with %s'],
  },
  'bodies and WebSocket messages that never end': {
    outcome: 'limited for each key and in all; closed by a deadline and by `revoke --now`',
    tests: [
      'gateway/pending-bytes › unfinished bodies of one key are refused before they take the memory of others: %s',
      'responses/websocket-gate › messages that do not end',
      'responses/websocket-gate › a key that is revoked while its connection is open',
    ],
  },
  'read nothing, slowly, or no refusals': {
    outcome: 'the upstream is paused; the client is disconnected',
    tests: ['gateway/client-faults › a client that reads nothing', 'responses/websocket-gate › a client that reads no refusals'],
  },
  'small input with much work: boundaries, lists of ids, depth, keys, bombs': {
    outcome: 'bounded, and linear in its size',
    tests: [
      'gateway/idempotency › a boundary of one character that is all over the form takes no longer than another',
      'responses/objects › 1 MB of %s does not stop the event loop for long',
      'gateway/client-requests › one more than limits.$limit is rejected before anything is sent',
      'gateway/request-encoding › a body that grows more than 100 times is rejected with 413, unless it is small',
      'gateway/request-encoding › a body is not decompressed before authentication',
    ],
  },
};

const money = {
  'spend more than a budget: parallel requests at the last cent': {
    outcome: 'the budget is not exceeded',
    tests: [
      'admission/gateway › 500 parallel requests at the last cent spend no more than the budget',
      'admission/shared › 500 parallel requests at the last cent of two nodes admit one',
    ],
  },
  'fields that multiply the cost of a request': {
    outcome: 'the most that it can cost is reserved, or it is refused',
    tests: [
      'admission/worst-case.property › the worst case of a request costs no more than was reserved',
      'admission/passed › completions',
      'admission/passed › other endpoints',
      'admission/gateway › what has another price is refused, unless the model is free or no budget applies',
    ],
  },
  'leave, so that nothing is charged or held': {
    outcome: 'charged for what arrived; nothing stays reserved',
    tests: [
      'admission/gateway › no slot and no reservation is left after 500 clients that leave at any point',
      'admission/gateway › a client that leaves is charged for what has arrived, and its reservation is released',
    ],
  },
  'take the limits store away from several nodes': {
    outcome: 'nodes keep what others are known to hold',
    tests: [
      'admission/shared › a server that is emptied under load never lets more be spent than the budget',
      'admission/shared › killed: a node leaves to the other what that is known to hold',
      'admission/shared › what a dead node held is free after its lease, and what it spent is read from the ledger',
    ],
  },
  'an upstream that responds with 200 and what cannot be used': {
    outcome: 'requested and charged once',
    tests: [
      'gateway/upstream-attempts › a response with status 200 that cannot be used is requested once: $name',
      'admission/gateway › a response with status 200 that cannot be used is charged once',
    ],
  },
};

const tls = {
  'handshakes that do not end, are cut, changed or slow': {
    outcome: 'closed after `limits.header_timeout`; others are served meanwhile',
    tests: [
      'gateway/tls-attacks › handshakes that do not end',
      'gateway/tls › a client that sends nothing is disconnected after header_timeout',
    ],
  },
  'plain HTTP, HTTP/2, SSH and noise at the port': {
    outcome: 'one error that names the scheme, or a closed connection',
    tests: [
      'gateway/tls › %s gets no response but a closed connection',
      'gateway/tls › a thousand connections with plain HTTP cost little',
    ],
  },
  'a second handshake on a connection, old versions, other protocols, odd server names': {
    outcome: 'refused, or without effect',
    tests: [
      'gateway/tls-attacks › a second handshake on a connection (renegotiation)',
      'gateway/tls-attacks › names and protocols of a handshake',
      'gateway/tls › TLS 1.2 and 1.3 are accepted, older versions are not',
    ],
  },
  'bytes below TLS, resets and half-closed connections during a stream': {
    outcome: 'the stream and its upstream request end; nothing is held',
    tests: ['gateway/tls-attacks › a client that has connected', 'gateway/tls › connections behave as without TLS'],
  },
  'certificates that are broken, mixed up or replaced under load': {
    outcome: 'the one before stays; no handshake fails',
    tests: [
      'gateway/tls › the certificate',
      'gateway/tls-attacks › a certificate that changes during handshakes fails none of them',
    ],
  },
};

const processes = {
  'kill a worker, let it hang, revoke a key, fill it with connections': {
    outcome: 'limits admit exactly what is free; others are served; streams of a revoked key end on all workers',
    tests: ['admission/workers › a worker', 'admission/workers › two that run'],
  },
  'kill the gateway during writes': {
    outcome: 'nothing acknowledged is lost or counted twice',
    tests: [
      'store/crash › SIGKILL during acknowledged writes loses nothing and counts nothing twice',
      'admission/crash › a crash between reserve and settle releases the reservation and keeps what was reported',
      'gateway/chaos › kills at any point',
    ],
  },
  'lose, empty or damage the database': {
    outcome: 'no client is admitted; lost rows are logged',
    tests: [
      'keys/admin › admits no client when its database was %s, until a key is created',
      'keys/admin › is not replaced by one in memory, which would be open, when the default folder cannot be used',
      'store/write-ahead-log › rows that a log damaged %s has lost are reported',
    ],
  },
  'damage the configuration while it is read': {
    outcome: 'keys and providers stay',
    tests: [
      'config/reload-rules › at any byte never loses the keys or the providers, and is rejected in the middle of a line',
      'gateway/reload › every response comes from a configuration in force, while the file changes',
    ],
  },
  'hundreds of clients with a stream each; 10,000 with `npm run nightly -- --only clients`': {
    outcome: 'others are served; all memory, slots, rows and file descriptors are given back',
    tests: ['gateway/many-clients › are served, do not keep others waiting, and leave nothing behind'],
  },
};

const upstreams = {
  'bytes that are no HTTP, JSON, UTF-8 or events; wild indexes and names': {
    outcome: 'read or refused; no invented end, no pollution',
    tests: [
      'gateway/upstream-bytes › wild indexes and names',
      'gateway/upstream-bytes › an event whose data %s',
      'gateway/upstream-attempts › a malformed HTTP response',
    ],
  },
  'responses without end, bombs, depth': {
    outcome: 'cancelled at a limit',
    tests: ['gateway/upstream-sizes › sizes', 'gateway/upstream-packing › a decompression bomb is stopped: $name'],
  },
  'two upstreams for one client': {
    outcome: 'one of them writes',
    tests: ['failover/race › a claim', 'failover/race › a lane that waits'],
  },
  'repeat keys, hosts and files in errors': {
    outcome: 'masked in every response, log line and file',
    tests: ['gateway/canary › no secret appears in any output', 'security/leaks › every response, log line and file'],
  },
};

const operators = {
  'a collector of traces that hangs, fails, redirects or sends without end': {
    outcome: 'delays no request and not the end; bounded in bytes',
    tests: ['tracing/collector › a collector that', 'tracing/collector › spans with the content of requests'],
  },
  'secrets in spans, rows, backups and shared configurations': {
    outcome: 'masked, or refused',
    tests: [
      'tracing/collector › a secret',
      'security/client-keys › no row, roll-up or backup has the key that a client sends as %s',
      'config/stored-secrets › a document for all nodes must not have',
    ],
  },
  'hostile files: imports, tapes with links': {
    outcome: 'bounded; nothing outside is read',
    tests: [
      'migrate/import › files that cannot be imported',
      'inputs › a link that leads out of a tape is reported with its path',
    ],
  },
  'a pod in Kubernetes: privileges, tokens, variables of others, disk, trusted addresses': {
    outcome: 'the restricted Pod Security Standard, and no more than it needs',
    tests: ['deploy/chart › a pod of deploy/kubernetes/sluice.yaml'],
  },
};

/** @type {readonly Attack[]} */
export const ATTACKS = Object.entries({
  'strangers on the network': strangers,
  'web pages, admin API': pages,
  'holders of a key': clients,
  money,
  TLS: tls,
  'processes, storage, load': processes,
  'hostile upstreams': upstreams,
  operation: operators,
}).flatMap(([surface, attacks]) => Object.entries(attacks).map(([attack, rest]) => ({ surface, attack, ...rest })));
