/** Where the time went, and what was counted: a waterfall, tokens by bucket, and cost. */

import type { Capture, Exchange } from '@gateway/admin/types';
import type { JSX } from 'preact';
import { call, useLoaded } from '../lib/data.ts';
import { formatCost, formatDuration } from '../lib/format.ts';
import { type Durations, findLongestGap, listPhases, type Reads } from '../lib/waterfall.ts';
import type { TabProps } from './detail.tsx';

/** The view of times, tokens and cost. */
export function TimingTab({ detail: { exchange, attempts } }: TabProps): JSX.Element {
  return (
    <>
      <Waterfall title="Exchange" durations={exchange} />
      {attempts.length > 1 &&
        attempts.map((attempt) => (
          <Waterfall key={attempt.number} title={`Attempt ${attempt.number}, ${attempt.provider}`} durations={attempt} />
        ))}
      <Gaps exchange={exchange} />
      <Tokens exchange={exchange} />
    </>
  );
}

function Waterfall({ title, durations }: { title: string; durations: Durations }): JSX.Element {
  const phases = listPhases(durations);
  const total = Math.max(1, phases.at(-1)?.to ?? 1);
  return (
    <>
      <h3>
        {title}: {formatDuration(durations.total_ms)}
      </h3>
      <table class="waterfall">
        <tbody>
          {phases.map(({ id, title: phase, from, to }) => (
            <tr key={id}>
              <th scope="row">{phase}</th>
              <td class="number">{formatDuration(to - from)}</td>
              <td class="track">
                <svg aria-hidden="true" preserveAspectRatio="none">
                  <rect
                    class={`w-${id}`}
                    x={`${(from / total) * 100}%`}
                    width={`${Math.max(0.5, ((to - from) / total) * 100)}%`}
                    height="14"
                  />
                </svg>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** The longest silence of a stream, which only a capture knows. */
function Gaps({ exchange: { id, is_stream, outcome } }: { exchange: Exchange }): JSX.Element | null {
  const state = useLoaded(
    async (signal) => (is_stream ? call('GET exchanges/{id}/tape', { id, signal }) : undefined),
    [id, outcome],
  );
  if (state.is !== 'ready' || !state.value?.response) return null;
  const reads = readReads(state.value.response);
  const gap = findLongestGap(reads);
  return (
    <p class="muted">
      {reads.length} writes to the client
      {gap ? `; the longest gap is ${formatDuration(gap.ms)}, ${formatDuration(gap.at)} after the start` : ''}.
    </p>
  );
}

/** The writes of a response; the contract leaves them open. */
function readReads(response: NonNullable<Capture['response']>): Reads {
  const reads = response['reads'];
  return Array.isArray(reads) ? (reads as Reads) : [];
}

/** Tokens by bucket. Buckets that are part of another are indented. */
const BUCKETS = [
  ['input_tokens', 'input'],
  ['cache_read_tokens', '  read from the cache'],
  ['cache_creation_tokens', '  written to the cache'],
  ['input_audio_tokens', '  audio'],
  ['output_tokens', 'output'],
  ['reasoning_tokens', '  reasoning'],
  ['output_audio_tokens', '  audio'],
] as const satisfies readonly (readonly [keyof Exchange, string])[];

function Tokens({ exchange }: { exchange: Exchange }): JSX.Element {
  const { provenance, cost_micros, price_version, possibly_billed, output_tokens, first_token_ms, total_ms } = exchange;
  const streamMs = (total_ms ?? 0) - (first_token_ms ?? 0);
  const speed = output_tokens && first_token_ms !== null && streamMs > 0 ? (output_tokens / streamMs) * 1000 : undefined;
  return (
    <>
      <h3>Tokens and cost</h3>
      <table class="data">
        <tbody>
          {BUCKETS.filter(([name], index) => exchange[name] !== null || index === 0 || name === 'output_tokens').map(
            ([name, title]) => (
              <tr key={name}>
                <th scope="row">{title.replace('  ', '\u2003')}</th>
                <td class="number">{exchange[name]?.toLocaleString('en') ?? '–'}</td>
              </tr>
            ),
          )}
          <tr>
            <th scope="row">counts</th>
            <td>{provenance ?? '–'}</td>
          </tr>
          <tr>
            <th scope="row">speed</th>
            <td>{speed === undefined ? '–' : `${speed.toFixed(1)} tokens/s`}</td>
          </tr>
          <tr>
            <th scope="row">cost</th>
            <td>
              {formatCost(cost_micros)} {price_version && <span class="muted">by prices {price_version}</span>}
              {possibly_billed && <span class="warning"> may be charged although no usage was reported</span>}
            </td>
          </tr>
        </tbody>
      </table>
    </>
  );
}
