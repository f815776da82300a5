import type { ProtocolId } from '@sluice/core';
import { type Started, startGateway } from '../../../packages/gateway/test/gateway/start.ts';
import { type Outcome, viewError } from './compare.ts';
import type { Json } from './facts.ts';
import { buildBody, type Feature } from './requests.ts';
import type { Sdk, Way } from './sdks.ts';
import { DemoServer } from './upstream.ts';

/** The end of a base URL of each protocol. */
const ROOTS = { 'openai-chat': '/v1', 'anthropic-messages': '', 'openai-responses': '/v1', gemini: '/v1beta' } as const;
ROOTS satisfies Record<ProtocolId, string>;

/** How long the last piece of a stream is held for the first event of a client. */
const HOLD_MS = { direct: 200, through: 30_000 } as const;

interface Cell {
  sdk: Sdk;
  way: Way;
  feature: Feature;
  model: string;
}

/** The demo model, and a gateway before it with the settings of an own provider. */
export class Stage {
  readonly #demo: DemoServer;
  readonly #url: string;
  readonly #gateway: Started;

  private constructor(demo: DemoServer, url: string, gateway: Started) {
    this.#demo = demo;
    this.#url = url;
    this.#gateway = gateway;
  }

  static async set(protocol: ProtocolId, models: readonly string[]): Promise<Stage> {
    const demo = new DemoServer();
    const url = await demo.start();
    const config = {
      providers: { own: { protocol, base_url: url + ROOTS[protocol], api_key: 'k' } },
      // Without an alias: a client uses the same name both ways.
      models: Object.fromEntries(models.map((model) => [model, `own/${model}`])),
    };
    return new Stage(demo, url, await startGateway({ config }));
  }

  async close(): Promise<void> {
    await this.#gateway.close();
    await this.#demo.stop();
  }

  direct(cell: Cell): Promise<Outcome> {
    return this.#send(cell, this.#url, HOLD_MS.direct);
  }

  /** `isEarly`: the first event is to come before the last piece, however long it takes. */
  through(cell: Cell, isEarly: boolean): Promise<Outcome> {
    return this.#send(cell, this.#gateway.url, isEarly ? HOLD_MS.through : HOLD_MS.direct);
  }

  async #send({ sdk, way, feature, model }: Cell, url: string, patienceMs: number): Promise<Outcome> {
    const outcome: Outcome = { events: [], error: undefined, isEarly: false };
    let isHeld = way === 'events';
    let open = (): void => undefined;
    this.#demo.expect(new Promise<void>((resolve) => (open = resolve)));
    const release = (): void => {
      isHeld = false;
      open();
    };
    const timer = setTimeout(release, isHeld ? patienceMs : 0);
    const onEvent = (event: unknown): void => {
      if (isHeld) outcome.isEarly = true;
      release();
      // Gemini's SDK hands out the headers of the response, too.
      const { sdkHttpResponse: _, ...rest } = JSON.parse(JSON.stringify({ event })).event as Json;
      outcome.events.push(typeof event === 'object' ? rest : { event });
    };
    try {
      await sdk.ways[way]?.({ url, body: buildBody(sdk.protocol, feature, model), signal: AbortSignal.timeout(60_000), onEvent });
    } catch (error) {
      outcome.error = viewError(error);
    }
    clearTimeout(timer);
    return outcome;
  }
}
