import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FilteredRow, matchesFilter, parseFilter, parseSearch } from '../../src/store/filter.ts';
import { attempt, createLedger, ENGINES, open, settle } from './ledger-fixture.ts';

const NOW = Date.parse('2026-11-17T12:00:00Z');

const ROW: FilteredRow = {
  id: '01a1e75e-80cb-7000-b251-e1d75371c47d',
  request_id: 'req-1',
  ts: NOW - 3_600_000,
  state: 'settled',
  ending: 'answered',
  http_status: 200,
  error_code: null,
  model: 'llama-3.3-70b',
  model_requested: 'fast',
  model_answered: 'Llama-3.3-70B-Versatile',
  provider: 'groq',
  key_id: 'key-1',
  key_name: 'Alice Smith',
  session_id: 'session-9',
  client_protocol: 'anthropic-messages',
  client_name: 'claude-code',
  upstream_protocol: 'openai-chat',
  endpoint: 'conversation',
  tags: ['team:search', 'prod'],
  rules: ['chat/tool-id-empty'],
  note_codes: ['dropped', 'clamped'],
  cost_micros: 12_000,
  total_ms: 2310,
  first_token_ms: 480,
  input_tokens: 9_000,
  output_tokens: 1_500,
};

const matches = (text: string, row: FilteredRow = ROW): boolean => {
  const { filter, problems } = parseFilter(text, NOW);
  expect(problems).toEqual([]);
  return matchesFilter(filter, row);
};

describe('terms', () => {
  test.each([
    ['', true],
    ['status:2xx', true],
    ['status:200', true],
    ['status:4xx|5xx', false],
    ['status:ok', true],
    ['status:error|aborted|live', false],
    ['model:fast', true],
    ['model:llama*', true],
    ['model:LLAMA-3.3-70B', true],
    ['model:llama', false],
    ['model:*3.3*versatile', true],
    ['model:gpt*|fast', true],
    ['-model:fast', false],
    ['-model:gpt*', true],
    ['provider:groq', true],
    ['key:key-1', true],
    ['key:"alice smith"', true],
    ['key:alice*', true],
    ['tag:prod', true],
    ['tag:pro', false],
    ['tag:team:*', true],
    ['tag:*search', true],
    ['tag:*am:se*', true],
    ['tag:*', true],
    ['-tag:test', true],
    ['client:anthropic-messages', true],
    ['client:claude*', true],
    ['upstream:openai-chat', true],
    ['session:session-9', true],
    ['endpoint:conversation', true],
    ['ending:answered', true],
    ['error:*', true],
    ['id:req-1', true],
    ['rule:chat/tool-id-empty', true],
    ['rule:chat/*', true],
    ['note:dropped', true],
    ['note:renamed', false],
    ['cost:>0.01', true],
    ['cost:>0.012', false],
    ['cost:>=0.012', true],
    ['cost:<1$', true],
    ['ms:>2000', true],
    ['>2s', true],
    ['ms:<2.31s', false],
    ['ms:<=2.31s', true],
    ['ttft:>500', false],
    ['tokens:>10k', true],
    ['tokens:10500', true],
    ['tokens:<1m', true],
    ['since:2h', true],
    ['since:30m', false],
    ['-since:30m', true],
    ['until:30m', true],
    ['since:2026-11-17', true],
    ['since:2026-11-17T11:30', false],
    ['since:2026-11-17T12:30+02:00', true],
    ['status:2xx model:fast >2s', true],
    ['status:2xx model:fast >3s', false],
  ])('%s: %s', (text, expected) => {
    expect(matches(text)).toBe(expected);
  });

  test.each([
    [{ state: 'open', ending: null, http_status: null }, 'live'],
    [{ ending: 'client_aborted' }, 'aborted'],
    [{ ending: 'client_stalled', http_status: 502 }, 'aborted'],
    [{ ending: 'upstream_error' }, 'error'],
    [{ ending: 'answered', http_status: 404 }, 'error'],
    [{ state: 'crashed', ending: 'crashed', http_status: null }, 'error'],
    [{ ending: 'answered', http_status: null }, 'ok'],
  ] as [Partial<FilteredRow>, string][])('%j is %s and nothing else', (change, outcome) => {
    const found = ['live', 'aborted', 'error', 'ok'].filter((word) => matches(`status:${word}`, { ...ROW, ...change }));
    expect(found).toEqual([outcome]);
  });
});

