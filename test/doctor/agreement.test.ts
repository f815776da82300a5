import { describe, expect, test } from 'vitest';
import { jsonLines, run } from '../../packages/gateway/test/fake-io.ts';
import { readCases, readManifest, readRecording } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';

interface Body {
  name: string;
  protocol: string;
  bytes: Uint8Array;
}

const bodies: Body[] = [
  ...readCases().map(({ id, protocol, raw }) => ({ name: id, protocol: protocolOf(protocol).id, bytes: bytesOf(raw) })),
  ...readManifest().map(({ file, protocol }) => ({ name: file, protocol: protocolOf(protocol).id, bytes: readRecording(file) })),
  // No case holds bytes that are no text.
  { name: 'invalid UTF-8', protocol: 'openai-chat', bytes: invalidUtf8() },
];

function invalidUtf8(): Uint8Array {
  const chunk = (delta: string, finish: string): string =>
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`;
  const text = `${chunk('{"role":"assistant","content":"caf#"}', 'null')}${chunk('{}', '"stop"')}data: [DONE]\n\n`;
  return Buffer.from(text.replace('#', '\u00e9'), 'latin1');
}

interface Named {
  rule: string;
  severity: string;
  offset: number;
}

/** What a command names in each body, without infos. */
async function namedBy(
  command: string,
  field: string,
  argv: readonly string[],
  chosen: readonly Body[],
): Promise<Map<string, Named[]>> {
  const files = Object.fromEntries(chosen.map(({ name, bytes }) => [name, bytes]));
  const outcome = await run([command, '--json', ...argv, ...Object.keys(files)], { files });
  const isSevere = ({ severity }: Named): boolean => severity !== 'info';
  const place = ({ rule, severity, offset }: Named): Named => ({ rule, severity, offset });
  const byRule = (a: Named, b: Named): number => (a.rule < b.rule ? -1 : 1);
  return new Map(
    jsonLines(outcome).map((line) => [
      String(line['file']),
      (line[field] as Named[]).filter(isSevere).map(place).toSorted(byRule),
    ]),
  );
}

/** The protocol is given, or read from the bytes. */
const WAYS = [
  ...['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'].map((protocol) => ({
    way: `--protocol ${protocol}`,
    argv: ['--protocol', protocol],
    chosen: bodies.filter((body) => body.protocol === protocol),
  })),
  { way: 'without --protocol', argv: [], chosen: bodies },
];

test.each(WAYS)('assemble and doctor report the same errors and warnings at the same offsets: $way', async ({ argv, chosen }) => {
  const assembled = await namedBy('assemble', 'diagnostics', argv, chosen);
  const examined = await namedBy('doctor', 'findings', argv, chosen);
  expect(chosen.filter(({ name }) => examined.has(name)).length).toBe(chosen.length);
  const differing = chosen.flatMap(({ name }) => {
    const [theirs, ours] = [JSON.stringify(examined.get(name)), JSON.stringify(assembled.get(name))];
    return theirs === ours ? [] : [`${name}: doctor ${theirs}, assemble ${ours}`];
  });
  expect(differing).toEqual([]);
});

describe('shrink --until', async () => {
  const files = Object.fromEntries(bodies.map(({ name, bytes }) => [name, bytes]));
  const outcome = await run(['doctor', '--json', ...Object.keys(files)], { files });
  const smallest = new Map<string, Body>();
  for (const [at, line] of jsonLines(outcome).entries())
    for (const { rule } of line['findings'] as Named[]) {
      const body = bodies[at];
      const known = smallest.get(rule);
      if (body && (!known || body.bytes.length < known.bytes.length)) smallest.set(rule, body);
    }

  test('these bodies cover most rules', () => {
    expect(smallest.size).toBeGreaterThan(110);
  });

  test.each([...smallest].toSorted())('accepts %s', async (rule, { name, bytes }) => {
    // The clock of the test ends the search after a few tries.
    const shrunk = await run(['shrink', '--until', rule, '--seconds', '1', '--json', name], { files: { [name]: bytes } });
    expect(shrunk.stderr).toBe('');
    expect(shrunk.code).toBe(0);
    const [line] = jsonLines(shrunk);
    const stream = shrunk.files[String(line?.['stream'])] ?? '';
    expect(stream.length).toBeGreaterThan(0);
  });
});
