import fc from 'fast-check';
import pico from 'picocolors';
import { expect, test } from 'vitest';
import { describeExchange, drawPhases, formatDetail, formatExchange, formatHeader } from '../../src/cli/ledger/exchange-text.ts';
import { measure } from '../../src/cli/ledger/figures.ts';
import { createAttempt, createExchange, NIGHT } from './rows.ts';

const plain = { colors: pico.createColors(false), columns: undefined };

test('a line has id, time, status, protocols, models, tokens, cost, duration and ending', () => {
  expect(formatExchange(createExchange(), plain).split(/ {2,}/)).toEqual([
    'a144084cc0df',
    '2026-11-17 03:30:00Z',
    '200',
    'A→C',
    'fast → groq/llama',
    '1.2k/310',
    '$0.0123',
    '1.00 s',
    'answered',
  ]);
});

test.each([
  [{ state: 'open', http_status: null, total_ms: null, ending: null, cost_micros: null }, ['live', '$?', 'running']],
  [{ http_status: 502, ending: 'failed', error_code: 'UPSTREAM_ERROR' }, ['502', 'failed UPSTREAM_ERROR']],
  [{ attempts: 0, cost_micros: null, provider: null, model: null, upstream_protocol: null }, ['A→–', ' fast ', ' –  ']],
  [{ cost_micros: null }, ['$?']],
  [{ provenance: 'estimated' }, ['~$0.0123']],
  [{ provenance: 'uncertain' }, ['~$0.0123']],
  [{ rules: ['chat/tool-id-empty'], notes_count: 2 }, ['answered, 1 rule, 2 notes']],
  [{ model_requested: 'groq/llama' }, [' groq/llama ']],
  [{ client_protocol: 'new-protocol' }, ['?→C']],
  [{ state: 'crashed', http_status: null, ending: null }, ['crashed']],
] as const)('a line for %j has %j', (row, texts) => {
  const line = formatExchange(createExchange(row as object), plain);
  for (const text of texts) expect(line).toContain(text);
});

test.each([80, 100, 120, 200])('a line fits a terminal of %d columns, and so does its header', (columns) => {
  const row = createExchange({ model_requested: '模'.repeat(100), ending: 'x'.repeat(200), id: 'y'.repeat(300) });
  const style = { colors: plain.colors, columns };
  expect(measure(formatExchange(row, style))).toBeLessThanOrEqual(columns);
  expect(measure(formatHeader(style))).toBeLessThanOrEqual(columns);
});

test('the detail shows attempts, tokens by kind, notes and rules', () => {
  const exchange = createExchange({
    attempts: 2,
    model_answered: 'llama-3.3-70b',
    key_id: 'k1',
    key_name: 'alice',
    tags: ['ci', 'nightly'],
    cache_read_tokens: 200,
    reasoning_tokens: 100,
    possibly_billed: true,
    notes_count: 3,
    notes: [{ code: 'dropped', message: 'image detail is not supported by the target; dropped', path: '/messages/0' }],
    rules: ['chat/tool-id-empty'],
  });
  const attempts = [
    createAttempt({ total_ms: 300, http_status: 429, ending: 'failed', error_code: 'RATE_LIMIT', first_token_ms: null }),
    createAttempt({ number: 2, ts: NIGHT + 400, total_ms: 600, upstream_request_id: 'req_1' }),
  ];
  expect(formatDetail({ exchange, attempts }, { ...plain, columns: 64 })).toMatchInlineSnapshot(`
    "Exchange 01a1e799-beaf-7000-afaf-a144084cc0df
      time        2026-11-17 03:30:00Z (UTC), took 1.00 s
      status      200 answered, 1 rule, 3 notes
      protocols   anthropic-messages → openai-chat, stream
      model       fast → groq/llama, responded as llama-3.3-70b
      endpoint    chat
      key         alice (k1)
      tags        ci, nightly
      tokens      input 1,234 (200 from cache), output 310 (100
                  reasoning); reported
      cost        $0.0123 by prices-1; the upstream may charge for
                  more than was reported

    Attempts (2)
      1. groq/llama 429 failed RATE_LIMIT
        ·░░░░░▒▒▒▒▒▒▒▒▒▒▒▒
        started after 0 ms, connected 10 ms, first byte 100 ms,
        total 300 ms
      2. groq/llama 200 answered (req_1)
                                ·░░░░░▒▒▒▒▒▒████████████████████████
        started after 400 ms, connected 10 ms, first byte 100 ms,
        first token 200 ms, total 600 ms
      · connecting  ░ waiting for the response  ▒ until the first
      token  █ content

    Notes (3)
      dropped: image detail is not supported by the target;
        dropped (/messages/0)
      … and 2 more

    Rules that the upstream's stream broke (1)
      chat/tool-id-empty  sluice doctor rules chat/tool-id-empty
    "
  `);
});

