/** What all schedules share, wherever their gateway runs: clients, their requests, and the comparison with the model. */
import type { Faultd } from '../gateway/faultd.ts';
import { RawClient } from '../gateway/raw-client.ts';
import { findVisitProblems, listSeen, PRICE, type Seen } from './model.ts';
import { HEDGE_MS, HOLD_MS, type RequestPlan, type Schedule, type Settings, type Step, UPSTREAM_TIMEOUT_MS } from './schedule.ts';
import type { Upstreams } from './upstreams.ts';
import { Visit } from './visitors.ts';

/** The clients of one gateway during one schedule. */
export class TestClients {
  readonly settings: Settings;
  readonly #upstreams: Upstreams;
  readonly visits: Visit[] = [];
  /** The connection that each client uses now. */
  readonly #current = new Map<number, Visit>();
  /** What each client has requested last. */
  readonly #last = new Map<number, RequestPlan>();
  #sent = 0;

  constructor({ settings }: Schedule, upstreams: Upstreams) {
    this.settings = settings;
    this.#upstreams = upstreams;
  }

  /** A step of a client. */
  async visit(step: Extract<Step, { visitor: number }>, url: string, key: string): Promise<void> {
    if (step.do === 'send') return this.#send(step.visitor, step.plan, url, key);
    const visit = this.#current.get(step.visitor);
    if (!visit || (visit.leaving && step.do !== 'repeat')) return;
    switch (step.do) {
      case 'pause':
        return visit.client.pause();
      case 'resume':
        return visit.resume();
      case 'reset':
        return visit.reset();
      case 'close':
        return visit.close();
      case 'half-close':
        return visit.halfClose();
      case 'repeat':
        if (!visit.leaving) visit.reset();
        return this.#repeat(step.visitor, url, key);
      default:
        return step satisfies never;
    }
  }

  async #repeat(visitor: number, url: string, key: string): Promise<void> {
    const plan = this.#last.get(visitor);
    if (plan) await this.#send(visitor, plan, url, key);
  }

  /** On the connection that is open, behind the requests before it, or on a new one. */
  async #send(visitor: number, plan: RequestPlan, url: string, key: string): Promise<void> {
    const number = this.#sent++;
    this.#last.set(visitor, plan);
    const message = plan.topic === undefined ? number : TOPICS + plan.topic;
    this.#upstreams.plan(message, plan);
    let visit = this.#current.get(visitor);
    if (!visit?.isUsable) {
      const client = await RawClient.open(url).catch(() => undefined);
      // A gateway that drains refuses connections.
      if (!client) return;
      visit = new Visit(client);
      this.#current.set(visitor, visit);
      this.visits.push(visit);
    }
    visit.send({ number, message, plan }, key);
  }

  /** Connections that are open now may be closed by the gateway. */
  disturb(): void {
    for (const visit of this.visits) visit.isDisturbed = true;
  }

  /** The gateway is gone, and every connection with it. */
  lose(): void {
    for (const visit of this.visits) visit.leaving ??= 'killed';
  }

  /** All clients read again, and those that sent a part of a request leave. */
  resume(): void {
    for (const visit of this.visits) {
      if (visit.sent.some(({ plan }) => plan.isPartial)) visit.close();
      visit.resume();
    }
  }

  get isOver(): boolean {
    return this.visits.every(({ isOver }) => isOver);
  }

  leave(): void {
    for (const visit of this.visits) visit.client.leave();
  }

  get seen(): Seen[] {
    return this.visits.flatMap(listSeen);
  }

  findProblems(): string[] {
    return this.visits.flatMap((visit) => findVisitProblems(visit, this.settings));
  }
}

/** Messages of topics, beyond those of single requests. */
const TOPICS = 1000;

/** The configuration of the gateway. `scale`: how many times faster than in the schedule its times pass. */
export function buildConfig(settings: Settings, upstreams: Upstreams, { scale = 1, isReversed = false } = {}): object {
  const ms = (value: number): string => `${Math.ceil(value / scale)}ms`;
  const at = (protocol: string, { url }: Faultd): object => ({
    protocol,
    base_url: protocol === 'openai-chat' ? `${url}/v1` : url,
    api_key: 'some-key-0123456789',
    on_disconnect: settings.drains ? 'drain' : 'abort',
  });
  const targets = ['one/m1', 'two/m2'];
  return {
    providers: { one: at('openai-chat', upstreams.one), two: at('anthropic-messages', upstreams.two) },
    models: { m: isReversed ? targets.toReversed() : targets },
    default_price: PRICE,
    recovery: {
      ...(settings.isHedged && { hedge_after: ms(HEDGE_MS) }),
      ...(settings.isContinued && { on_break: 'continue' }),
      retry_same_target: ms(2000),
    },
    limits: {
      retries: settings.retries,
      hold: ms(HOLD_MS),
      heartbeat: ms(2000),
      response_timeout: ms(UPSTREAM_TIMEOUT_MS),
      first_event_timeout: ms(UPSTREAM_TIMEOUT_MS),
      idle_timeout: ms(UPSTREAM_TIMEOUT_MS),
      total_timeout: ms(8 * UPSTREAM_TIMEOUT_MS),
    },
    ...(settings.hasCache && { cache: {} }),
  };
}
