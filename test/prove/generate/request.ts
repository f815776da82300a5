import fc from 'fast-check';
import type {
  CanonicalMessage,
  CanonicalRequest,
  CanonicalTool,
  ContentBlock,
  ToolUseBlock,
} from '../../../packages/core/src/index.ts';
import { jsonObject, name, schema, text } from './values.ts';

const image: fc.Arbitrary<ContentBlock> = fc.constantFrom<ContentBlock>(
  { type: 'image', source: { data: 'iVBORw0KGgo=', media_type: 'image/png' } },
  { type: 'image', source: { url: 'https://example.com/a.png' } },
);
const file: fc.Arbitrary<ContentBlock> = fc.constant({
  type: 'file',
  source: { file_data: 'JVBERi0=', media_type: 'application/pdf', filename: 'a.pdf' },
});
const said: fc.Arbitrary<ContentBlock> = text.map((value) => ({ type: 'text', text: `${value}.` }));

const user: fc.Arbitrary<CanonicalMessage> = fc
  .array(fc.oneof({ weight: 4, arbitrary: said }, { weight: 1, arbitrary: image }, { weight: 1, arbitrary: file }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((content) => ({ role: 'user', content }));

const tool: fc.Arbitrary<CanonicalTool> = fc
  .record({ name, description: fc.option(text, { nil: undefined }), input_schema: schema })
  .map(({ description, ...rest }) => ({ ...rest, ...(description !== undefined && { description }) }));

interface Turn {
  question: CanonicalMessage;
  thinking: string | undefined;
  answer: string;
  calls: { input: Record<string, unknown>; result: string; isError: boolean }[];
}

const turn: fc.Arbitrary<Turn> = fc.record({
  question: user,
  thinking: fc.option(text, { nil: undefined, freq: 1 }),
  answer: text,
  calls: fc.array(fc.record({ input: jsonObject, result: text, isError: fc.boolean() }), { maxLength: 3 }),
});

/** A turn as messages: question, answer with calls, their results. */
function messagesOf(
  { question, thinking, answer, calls }: Turn,
  at: number,
  tools: readonly CanonicalTool[],
): CanonicalMessage[] {
  const uses = calls.map(({ input }, i): ToolUseBlock => {
    const raw = JSON.stringify(input);
    return { type: 'tool_use', id: `call_${at}_${i}`, name: tools[i % tools.length]?.name ?? 'f', input, input_raw: raw };
  });
  const results = calls.map(
    ({ result, isError }, i): ContentBlock => ({
      type: 'tool_result',
      tool_use_id: `call_${at}_${i}`,
      name: tools[i % tools.length]?.name ?? 'f',
      content: [{ type: 'text', text: `${result}.` }],
      ...(isError && { is_error: true }),
    }),
  );
  const thought: ContentBlock[] = thinking === undefined ? [] : [{ type: 'thinking', thinking, variant: 'full' }];
  return [
    question,
    { role: 'assistant', content: [...thought, { type: 'text', text: `${answer}.` }, ...uses] },
    ...(results.length > 0 ? [{ role: 'tool' as const, content: results }] : []),
  ];
}

/** A conversation that every protocol can hold, with tools, parameters and instructions; the last word is the user's. */
export const request: fc.Arbitrary<CanonicalRequest> = fc
  .record({
    system: fc.option(text, { nil: undefined }),
    turns: fc.array(turn, { maxLength: 3 }),
    last: user,
    tools: fc.uniqueArray(tool, { maxLength: 3, selector: (one) => one.name }),
    stream: fc.boolean(),
    temperature: fc.option(fc.constantFrom(0, 0.5, 1), { nil: undefined }),
    max_tokens: fc.option(fc.integer({ min: 16, max: 4096 }), { nil: undefined }),
  })
  .map(({ system, turns, last, tools, stream, temperature, max_tokens }) => {
    const heard = tools.length > 0 ? turns : turns.map((one) => ({ ...one, calls: [] }));
    return {
      model: 'model-a',
      ...(system !== undefined && { system: [{ type: 'text' as const, text: `${system}.` }] }),
      messages: [...heard.flatMap((one, at) => messagesOf(one, at, tools)), last],
      ...(tools.length > 0 && { tools, tool_choice: { type: 'auto' as const } }),
      parameters: { ...(temperature !== undefined && { temperature }), ...(max_tokens !== undefined && { max_tokens }) },
      stream,
    };
  });
