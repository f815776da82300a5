import { expect, test } from 'vitest';
import { compare, type Outcome, type Verdict } from './through/compare.ts';
import type { Json } from './through/facts.ts';

// What test/clients/through.test.ts calls worse, and what it does not.

const chunk = (delta: Json, finish: string | null = null, more: Json = {}): Json => ({
  id: 'a',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

const call = (index: number, name: string, json: string): Json => ({ index, function: { name, arguments: json } });
const calls = (...all: Json[]): Json => chunk({ tool_calls: all });
const USAGE = { usage: { prompt_tokens: 5, completion_tokens: 2 } };

const END = chunk({}, 'stop', USAGE);
const RIGHT = [chunk({ reasoning_content: 'Well.' }), chunk({ content: 'Hello.' }), calls(call(0, 'f', '{"a":1}')), END];

const outcome = (events: readonly Json[], more: Partial<Outcome> = {}): Outcome => ({
  events: [...events],
  error: undefined,
  isEarly: true,
  ...more,
});

const failed = (events: readonly Json[], error: Partial<NonNullable<Outcome['error']>> = {}): Outcome =>
  outcome(events, {
    error: { class: 'APIError', status: undefined, code: undefined, type: undefined, message: 'failed', ...error },
  });

const clean = outcome(RIGHT);
const without = (at: number): Json[] => RIGHT.filter((_, index) => index !== at);

const ROWS: readonly [name: string, verdict: Verdict, direct: Outcome, through: Outcome][] = [
  ['the same events', 'equal', clean, clean],
  ['the same error', 'equal', failed([], { status: 500 }), failed([], { status: 500 })],
  [
    'text in other pieces',
    'restated',
    clean,
    outcome([...RIGHT.slice(0, 1), chunk({ content: 'Hel' }), chunk({ content: 'lo.' }), ...RIGHT.slice(2)]),
  ],
  ['an event without content less', 'restated', outcome([chunk({}), ...RIGHT]), clean],
  ['reasoning is lost', 'worse', clean, outcome(without(0))],
  ['text is lost', 'worse', clean, outcome(without(1))],
  ['a call is lost', 'worse', clean, outcome(without(2))],
  ['a call is there twice', 'worse', clean, outcome([...RIGHT.slice(0, 3), calls(call(1, 'f', '{"a":1}')), END])],
  ['the arguments of a call change', 'worse', clean, outcome([...RIGHT.slice(0, 2), calls(call(0, 'f', '{"a":2}')), END])],
  ['the name of a call changes', 'worse', clean, outcome([...RIGHT.slice(0, 2), calls(call(0, 'g', '{"a":1}')), END])],
  ['the finish reason is lost', 'worse', clean, outcome(without(3))],
  ['usage is lost', 'worse', clean, outcome([...RIGHT.slice(0, 3), chunk({}, 'stop')])],
  ['everything arrives at the end', 'worse', clean, outcome(RIGHT, { isEarly: false })],
  ['a right response fails', 'worse', clean, failed(RIGHT)],
  ['a lost call is found', 'healed', outcome(without(2)), clean],
  ['an error becomes the whole response', 'healed', failed([]), clean],
  ['an error becomes a part of the response', 'worse', failed([]), outcome(without(2))],
  ['one of two lost things is found', 'healed', outcome(without(2).slice(1)), outcome(without(2))],
  ['one thing is found, and another is lost', 'worse', outcome(without(2)), outcome(without(1))],
  ['a part that looks whole becomes an error', 'reported', outcome(without(2)), failed(without(2))],
  ['text that came before an error is lost', 'worse', failed(RIGHT.slice(0, 2)), failed(RIGHT.slice(0, 1))],
  ['another message', 'renamed', failed([], { status: 502 }), failed([], { status: 502, message: 'provider "own" failed' })],
  ['a status where there was none', 'renamed', failed([]), failed([], { status: 502 })],
  ['another status', 'worse', failed([], { status: 429 }), failed([], { status: 502 })],
  ['a status that is lost', 'worse', failed([], { status: 429 }), failed([])],
];

test.each(ROWS)('%s: %s', (_, verdict, direct, through) => {
  expect(compare('openai-chat', 'events', { direct, through, clean })).toBe(verdict);
});
