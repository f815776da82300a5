import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonLines, run } from './fake-io.ts';
import * as streams from './streams.ts';

// Bytes that are not UTF-8 either survive, or their replacement is reported.

const GOOD = Buffer.from(streams.chat('grüße 😀'));

const insert = (body: Buffer, at: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([body.subarray(0, at), bytes, body.subarray(at)]);

const INVALID = Buffer.from([0xff]);

const inText = insert(GOOD, GOOD.indexOf('gr'), INVALID);

/** A character that is cut by the end of the body, in a comment. */
const cutAtEnd = Buffer.concat([GOOD, Buffer.from(': '), Buffer.from('😀').subarray(0, 2)]);

describe('sluice repair', () => {
  test.each([
    ['in a comment', Buffer.concat([Buffer.from(': caf\xe9\n', 'latin1'), GOOD])],
    ['at the end', cutAtEnd],
    ['a byte order mark', Buffer.concat([Buffer.from('\ufeff'), GOOD])],
  ])('keeps the bytes of a conforming stream: %s', async (_, body) => {
    const outcome = await run(['repair', 'a'], { files: { a: body } });
    expect(outcome.code).toBe(0);
    expect(outcome.stderr).toBe('a: conforms: unchanged\n');
    expect(outcome.bytes).toEqual(body);
    const [line] = jsonLines(await run(['repair', '--json', '--quiet', 'a'], { files: { a: body } }));
    expect(Buffer.from(String(line?.['body']), line?.['encoding'] as BufferEncoding)).toEqual(body);
  });

  test('lists the replacement of bytes in the text', async () => {
    const { stdout, stderr } = await run(['repair', 'a'], { files: { a: inText } });
    expect(stdout).toContain('\ufffdgrüße');
    expect(stderr).toContain('sse/invalid-utf8');
  });

  test('any bytes anywhere survive, or their replacement is listed', async () => {
    const inserted = fc.record({ at: fc.nat(GOOD.length), bytes: fc.uint8Array({ minLength: 1, maxLength: 4 }) });
    await fc.assert(
      fc.asyncProperty(inserted, async ({ at, bytes }) => {
        const body = insert(GOOD, at, bytes);
        const outcome = await run(['repair', '--all', 'a'], { files: { a: body } });
        expect(outcome.bytes.equals(body) || outcome.stderr.replace('a: conforms: unchanged\n', '') !== '').toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test('a terminal shows a cut character as U+FFFD', async () => {
    const { stdout } = await run(['repair', '--quiet', 'a'], { files: { a: cutAtEnd }, terminals: ['stdout'] });
    expect(stdout.endsWith(': \ufffd')).toBe(true);
  });
});

describe('sluice convert', () => {
  const REQUEST = Buffer.from(JSON.stringify({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'cafe' }] }));
  const body = insert(REQUEST, REQUEST.indexOf('cafe'), INVALID);
  const argv = ['convert', 'request', '--from', 'openai', '--to', 'anthropic'];
  const NOTE = { code: 'REPAIRED', path: '', feature: 'encoding', message: expect.stringContaining('not valid UTF-8') };

  test('notes the replacement in a document', async () => {
    const [line] = jsonLines(await run([...argv, '--json', 'a'], { files: { a: body } }));
    expect(line?.['notes']).toEqual([NOTE]);
    expect((await run([...argv, 'a'], { files: { a: body } })).stderr).toContain('a: REPAIRED /: the input is not valid UTF-8');
  });

  test('notes the replacement in a stream', async () => {
    const [line] = jsonLines(await run(['convert', 'stream', '--to', 'anthropic', '--json', 'a'], { files: { a: inText } }));
    expect(line?.['body']).toContain('\ufffdgrüße');
    expect(line?.['notes']).toEqual([NOTE]);
  });

  test.each([
    ['request', [...argv, '--strict'], body],
    ['stream', ['convert', 'stream', '--to', 'anthropic', '--strict'], inText],
  ])('--strict refuses it: %s', async (_, words, bytes) => {
    const outcome = await run([...words, '--json', 'a'], { files: { a: bytes } });
    expect(outcome.code).toBe(1);
    expect(jsonLines(outcome)).toMatchObject([{ error: { code: 'invalid_utf8', canonical: 'INVALID_INPUT' } }]);
  });

  test('a byte order mark is no loss', async () => {
    const [line] = jsonLines(await run([...argv, '--json', 'a'], { files: { a: insert(REQUEST, 0, Buffer.from('\ufeff')) } }));
    expect(line).toMatchObject({ notes: [], error: null });
  });
});
