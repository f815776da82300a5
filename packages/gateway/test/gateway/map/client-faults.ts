import type { Fault } from './fault.ts';

const BEFORE_ANSWER = 'the request is refused before it is known what it asks for';

/** The table "Clients" of docs/reliability.md. */
export const CLIENT_FAULTS: readonly Fault[] = [
  {
    fault: 'leaves, with a FIN or a reset, at any point',
    right: 'the upstream is called off at once, what it reported is counted',
    stream: [
      'client-faults › before its request is whole: $name',
      'client-faults › before the connection to the upstream stands: $name',
      'client-faults › before the headers of the upstream',
      'client-faults › before the first event',
      'client-faults › in an event',
      'client-faults › behind the last content',
      'client-faults › between heartbeats',
      'client-faults › is still billed: $name',
    ],
    whole: [
      'client-faults › before its request is whole: $name',
      'client-faults › before the connection to the upstream stands: $name',
      'client-faults › before a whole answer: $name',
    ],
  },
  {
    fault: 'HTTP/1.0 (the default of nginx towards upstreams): leaves before the response begins',
    right: 'the upstream is called off at once; HTTP/1.0 has no interim response that would tell a half-close from a close',
    stream: [
      'client-faults › that %s before the response begins is gone',
      'client-faults › that closes in a stream is noticed: $name',
    ],
    whole: ['client-faults › that %s before the response begins is gone'],
  },
  {
    fault: 'leaves, and the provider says `on_disconnect: drain`',
    right: 'the answer is read to its end and counted; nobody else is asked',
    stream: ['drain › in the middle of a stream', 'drain › before the first of it', 'drain › and had not read for a while'],
    whole: ['drain › before a whole answer', 'drain › an upstream that has no answer then is not asked again'],
  },
  {
    fault: 'leaves during a pause between attempts',
    right: 'there is no further attempt',
    stream: ['upstream-retry › is not asked again by who has left: $name'],
    whole: ['upstream-retry › is not asked again by who has left: $name'],
  },
  {
    fault: 'reads slowly, or not at all',
    right: 'its upstream waits for it; who reads nothing for too long is left',
    stream: [
      'client-faults › a client that reads slowly gets everything: $name',
      'client-faults › holds its upstream, and is left after a while: $name',
    ],
    whole: ['client-faults › is left with a whole answer, too: $name'],
  },
  {
    fault: 'vanished without a word',
    right: 'the kernel asks after 30 s, ten times a second apart; a beat finds out, too',
    stream: ['client-faults › a client that vanished is asked for by the kernel: $name'],
    whole: ['client-faults › a client that vanished is asked for by the kernel: $name'],
  },
  {
    fault: 'has nothing more to send (half-close)',
    right: 'is served; with HTTP/1.0 and before the response begins it counts as gone',
    stream: ['client-faults › a client that has nothing more to send is still answered: $name'],
    whole: ['client-faults › a client that has nothing more to send is still answered: $name'],
  },
  {
    fault: 'a body that is too large, or a length that lies',
    right: '413 or 400, and the connection is closed',
    stream: [
      'client-requests › is refused by its length, before it is sent',
      'client-requests › is refused while it is sent, and the client reads why',
      'client-requests › a length that is too short: the rest is no request',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'a body that is no JSON, no UTF-8, too deep; keys that stand twice; `__proto__`, half characters, 1e400',
    right: '400 without a stack where it cannot be read; else it is data',
    stream: [
      'client-requests › a body that is %s is refused with 400',
      'client-requests › %s is data',
      'client-requests › keys that stand twice are sent once',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'huge headers, too many, wrong characters, folded, two lengths, chunks and a length',
    right: '400 or 431, and no upstream hears of it',
    stream: [
      'client-requests › a huge header',
      'client-requests › headers of more bytes than allowed',
      'client-requests › more headers than allowed',
      'client-requests › a length and chunks',
      'client-requests › a folded header',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'a hundred requests at once on one connection',
    right: 'answered in their order',
    stream: ['client-requests › a hundred requests at once on one connection are answered in their order: $name'],
    whole: ['client-requests › a hundred requests at once on one connection are answered in their order: $name'],
  },
  {
    fault: 'headers or a body that do not come',
    right: '408, and the connection is closed',
    stream: ['client-requests › headers that do not come', 'client-requests › a body that does not come'],
    whole: ['client-requests › a body that does not come'],
  },
  {
    fault: 'more tools, messages, content parts, calls or keys than allowed',
    right: '400, which names the field and the limit, before anything is converted or sent',
    stream: [
      'client-requests › more messages than allowed',
      'client-requests › one more than limits.$limit is refused before anything is sent',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'tool arguments nested 200,000 levels deep',
    right: '400; passed on untouched, they are for the upstream to judge',
    stream: [
      'deep-arguments › in a request are refused with 400: $name',
      'deep-arguments › in a request that is passed on stay as they are: $name',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'a compressed body that is truncated, corrupt, too large, too dense, or in an unknown coding',
    right: '400, 413, or 415 with the codings that are read',
    stream: [
      'request-encoding › what is truncated or corrupt is refused with 400: $name',
      'request-encoding › a body that is too large when decompressed is refused with 413',
      'request-encoding › a body that grows more than 100 times is refused with 413; a small one may',
      'request-encoding › %s gets 415 and what is accepted',
    ],
    whole: BEFORE_ANSWER,
  },
  {
    fault: 'HTTP/1.0, other methods, absolute targets, doubled slashes, dots, other case',
    right: 'one form of the path decides who is let in and who answers',
    stream: [
      'client-paths › paths and methods',
      'client-paths › HTTP/1.0 is answered without chunks',
      'destinations › request targets',
    ],
    whole: ['client-paths › paths and methods', 'destinations › request targets'],
  },
  {
    fault: 'a client that tries again by itself',
    right:
      '`x-should-retry: false` where that cannot help; the `idempotency-key` goes to the upstream, and the gateway keeps no answers: joining two requests needs its store, which is not there yet',
    stream: ['upstream-answers › %i is not followed', 'upstream-retry › is believed when it says that there is no use in it'],
    whole: ['upstream-answers › %i is not followed'],
  },
];
