/** Random schedules: what clients, upstreams and the operator do, and when. Everything is data, so that a failing one can be shrunk and printed. */
import fc from 'fast-check';

/** The upstreams of the only model, in their order. */
export type Name = 'one' | 'two';

/** When the second upstream is requested, too. */
export const HEDGE_MS = 1000;

/** How long the gateway waits for headers, for the first event and between events. */
export const UPSTREAM_TIMEOUT_MS = 5000;

/** How long a stream waits for content before it is opened with heartbeats. */
export const HOLD_MS = 300;

/** What an upstream does with one request. A late one responds after the timeout of the gateway. */
export type Behaviour =
  | { readonly is: 'good' | 'flood' | 'twice'; readonly ms: number; readonly gap: number }
  /** It stops after so many sixths of its response. */
  | { readonly is: 'cut'; readonly ms: number; readonly gap: number; readonly sixths: number; readonly how: Cut }
  | { readonly is: 'refused'; readonly ms: number; readonly status: number; readonly after: number | undefined };

type Cut = 'reset' | 'end' | 'silence' | 'error';

/** A request of a client, and what the upstreams do with it: once each, the last one for all later attempts. */
export interface RequestPlan {
  readonly client: ClientProtocol;
  readonly isStream: boolean;
  /** Requests with the same topic are equal; undefined for a request of its own. */
  readonly topic: number | undefined;
  /** Whether it has the idempotency key of its topic. */
  readonly isKeyed: boolean;
  /** Only a part of its body is sent. */
  readonly isPartial: boolean;
  /** It runs on when its client leaves; of OpenAI Responses only. */
  readonly isBackground: boolean;
  readonly one: readonly Behaviour[];
  readonly two: readonly Behaviour[];
}

export type ClientProtocol = 'openai-chat' | 'anthropic-messages' | 'openai-responses';

/** What the store does: `slow` responds late, `failing` says that it fails, `full` takes no new exchanges. */
export type StoreState = 'well' | 'slow' | 'failing' | 'full';

/** What the server of limits does. */
export type LimitsState = 'well' | 'away';

type Action =
  | { readonly do: 'send'; readonly visitor: number; readonly plan: RequestPlan }
  /** `repeat`: as SDKs do, the last request once more, on a new connection. */
  | { readonly do: 'pause' | 'resume' | 'reset' | 'close' | 'half-close' | 'repeat'; readonly visitor: number }
  | { readonly do: 'revoke' | 'reload' | 'kill' }
  | { readonly do: 'drain'; readonly ms: number }
  | { readonly do: 'store'; readonly state: StoreState }
  | { readonly do: 'limits'; readonly state: LimitsState };

/** `wait`: milliseconds before it. */
export type Step = { readonly wait: number } & Action;

/** The configuration of the gateway, and the limits of the key. */
export interface Settings {
  readonly retries: number;
  readonly isHedged: boolean;
  readonly isContinued: boolean;
  readonly drains: boolean;
  readonly hasCache: boolean;
  readonly hasBreakers: boolean;
  readonly concurrency: number | undefined;
  readonly budget: string | undefined;
  /** How far away limits are kept, in milliseconds; undefined in the memory of the gateway. */
  readonly limitsMs: number | undefined;
}

export interface Schedule {
  readonly settings: Settings;
  readonly steps: readonly Step[];
}

const delay = fc.constantFrom(0, 1, 50, HOLD_MS + 1, HEDGE_MS - 1, HEDGE_MS + 1, HEDGE_MS + 200, UPSTREAM_TIMEOUT_MS + 1000);

/** Less than the time that the gateway waits for the end of a connection after the end of a response. */
const gap = fc.constantFrom(0, 0, 1, 90, 400);

