import type {
  CanonicalMessage,
  CanonicalRequest,
  CanonicalResponse,
  CanonicalTool,
  ContentBlock,
  ToolResultBlock,
} from '@sluice/core';
import { sampleArguments } from './arguments.ts';

/** Names of tools that only read. */
const READS = /read|get|list|search|find|glob|grep|fetch|look|weather|time|view|show|query|\bls\b/i;

/** The line that makes the demo call a tool. */
const CALL_LINE = /^demo: call (\S+)/m;

/** The response of the demo model: the same request always gets the same one. */
export function answerOf(request: CanonicalRequest): Pick<CanonicalResponse, 'content' | 'stop_reason'> {
  const turn = lastTurn(request);
  const text = lastText(turn);
  const result = lastResult(turn);
  const thoughts = thoughtsAbout(request, result ? 'The tool has answered; I can tell.' : `I was asked: ${excerpt(text, 120)}`);
  // A result is never followed by another call, even a forced one: a client that runs tools in a loop ends here.
  const call = result ? undefined : findCall(request, text);
  if (call && 'tool' in call) return { content: [...thoughts, ...callBlocks(call.tool, request)], stop_reason: 'tool_use' };
  const reply = result ? `The tool says: ${excerpt(textOf(result), 2000)}` : greeting(request, text, call?.unknown);
  return { content: [...thoughts, { type: 'text', text: reply }], stop_reason: 'end_turn' };
}

function thoughtsAbout({ thinking }: CanonicalRequest, text: string): ContentBlock[] {
  const isThinking = thinking !== undefined && thinking.type !== 'disabled';
  return isThinking ? [{ type: 'thinking', thinking: text, variant: 'full' }] : [];
}

function callBlocks({ name, namespace, input_schema = {} }: CanonicalTool, { messages }: CanonicalRequest): ContentBlock[] {
  const input = sampleArguments(input_schema);
  return [
    { type: 'text', text: `I use ${name} for that.` },
    {
      type: 'tool_use',
      id: `call_demo_${messages.length}`,
      name,
      ...(namespace !== undefined && { namespace }),
      input,
      input_raw: JSON.stringify(input),
    },
  ];
}

function greeting({ tools = [] }: CanonicalRequest, text: string, unknown: string | undefined): string {
  const missing = unknown === undefined ? '' : ` No tool is named "${excerpt(unknown, 80)}".`;
  const example = preferred(tools.filter(isFunction))?.name;
  const offered = example === undefined ? '' : ` Send the line "demo: call ${example}" to see a tool call.`;
  return `This is the demo model of Sluice: no provider, no key, always the same answer. You said: "${excerpt(text, 200)}".${missing}${offered} Put a key into the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY …), start again, and ask a real one.`;
}

/** The call that `tool_choice` forces, or that a line of the text asks for. Tool names elsewhere in the text mean nothing. */
function findCall(request: CanonicalRequest, text: string): { tool: CanonicalTool } | { unknown: string } | undefined {
  const { tools = [], tool_choice: choice } = request;
  if (choice?.type === 'none') return undefined;
  const allowed = choice?.type !== 'tool' ? choice?.allowed_tools : undefined;
  const own = tools.filter((tool) => isFunction(tool) && (allowed?.includes(tool.name) ?? true));
  const name = choice?.type === 'tool' ? choice.name : CALL_LINE.exec(text)?.[1];
  const named = own.find((tool) => tool.name === name);
  const tool = named ?? (choice?.type === 'any' ? preferred(own) : undefined);
  if (tool) return { tool };
  return name === undefined ? undefined : { unknown: name };
}

const preferred = (tools: readonly CanonicalTool[]): CanonicalTool | undefined =>
  tools.find(({ name }) => READS.test(name)) ?? tools[0];

const isFunction = ({ kind = 'function' }: CanonicalTool): boolean => kind === 'function';

/** What was sent since the model spoke last. */
function lastTurn({ messages }: CanonicalRequest): CanonicalMessage[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
}

const lastResult = (turn: readonly CanonicalMessage[]): ToolResultBlock | undefined =>
  turn
    .flatMap(({ content }) => content)
    .filter((block) => block.type === 'tool_result')
    .at(-1);

function textOf({ content }: ToolResultBlock): string {
  return typeof content === 'string'
    ? content
    : content.map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n');
}

/** The last text block of the last user message: clients put their own notes into the blocks before it. */
function lastText(turn: readonly CanonicalMessage[]): string {
  const { content = [] } = turn.findLast(({ role }) => role === 'user') ?? {};
  return content.filter((block) => block.type === 'text').findLast(({ text }) => text !== '')?.text ?? '';
}

const excerpt = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text);
