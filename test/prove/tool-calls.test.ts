import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createAccumulator, type Note, ToolCallAssembler } from '../../packages/core/src/index.ts';
import { assemble, convert, PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';
import { type GeneratedStream, generateStream, QUIRK_SETS, toBody, toChunks, toEntry } from './generate/tool-calls.ts';
import { UNDECIDABLE, undecidable } from './generate/undecidable.ts';
import { IS_FULL, SEED, scale, Tally } from './tally.ts';

interface FoundCall {
  id: string;
  name: string;
  arguments: string;
}

type Reader = (stream: GeneratedStream) => FoundCall[];

const bytesOf = (stream: GeneratedStream): Uint8Array[] => [new TextEncoder().encode(toBody(stream))];

/** Every way to read the deltas. */
const READERS: Readonly<Record<string, Reader>> = {
  ToolCallAssembler: ({ chunks }) => {
    const calls = new ToolCallAssembler();
    for (const chunk of chunks) calls.push(chunk.map(toEntry));
    return calls.finish();
  },
  'ToolCallAssembler, saved and restored after every chunk': ({ chunks }) => {
    let calls = new ToolCallAssembler();
    for (const chunk of chunks) {
      calls.push(chunk.map(toEntry));
      calls = ToolCallAssembler.fromJSON(JSON.parse(JSON.stringify(calls)));
    }
    return calls.finish();
  },
  createAccumulator: (stream) => {
    const accumulator = createAccumulator();
    accumulator.pushAll(toChunks(stream));
    return accumulator.toolCalls;
  },
  accumulate: (stream) => {
    const { tool_calls: calls, message } = assemble('openai-chat', bytesOf(stream));
    const blocks = message.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []));
    expect(blocks, 'the order of message.content is that of tool_calls').toEqual(calls.map(({ id }) => id));
    return calls;
  },
};

const isRight = ({ truth }: GeneratedStream, found: readonly FoundCall[]): boolean =>
  found.length === truth.length &&
  new Set(found.map(({ id }) => id)).size === found.length &&
  truth.every(({ id, ...call }, i) => {
    const { id: foundId, name, arguments: text } = found[i] ?? { id: '', name: '', arguments: '' };
    return name === call.name && text === call.arguments && (id === undefined || id === foundId);
  });

const streams = Array.from({ length: scale(1000, 10_000) }, (_, i) =>
  generateStream(SEED + i, QUIRK_SETS[i % QUIRK_SETS.length] ?? []),
);

const show = (stream: GeneratedStream, found: unknown): string =>
  [
    stream.quirks.join(' + '),
    ...stream.chunks.map((chunk) => JSON.stringify(chunk.map(toEntry))),
    `found ${JSON.stringify(found)}`,
    `truth ${JSON.stringify(stream.truth)}`,
  ].join('\n');

describe('tool calls with every pair of quirks', () => {
  test.each(Object.entries(READERS))('%s finds the intended calls', (reader, read) => {
    const tally = new Tally();
    const wrong: string[] = [];
    const open = { undecidable: 0, wrong: 0 };
    for (const stream of streams) {
      const found = read(stream);
      const isFound = isRight(stream, found);
      if (undecidable(stream)) {
        open.undecidable++;
        if (!isFound) open.wrong++;
        continue;
      }
      tally.add('tool calls with quirks', reader, 1, SEED);
      if (!isFound) wrong.push(show(stream, found));
    }
    console.log(
      `${reader}: ${streams.length} streams, ${wrong.length} wrong; ${open.undecidable} undecidable, ${open.wrong} of them read otherwise than meant`,
    );
    expect(wrong.slice(0, 3)).toEqual([]);
    expect(tally.finish(`tool-calls-${reader.replaceAll(/\W+/g, '-')}`)).toEqual([]);
  });

  test.each(PROTOCOL_IDS)(
    'converted to %s, the calls are the same and in the same order, or a note reports the difference',
    (to) => {
      const wrong: string[] = [];
      let noted = 0;
      const tried = streams.slice(0, scale(342, streams.length));
      for (const stream of tried) {
        const bytes = bytesOf(stream);
        const notes: Note[] = [];
        const plain = (calls: readonly FoundCall[]): unknown =>
          calls.map(({ name, arguments: text }) => [name, JSON.parse(text)]);
        const { tool_calls: before, invalid_arguments: invalid } = assemble('openai-chat', bytes);
        if (invalid.length > 0) continue; // an undecidable stream that was joined into one broken call
        const after = assemble(
          to,
          convert('openai-chat', to, bytes, (note) => notes.push(note)),
        ).tool_calls;
        if (JSON.stringify(plain(before)) === JSON.stringify(plain(after))) continue;
        if (notes.some(({ feature }) => feature.startsWith('content.tool_use') || feature === 'content.order')) noted++;
        else wrong.push(show(stream, after));
      }
      console.log(`openai-chat to ${to}: ${tried.length} streams, ${wrong.length} wrong, ${noted} settled late and noted`);
      expect(wrong.slice(0, 3)).toEqual([]);
    },
  );

  test.runIf(IS_FULL)('every rule for undecidable streams has an example', () => {
    const missing = new Set(UNDECIDABLE.map(({ name }) => name));
    for (let i = 0; i < 200_000 && missing.size > 0; i++) {
      const name = undecidable(generateStream(SEED + i, QUIRK_SETS[i % QUIRK_SETS.length] ?? []))?.name;
      if (name !== undefined) missing.delete(name);
    }
    expect([...missing]).toEqual([]);
  });

  test.each(UNDECIDABLE)('docs/tool-call-identity.md lists: $name', ({ name, reason }) => {
    const page = readFileSync(new URL('../../docs/tool-call-identity.md', import.meta.url), 'utf8');
    expect(page).toContain(`| ${name} | ${reason} |`);
  });
});
