import { RULES, type RuleId } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { jsonLines, run, type World } from '../../packages/gateway/test/fake-io.ts';
import { MUTATIONS, PLAIN_FRAMING, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { buildCase, writeReport } from '../../packages/lab/src/shrink/report.ts';
import { assemble, createTest } from '../../packages/lab/src/shrink/shows.ts';
import { filler, render, shortest, shrink, splitEvents, splitParts } from '../../packages/lab/src/shrink/shrinker.ts';

const chunk = (delta: object, finish: string | null = null): string =>
  JSON.stringify({
    id: 'chatcmpl-7',
    object: 'chat.completion.chunk',
    created: 1777000000,
    model: 'a-private-model',
    system_fingerprint: 'fp_7',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  });

/** A stream with a call, in as much text as it takes. */
function payloadsOf(words: number): string[] {
  const texts = Array.from({ length: words }, (_, at) => chunk({ content: ` private word ${at}` }));
  const call = (fields: object) => chunk({ tool_calls: [{ index: 0, ...fields }] });
  return [
    chunk({ role: 'assistant', content: '' }),
    ...texts,
    call({ id: 'call_7', type: 'function', function: { name: 'send_mail', arguments: '' } }),
    ...['{"to":"', 'somebody@', 'example.org', '"}'].map((args) => call({ function: { arguments: args } })),
    ...texts,
    chunk({}, 'tool_calls'),
    '[DONE]',
  ];
}

const sse = (payloads: readonly string[]): string => payloads.map((data) => `data: ${data}\n\n`).join('');

const instantly = { now: () => 0, mostMs: 1 };

async function shrinkTo(rule: RuleId, text: string) {
  const first = assemble(text, undefined);
  const { shows } = createTest(rule, first, undefined);
  expect(shows(text), `${rule} is there`).toBe(true);
  return { ...(await shrink(text, { shows, ...instantly })), first };
}

describe('to a rule', () => {
  const clean = { protocol: 'openai-chat' as const, frames: payloadsOf(12).map((data) => ({ data })), framing: PLAIN_FRAMING };
  const dialects = MUTATIONS.filter(({ protocols }) => protocols.includes('openai-chat')).flatMap(({ id, rule, apply }) => {
    const text = Buffer.concat(writeStream(apply(clean, seededRandom(7)), seededRandom(7))).toString();
    const met = assemble(text, undefined).diagnostics.map((diagnostic) => diagnostic.rule);
    return rule !== undefined && met.includes(rule) ? [{ id, rule, text }] : [];
  });

  test('most dialects apply to the stream', () => {
    expect(dialects.length).toBeGreaterThan(50);
  });

  test.each(dialects)('$id', async ({ rule, text }) => {
    const { first, ...shrunk } = await shrinkTo(rule, text);
    expect(Buffer.byteLength(shrunk.text)).toBeLessThan(1400);
    expect(shrunk.isDone).toBe(true);
    // Nothing private is left, and nothing else is wrong than before.
    expect(shrunk.text).not.toMatch(/private|somebody|send_mail|chatcmpl-7|call_7/);
    const read = assemble(shrunk.text, undefined);
    const known = first.diagnostics.map((met) => met.rule);
    expect(known).toEqual(expect.arrayContaining(read.diagnostics.map((met) => met.rule)));
    expect(read.complete).toBe(first.complete);
  });

  test('a megabyte shrinks to less than a kilobyte in few attempts', async () => {
    const payloads = payloadsOf(2600).map((data) =>
      data.replace('"index":0,"id"', '"id"').replace('[{"index":0,"function"', '[{"function"'),
    );
    const text = sse(payloads);
    expect(text.length).toBeGreaterThan(1_000_000);
    const shrunk = await shrinkTo('chat/tool-index-missing', text);
    expect(shrunk.text.length).toBeLessThan(500);
    expect(shrunk.tries).toBeLessThan(1000);
  });

  test('a stream with repeated content shrinks if the copies may differ', async () => {
    const events = [
      { type: 'response.created', response: { id: 'r', model: 'm', status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'i', role: 'assistant', content: [] } },
      {
        type: 'response.content_part.added',
        output_index: 0,
        item_id: 'i',
        content_index: 0,
        part: { type: 'output_text', text: '' },
      },
      ...Array.from({ length: 99 }, (_, at) => ({
        type: 'response.output_text.delta',
        output_index: 0,
        item_id: 'i',
        content_index: 0,
        delta: ` word ${at}`,
      })),
      { type: 'response.output_text.done', output_index: 0, item_id: 'i', content_index: 0, text: 'something else' },
      { type: 'response.completed', response: { id: 'r', model: 'm', status: 'completed', output: [] } },
    ];
    const text = events
      .map((event, at) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`)
      .join('');
    const first = assemble(text, undefined);
    const [rule] = first.diagnostics.map((met) => met.rule).filter((met) => met.includes('done'));
    if (rule === undefined) throw new Error(`not met: ${JSON.stringify(first.diagnostics)}`);
    const shrunk = await shrink(text, { ...createTest(rule, first, undefined), ...instantly });
    expect(shrunk.text.length).toBeLessThan(1000);
    expect(assemble(shrunk.text, undefined).diagnostics.map((met) => met.rule)).toContain(rule);
  });

  test('at the time limit, the best result is returned', async () => {
    const text = sse(payloadsOf(50)).replace('data: [DONE]\n\n', '');
    const { shows } = createTest('sse/missing-done', assemble(text, undefined), undefined);
    let clock = 0;
    const shrunk = await shrink(text, { shows, now: () => clock++, mostMs: 10 });
    expect(shrunk).toMatchObject({ isDone: false, tries: 10 });
    expect(shrunk.text.length).toBeLessThan(text.length);
    expect(shows(shrunk.text)).toBe(true);
  });
});

describe('bodies of all shapes', () => {
  const CASES: readonly (readonly [string, string, string, string])[] = [
    ['JSON with blanks', '{\n  "a": [1, 2, {"needle": true, "b": "c"}],\n  "d": 1e400\n}', 'needle', '{"a":[{"needle":true}]}'],
    ['a line a document', '{"a":1}\n{"needle":2}\n{"c":3}\n', 'needle', '{"needle":0}'],
    ['a list', '[{"a":1}\r\n,\r\n{"needle":"text"}\r\n]', 'needle', '[{"needle":""}]'],
    ['CR LF', ': x\r\n\r\nevent: e\r\ndata: {"needle":"long text","b":1}\r\n\r\ndata: x\r\n\r\n', 'needle', '{"needle":""}'],
    ['no JSON', 'data: {needle\n\ndata: {"a":1}\n\n', 'needle', 'needle'],
    ['a needle in a text', 'data: {"text":"aaaaaaaaaaneedlebbbbbbbbbbbb","b":"c"}\n\n', 'needle', 'needle'],
    ['nothing to keep', 'data: {"a":1}\n\n', '', ''],
  ];

  test.each(CASES)('%s', async (_, text, needle, smallest) => {
    const shows = (tried: string): boolean => tried.includes(needle);
    const shrunk = await shrink(text, { shows, ...instantly });
    expect(shows(shrunk.text)).toBe(true);
    expect(shrunk.text.length).toBeLessThanOrEqual(text.length);
    expect(shrunk.text).toContain(smallest);
  });

  test('JSON formatting is preserved', async () => {
    const text = 'data: {"a": 1.0, "b": "c"}\n\ndata: {"d": "e", "f": 1}\n\n';
    const shows = (tried: string): boolean => tried.includes('"a": 1.0') && tried.includes('"f"');
    const shrunk = await shrink(text, { shows, ...instantly });
    expect(shrunk.text).toBe('"a": 1.0data: {"f":0}\n');
  });

  test.each(CASES.map(([name, text]) => [name, text] as const))('%s: nothing is lost between the parts', (_, text) => {
    expect(splitEvents(text).join('')).toBe(text);
    expect(render(splitParts('data: x\r\rdata: {"a":1} \n\n'))).toBe('data: x\r\rdata: {"a":1} \n\n');
  });

  test('hostile documents', async () => {
    const deep = `data: ${'['.repeat(5000)}${']'.repeat(5000)}\n\n`;
    const proto = 'data: {"__proto__":{"needle":1},"constructor":{"a":2}}\n\n';
    const shows = (tried: string): boolean => /needle/.test(tried);
    expect((await shrink(deep + proto, { shows, ...instantly })).text).toBe('data: {"__proto__":{"needle":0}}\n');
    expect(Object.prototype).not.toHaveProperty('needle');
  });
});

test('the shortest list', async () => {
  const tries: number[] = [];
  const list = Array.from({ length: 1000 }, (_, at) => at);
  const found = await shortest(list, async (shorter) => {
    tries.push(shorter.length);
    return [17, 500, 983].every((needle) => shorter.includes(needle));
  });
  expect(found).toEqual([17, 500, 983]);
  expect(tries.length).toBeLessThan(150);
});

test.each([
  ['Hello, Wörld 42!', 'xxxxx, xxxxx 00!'],
  ['日本🦢', 'xxx'],
  ['{"path":"/home/me"}', '{"xxxx":"/xxxx/xx"}'],
])('filler for %s', (text, expected) => {
  expect(filler(text)).toBe(expected);
});

describe('case and report', () => {
  const raw = sse([chunk({ content: 'x', tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }, 'tool_calls'), '[DONE]']);
  const read = assemble(raw, undefined);

  test('a case is a line of fixtures', () => {
    const made = buildCase(raw, read, { rule: 'chat/tool-index-missing' });
    expect(made).toMatchObject({
      protocol: 'openai-chat',
      title: RULES['chat/tool-index-missing'].title,
      raw,
      ambiguity: null,
      expected: { text: 'x', tool_calls: [{ id: '<generated>', name: 'f', arguments: '{}' }], finish_reason: 'tool_calls' },
    });
    expect(made.id).toMatch(/^chat-tool-index-missing-[0-9a-f]{8}$/);
  });

  test('a report escapes its content', () => {
    const hostile = 'data: ```\r\n\n\n# Heading\n\n````\n\n';
    const made = buildCase(hostile, assemble(hostile, undefined), { command: 'x' });
    const facts = { bytesBefore: 1, bytesAfter: 1, tries: 1, isDone: true, version: '1', stream: 's.sse' };
    const text = writeReport({ until: { command: 'x' }, case: made, read, ...facts });
    expect(text).toContain('`````text\ndata: ```␍\n');
  });
});

describe('the command', () => {
  const text = sse(payloadsOf(5).map((data) => data.replace('"tool_calls":[{"index":0,', '"tool_calls":[{')));
  const world: World = { files: { 'a.sse': text } };

  test('writes stream, case and report', async () => {
    const outcome = await run(['shrink', '--until', 'chat/tool-index-missing', '--out', 'o', 'a.sse'], world);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    const names = Object.keys(outcome.files).map((path) => path.replace(/-[0-9a-f]{8}/, ''));
    expect(names).toEqual(['sse', 'jsonl', 'md'].map((end) => `o/chat-tool-index-missing.${end}`));
    const [stream = '', line = '', report = ''] = Object.values(outcome.files);
    expect(JSON.parse(line)).toMatchObject({ raw: stream, protocol: 'openai-chat' });
    expect(report).toContain(stream.trim());
    expect(outcome.stdout).toContain(stream.trim());
  });

  test('for programs', async () => {
    const outcome = await run(['shrink', '--until', 'chat/tool-index-missing', '--seconds', '1000', '--json', '-'], {
      stdin: text,
    });
    expect(jsonLines(outcome)).toMatchObject([
      { file: '-', until: { rule: 'chat/tool-index-missing' }, done: true, bytes_before: text.length },
    ]);
  });

  test('until a command', async () => {
    const lines: string[] = [];
    const outcome = await run(['shrink', '--until', 'grep -q needle', 'n.sse'], {
      files: { 'n.sse': sse(['{"a":1}', '{"needle":2}']) },
      // The stream of the moment is not to be seen from here: every other try shows it.
      program: ({ command, isQuiet }) => {
        lines.push(`${command} ${isQuiet}`);
        return lines.length === 1 ? 0 : 1;
      },
    });
    expect(lines[0]).toBe('grep -q needle /own/stream.sse true');
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toContain('{"needle":2}');
  });

  test.each<[string, readonly string[], World, number, string]>([
    ['no rule', ['a.sse'], world, 2, '--until is required'],
    ['a rule that is none', ['--until', 'chat/tool-index-mising', 'a.sse'], world, 2, 'did you mean "chat/tool-index-missing"'],
    ['a rule that is not met', ['--until', 'sse/missing-done', 'a.sse'], world, 1, 'Rules it shows: chat/tool-index-missing'],
    [
      'a command that fails',
      ['--until', 'false', 'a.sse'],
      { ...world, program: () => 1 },
      1,
      'the command does not exit with 0 for a.sse',
    ],
    ['no file', ['--until', 'sse/missing-done', 'b.sse'], world, 2, 'no such file'],
    [
      'a folder that is no tape',
      ['--until', 'sse/missing-done', '/nowhere'],
      { folders: { '/nowhere': ['/nowhere/exchange.json'] } },
      2,
      'sluice: /nowhere: no such tape',
    ],
    ['two files', ['--until', 'sse/missing-done', 'a', 'b'], world, 2, 'only one input can be shrunk'],
    ['a time that is none', ['--until', 'sse/missing-done', '--seconds', '-1', 'a.sse'], world, 2, 'seconds'],
    ['nothing', ['--until', 'sse/missing-done'], { terminals: ['stdin'] }, 2, 'no input'],
  ])('%s', async (_, argv, where, code, message) => {
    const outcome = await run(['shrink', ...argv], where);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr).toContain(message);
  });
});