describe('problems', () => {
  test.each([
    ['modle:gpt', 'unknown field "modle"; did you mean "model"?'],
    ['status:eror', 'status: unknown status "eror"; did you mean "error"?'],
    ['status:600', 'status: unknown status "600"'],
    ['hello', '"hello": text search needs captured bodies'],
    ['"two words"', 'text search needs captured bodies'],
    ['model:', 'model: a value is required'],
    ['model:|', 'model: a value is required'],
    ['ms:>abc', 'ms: ">abc" is not a number; use ms:>2000'],
    ['cost:<$1', 'cost: "<$1" is not a number; use cost:>0.01'],
    ['>2q', 'ms: ">2q" is not a number'],
    ['tokens:>10s', 'tokens: ">10s" is not a number'],
    ['since:yesterday', 'since: "yesterday" is not a time'],
    ['since:2026-99-99', 'since: "2026-99-99" is not a time'],
    ['tag:a*b', 'tag: "a*b": a star is possible only at the start and at the end'],
    ['model:a*b*c*d*e*f', 'model: at most 4 stars'],
    ['__proto__:x', 'unknown field "__proto__"'],
    ['constructor:x', 'unknown field "constructor"'],
    [`model:${'a|'.repeat(20)}`, 'model: at most 16 values'],
  ])('%s', (text, message) => {
    const { filter, problems } = parseFilter(text, NOW);
    expect(filter).toEqual([]);
    expect(problems[0]?.message).toContain(message);
  });

  test.each([
    ['hello', ['hello'], []],
    ['"two words" status:ok Hello', ['two words', 'Hello'], []],
    ['"http://x:1/?a"', ['http://x:1/?a'], []],
    ['-hello', [], ['a text cannot be excluded']],
    ['x', [], ['at least 2 characters']],
    ['""', [], ['at least 2 characters']],
    ['http://x', [], ['unknown field "http"']],
  ])('a search for %s', (text, texts, messages) => {
    const parsed = parseSearch(text, NOW);
    expect(parsed.texts.map((found) => found.text)).toEqual(texts);
    expect(parsed.problems.map(({ message }) => message)).toEqual(messages.map((part) => expect.stringContaining(part)));
  });

  test('name the place of the term, and leave the other terms in force', () => {
    const { filter, problems } = parseFilter('status:2xx modle:gpt >2s', NOW);
    expect(filter).toHaveLength(2);
    expect(problems).toMatchObject([{ start: 11, end: 20 }]);
  });

  test('long filters are refused', () => {
    expect(parseFilter('x'.repeat(2001), NOW).problems).toHaveLength(1);
    expect(parseFilter('model:a '.repeat(33), NOW).problems).toMatchObject([{ message: 'a filter has at most 32 terms' }]);
  });

  test('any text is parsed without an exception', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (text) => {
        const { filter, problems } = parseFilter(text, NOW);
        expect(filter.length + problems.length).toBe((text.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []).length);
      }),
    );
  });
});

describe('the database', () => {
  const word = fc.constantFrom('gpt', 'GPT-4o', 'fast', 'a%b', 'a_b', 'a\\b', "it's", 'Ä', '', '[x]', 'x,y', '"q"', 'é*', '😀');
  const optional = fc.option(word, { nil: null });
  const example = fc.record({
    age: fc.nat(7_200_000),
    model_requested: optional,
    key_id: optional,
    key_name: optional,
    session_id: optional,
    client_protocol: optional,
    tags: fc.array(word, { maxLength: 3 }),
    rules: fc.array(word, { maxLength: 2 }),
    notes: fc.array(
      fc.constantFrom('DROPPED', 'CLAMPED').map((code) => ({ code })),
      { maxLength: 2 },
    ),
    model: optional,
    provider: word,
    is: fc.constantFrom('open' as const, 'settled' as const),
    ending: fc.constantFrom('answered', 'client_aborted', 'upstream_error'),
    http_status: fc.constantFrom(null, 200, 404, 503),
    input_tokens: fc.constantFrom(null, 0, 5, 10_000),
    output_tokens: fc.constantFrom(null, 0, 5, 1_000_000),
    cost_micros: fc.constantFrom(null, 0, 10_000, 10_001),
    total_ms: fc.constantFrom(null, 0, 2000, 2001),
    first_token_ms: fc.constantFrom(null, 499, 500, 501),
  });
  const glob = fc
    .tuple(fc.constantFrom('', '*'), word, fc.constantFrom('', '*'))
    .map((parts) => parts.join(''))
    .filter((text) => !text.includes('|'));
  const term = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.oneof(
        fc
          .tuple(
            fc.constantFrom('model', 'key', 'provider', 'session', 'client', 'tag', 'rule', 'note'),
            fc.array(glob, { minLength: 1, maxLength: 2 }),
          )
          .map(([name, values]) => `${name}:"${values.join('|').replaceAll('"', '')}"`),
        fc.constantFrom('status:2xx', 'status:4xx|503', 'status:ok', 'status:error', 'status:aborted|live', 'note:dropped'),
        fc.constantFrom('cost:>0.01', 'cost:<=0.01', 'ms:>2s', 'ms:2000', 'ttft:<500', 'tokens:>10k', 'tokens:<=5', 'tokens:0'),
        fc.constantFrom('since:1h', 'until:1h', 'since:90m', 'until:30m'),
      ),
    )
    .map((parts) => parts.join(''));

  for (const [engine, options] of ENGINES)
    test(`selects exactly the rows that match on ${engine}`, options, async () => {
      const ledger = await createLedger(engine);
      const { queries } = ledger;
      await fc.assert(
        fc.asyncProperty(
          fc.array(example, { maxLength: 12 }),
          fc.array(term, { minLength: 1, maxLength: 3 }),
          async (examples, terms) => {
            await ledger.clear();
            const operations = examples.flatMap(({ age, is, tags, rules, notes, ...row }, index) => {
              const ts = NOW - age;
              const id = `${ts
                .toString(16)
                .padStart(12, '0')
                .replace(/(.{8})/, '$1-')}-7000-8000-${String(index).padStart(12, '0')}`;
              return [
                open({ id, ts, tags, ...row }),
                attempt({ exchange_id: id, number: 1, ts, provider: row.provider, model: row.model }),
                ...(is === 'open' ? [] : [settle({ id, ts, rules, notes, ...row })]),
              ];
            });
            await ledger.write(operations);
            const { filter } = parseFilter(terms.join(' '), NOW);
            const all = (await queries.list({ limit: 1000 })).exchanges;
            expect(all).toHaveLength(examples.length);
            const selected = (await queries.list({ filter, limit: 1000 })).exchanges.map(({ id }) => id);
            expect(selected).toEqual(all.filter((row) => matchesFilter(filter, row)).map(({ id }) => id));
            expect(await queries.count(filter)).toEqual({ matching: selected.length, is_exact: true, total: all.length });
          },
        ),
        { numRuns: engine === 'SQLite' ? 200 : 60 },
      );
    });
});