const behaviour: fc.Arbitrary<Behaviour> = fc.oneof(
  { weight: 24, arbitrary: fc.record({ is: fc.constant('good' as const), ms: delay, gap }) },
  { weight: 4, arbitrary: fc.record({ is: fc.constant('twice' as const), ms: delay, gap }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant('flood' as const), ms: delay, gap }) },
  {
    weight: 20,
    arbitrary: fc.record({
      is: fc.constant('cut' as const),
      ms: delay,
      gap,
      sixths: fc.integer({ min: 0, max: 6 }),
      how: fc.constantFrom<Cut>('reset', 'end', 'silence', 'error'),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      is: fc.constant('refused' as const),
      ms: delay,
      status: fc.constantFrom(400, 401, 404, 429, 500, 503),
      after: fc.constantFrom(undefined, 0, 1, 6),
    }),
  },
);

const behaviours = fc.array(behaviour, { minLength: 1, maxLength: 3 });

const chatClient = fc.record({
  client: fc.constantFrom<ClientProtocol>('openai-chat', 'openai-chat', 'anthropic-messages', 'openai-responses'),
  isBackground: fc.constant(false),
});

const backgroundClient = fc.record({ client: fc.constant<ClientProtocol>('openai-responses'), isBackground: fc.constant(true) });

const request = fc.record({
  isStream: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  topic: fc.constantFrom(undefined, undefined, undefined, 0, 0, 1),
  isKeyed: fc.boolean(),
  isPartial: fc.oneof({ weight: 19, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  one: behaviours,
  two: behaviours,
});

const plan: fc.Arbitrary<RequestPlan> = fc
  .tuple(fc.oneof({ weight: 9, arbitrary: chatClient }, { weight: 1, arbitrary: backgroundClient }), request)
  .map(([client, rest]) => ({ ...client, ...rest }));

const wait = fc.constantFrom(0, 0, 0, 1, 10, 100, HOLD_MS, HEDGE_MS, HEDGE_MS + 1, 3000);

const visitor = fc.nat({ max: 2 });

const visit = fc.record({
  wait,
  do: fc.constantFrom(...(['pause', 'resume', 'reset', 'reset', 'close', 'half-close', 'repeat', 'repeat'] as const)),
  visitor,
});

const send = fc.record({ wait, do: fc.constant('send' as const), visitor, plan });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 9, arbitrary: send },
  { weight: 6, arbitrary: visit },
  { weight: 1, arbitrary: fc.record({ wait, do: fc.constantFrom('revoke' as const, 'reload' as const) }) },
  { weight: 1, arbitrary: fc.record({ wait, do: fc.constant('drain' as const), ms: fc.constantFrom(0, 100, 10_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      wait,
      do: fc.constant('store' as const),
      state: fc.constantFrom<StoreState>('well', 'slow', 'failing', 'full'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ wait, do: fc.constant('limits' as const), state: fc.constantFrom<LimitsState>('well', 'away') }),
  },
);

/** What a gateway process can be made to do from outside. */
const outerStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 9, arbitrary: send },
  { weight: 4, arbitrary: visit },
  { weight: 3, arbitrary: fc.record({ wait, do: fc.constant('kill' as const) }) },
);

const settings: fc.Arbitrary<Settings> = fc.record({
  retries: fc.integer({ min: 0, max: 3 }),
  isHedged: fc.boolean(),
  isContinued: fc.boolean(),
  drains: fc.boolean(),
  hasCache: fc.boolean(),
  hasBreakers: fc.boolean(),
  concurrency: fc.constantFrom(undefined, 1, 2),
  budget: fc.constantFrom(undefined, '100usd/total', '100usd/total', '0.0009usd/total'),
  limitsMs: fc.constantFrom(undefined, undefined, 1, 250),
});

/** For a gateway in this process, whose time is that of the test. */
export const schedules: fc.Arbitrary<Schedule> = fc.record({
  settings,
  steps: fc.array(step, { minLength: 1, maxLength: 12 }),
});

/** For a gateway in a process of its own, which is killed. */
export const killSchedules: fc.Arbitrary<Schedule> = fc.record({
  settings,
  steps: fc
    .tuple(fc.array(send, { minLength: 1, maxLength: 4 }), fc.array(outerStep, { maxLength: 8 }))
    .map(([first, others]) => [...first, ...others]),
});

// ---- in words