test('an exchange without attempts has a line about it', () => {
  const exchange = createExchange({
    attempts: 0,
    provider: null,
    model: null,
    cost_micros: null,
    input_tokens: null,
    output_tokens: null,
  });
  const text = formatDetail({ exchange, attempts: [] }, plain);
  expect(text).toContain('No upstream was called.');
  expect(text).toContain('none, no upstream was called');
  expect(text).toContain('none reported');
});

test('a bar of phases stays in its room and shows every phase', () => {
  const ms = fc.nat(10_000);
  fc.assert(
    fc.property(ms, ms, ms, ms, ms, fc.integer({ min: 10, max: 120 }), (offset, a, b, c, d, cells) => {
      const [connect_ms = 0, first_byte_ms = 0, first_token_ms = 0, total_ms = 0] = [a, b, c, d].toSorted((x, y) => x - y);
      const attempt = createAttempt({ connect_ms, first_byte_ms, first_token_ms, total_ms });
      const bar = drawPhases(attempt, offset, Math.max(1, offset + total_ms), cells);
      expect(bar.length).toBeLessThanOrEqual(cells);
      expect(bar).toMatch(/^ *·+░+▒+█+$/);
    }),
  );
});

const HOSTILE = 'x\u001b[31m\u0007\r\n\t\u202e\u0000';

test('no text of an exchange can control the terminal', () => {
  const texts = ['request_id', 'key_id', 'key_name', 'session_id', 'client_protocol', 'client_name', 'user_agent', 'endpoint'];
  const more = [
    'model_requested',
    'provider',
    'upstream_protocol',
    'model',
    'model_answered',
    'ending',
    'error_code',
    'price_version',
  ];
  const fields = Object.fromEntries([...texts, ...more, 'id'].map((name) => [name, HOSTILE]));
  const note = { code: HOSTILE, path: HOSTILE, message: HOSTILE };
  const exchange = createExchange({ ...fields, tags: [HOSTILE], rules: [HOSTILE], notes: [note], notes_count: 1 });
  const attempt = createAttempt({
    provider: HOSTILE,
    model: HOSTILE,
    ending: HOSTILE,
    error_code: HOSTILE,
    upstream_request_id: HOSTILE,
  });
  for (const columns of [undefined, 60, 140]) {
    const style = { ...plain, columns };
    expect(formatExchange(exchange, style)).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(formatDetail({ exchange, attempts: [attempt] }, style).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  }
});

test('JSON has times by RFC 3339, and every column', () => {
  const row = createExchange();
  const { ts: _, settled_ts: __, ...rest } = row;
  const times = { created_at: '2026-11-17T03:30:00.000Z', settled_at: '2026-11-17T03:30:01.000Z' };
  expect(describeExchange(row)).toEqual({ ...rest, ...times });
  expect(describeExchange({ ...row, settled_ts: null })).toMatchObject({ settled_at: null });
});
