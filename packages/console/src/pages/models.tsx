/** Models and prices: names of the configuration with their targets, limits and prices, and the price of any model. */

import type { AdminResponses, Model } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, useLoaded } from '../lib/data.ts';
import { formatCount } from '../lib/format.ts';
import { formatRoute } from '../lib/router.ts';
import { describeError } from '../lib/session.ts';
import { Await, Failure, ScrollRegion, Section } from '../ui/parts.tsx';
import '../manage/manage.css';

type Price = NonNullable<AdminResponses['GET prices']['price']>;

/** The page of models. */
export default function Models(): JSX.Element {
  const load = async (signal: AbortSignal) => {
    const [{ models }, prices] = await Promise.all([call('GET models', { signal }), call('GET prices', { signal })]);
    return { models, prices };
  };
  const state = useLoaded(load, []);
  return (
    <div class="page">
      <header class="section">
        <h1>Models and prices</h1>
      </header>
      <Await state={state}>
        {({ models, prices }) => (
          <>
            {models.length === 0 ? (
              <p>
                The configuration names no models. Requests for <code>PROVIDER/MODEL</code> work without a name; the price of each
                can be looked up below.
              </p>
            ) : (
              <ModelTable models={models} />
            )}
            <p class="muted">
              Prices are US dollars per million tokens, of version {prices.version}.{' '}
              {prices.configured.length > 0 && `Prices of the configuration: ${prices.configured.join(', ')}.`}
            </p>
          </>
        )}
      </Await>
      <PriceSearch />
    </div>
  );
}

function ModelTable({ models }: { models: readonly Model[] }): JSX.Element {
  return (
    <ScrollRegion label="Models">
      <table class="figures">
        <thead>
          <tr>
            {['name', 'provider', 'upstream model', 'context', 'output limit', 'input', 'cached', 'output', 'price from'].map(
              (title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {models.flatMap(({ id, targets }) =>
            targets.map(({ provider, model, max_output_tokens, price }, index) => (
              <tr key={`${id} ${provider} ${model} ${index}`}>
                <th scope="row" class="cut">
                  {index === 0 ? (
                    <a href={formatRoute({ page: 'exchanges', parameters: { filter: buildFilter(id) } })}>{id}</a>
                  ) : (
                    '… then'
                  )}
                </th>
                <td>{provider}</td>
                <td class="wrap">{model}</td>
                <td class="number">{formatCount(price.context_window)}</td>
                <td class="number">{formatCount(max_output_tokens)}</td>
                <PriceCells price={price} />
              </tr>
            )),
          )}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

const buildFilter = (model: string): string => `model:${/\s/.test(model) ? `"${model}"` : model}`;

const PRICED = ['input', 'cache_read', 'output'] as const;

const PriceCells = ({ price }: { price: Price }): JSX.Element => (
  <>
    {PRICED.map((bucket) => (
      <td key={bucket} class="number">
        {formatRate(price, bucket)}
      </td>
    ))}
    <td>{SOURCES[price.source] ?? price.source}</td>
  </>
);

const SOURCES: Readonly<Record<string, string>> = {
  configuration: 'configuration',
  snapshot: 'price list',
  default_price: 'default_price',
  free: 'free',
  unknown: 'unknown',
};

/** `$3`, and `+` where larger prompts cost more. */
function formatRate({ rates, source }: Price, bucket: string): string {
  const rate = rates[bucket];
  if (source === 'free') return '$0';
  if (!rate) return '–';
  return `$${rate.micros_per_million / 1e6}${rate.tiers.length > 0 ? '+' : ''}`;
}

/** The price of any model of any provider. */
function PriceSearch(): JSX.Element {
  const [found, setFound] = useState<{ name: string; price: Price } | { message: string }>();
  const search = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget instanceof HTMLFormElement ? new FormData(event.currentTarget) : undefined;
    const name = String(form?.get('model') ?? '').trim();
    const slash = name.indexOf('/');
    if (slash < 1 || slash === name.length - 1) {
      setFound({ message: 'write PROVIDER/MODEL, such as openai/gpt-5' });
      return;
    }
    const query = { provider: name.slice(0, slash), model: name.slice(slash + 1) };
    try {
      const { price } = await call('GET prices', { query });
      setFound(price ? { name, price } : { message: `no price of ${name} is known` });
    } catch (error) {
      setFound({ message: describeError(error) });
    }
  };
  return (
    <Section title="Look up a price">
      <form class="row" onSubmit={(event) => void search(event)}>
        <label for="price-model">Provider and model</label>
        <input id="price-model" name="model" placeholder="openai/gpt-5" spellcheck={false} autocomplete="off" required />
        <button type="submit">Look up</button>
      </form>
      {found && 'message' in found && <Failure message={found.message} />}
      {found && 'price' in found && <PriceFacts name={found.name} price={found.price} />}
    </Section>
  );
}

/** What is charged by the piece. All else is charged by the token. */
const EVENTS: Readonly<Record<string, string>> = { request: 'requests', web_search: 'web searches' };

function PriceFacts({ name, price }: { name: string; price: Price }): JSX.Element {
  const listed = price.listed_as === null ? '' : ` as ${price.listed_as}`;
  return (
    <>
      <p>
        <strong>{name}</strong>: {SOURCES[price.source] ?? price.source}
        {listed}; context {formatCount(price.context_window)}. US dollars for a million of each:
      </p>
      <dl class="facts">
        {Object.entries(price.rates).map(([bucket, { micros_per_million, tiers }]) => (
          <div key={bucket}>
            <dt>{EVENTS[bucket] ?? `${bucket.replaceAll('_', ' ')} tokens`}</dt>
            <dd>
              ${micros_per_million / 1e6}
              {tiers.map(({ above_input_tokens, micros_per_million: more }) => (
                <span key={above_input_tokens} class="muted">
                  {' '}
                  (${more / 1e6} above {formatCount(above_input_tokens)} input tokens)
                </span>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