/** A schedule in plain words, one line a step. */
export function describeSchedule({ settings: chosen, steps }: Schedule): string {
  let at = 0;
  let number = 0;
  const senders = new Set<number>();
  const lines = steps.map((taken) => {
    at += taken.wait;
    // A repeated request has a number, too, if there was one before.
    const isRequest = taken.do === 'send' || (taken.do === 'repeat' && senders.has(taken.visitor));
    if (taken.do === 'send') senders.add(taken.visitor);
    return `  at ${at} ms: ${describeStep(taken, isRequest ? number++ : 0)}`;
  });
  return [`  the gateway ${describeSettings(chosen)}`, ...lines].join('\n');
}

function describeSettings({ retries, isHedged, isContinued, drains, hasCache, hasBreakers, limitsMs, ...key }: Settings): string {
  const parts = [
    `allows ${retries} retries`,
    isHedged ? `hedges after ${HEDGE_MS} ms` : 'does not hedge',
    isContinued ? 'continues broken streams' : 'ends broken streams',
    drains ? 'reads on when clients leave' : 'hangs up when clients leave',
    hasCache ? 'caches' : 'does not cache',
    hasBreakers ? 'pauses failing targets' : 'never pauses a target',
    limitsMs === undefined ? 'has its limits in memory' : `has its limits ${limitsMs} ms away`,
    `its key has ${key.budget ?? 'no budget'} and ${key.concurrency ?? 'any number of'} requests at the same time`,
  ];
  return parts.join(', ');
}

function describeStep(taken: Step, number: number): string {
  switch (taken.do) {
    case 'send':
      return `client ${taken.visitor} sends request ${number}: ${describePlan(taken.plan)}`;
    case 'pause':
      return `client ${taken.visitor} stops reading`;
    case 'resume':
      return `client ${taken.visitor} reads again`;
    case 'reset':
      return `client ${taken.visitor} resets its connection`;
    case 'close':
      return `client ${taken.visitor} closes its connection`;
    case 'repeat':
      return `client ${taken.visitor} leaves, and repeats its last request, if it had one, as request ${number}`;
    case 'half-close':
      return `client ${taken.visitor} closes its sending side`;
    case 'revoke':
      return 'the key is revoked at once';
    case 'reload':
      return 'the configuration is reloaded, with the targets in the other order';
    case 'kill':
      return 'the gateway is killed and starts again';
    case 'drain':
      return `the gateway stops, within ${taken.ms} ms`;
    case 'store':
      return `the store is ${taken.state}`;
    case 'limits':
      return `the server of limits, if there is one, is ${taken.state}`;
    default:
      return taken satisfies never;
  }
}

function describePlan({ client, isStream, isBackground, topic, isKeyed, isPartial, one, two }: RequestPlan): string {
  const what = `${client}, ${isStream ? 'a stream' : 'whole'}${isBackground ? ' in the background' : ''}`;
  const equal = topic === undefined ? '' : ` of topic ${topic}${isKeyed ? ' with its idempotency key' : ''}`;
  const part = isPartial ? ', without the end of its body' : '';
  return `${what}${equal}${part}; upstream one ${one.map(describeBehaviour).join(', then ')}; upstream two ${two.map(describeBehaviour).join(', then ')}`;
}

function describeBehaviour(way: Behaviour): string {
  switch (way.is) {
    case 'good':
      return `responds after ${way.ms} ms, ${way.gap} ms an event`;
    case 'flood':
      return `responds with megabytes after ${way.ms} ms, ${way.gap} ms an event`;
    case 'twice':
      return `responds twice after ${way.ms} ms, ${way.gap} ms an event`;
    case 'cut':
      return `sends ${way.sixths}/6 after ${way.ms} ms, ${way.gap} ms an event, then ${CUTS[way.how]}`;
    case 'refused':
      return `responds with ${way.status} after ${way.ms} ms${way.after === undefined ? '' : `, retry after ${way.after} s`}`;
    default:
      return way satisfies never;
  }
}

const CUTS = {
  reset: 'a reset',
  end: 'the end of the connection',
  silence: 'nothing',
  error: 'an error',
} as const satisfies Record<Cut, string>;
