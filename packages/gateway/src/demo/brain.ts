import type { CanonicalRequest, CanonicalResponse, CanonicalTool, ContentBlock, ToolResultBlock } from '@sluice/core';
import { argumentsFor } from './arguments.ts';

/** Tools that change nothing: the demo must not run a stranger's shell. */
const HARMLESS = /read|get|list|search|find|glob|grep|fetch|look|weather|time|view|show|query|\bls\b/i;

/** What the demo model says: the same answer to the same question, always. */
export function answerOf(request: CanonicalRequest): Pick<CanonicalResponse, 'content' | 'stop_reason'> {
  const result = lastResult(request);
  const question = lastWords(request);
  const thoughts: ContentBlock[] = isThinking(request)
    ? [
        {
          type: 'thinking',
          thinking: result ? 'The tool has answered; I can tell.' : `I was asked: ${excerpt(question, 120)}`,
          variant: 'full',
        },
      ]
    : [];
  if (result)
    return {
      content: [...thoughts, { type: 'text', text: `The tool says: ${excerpt(textOf(result), 2000)}` }],
      stop_reason: 'end_turn',
    };
  const tool = toolFor(request, question);
  if (!tool) return { content: [...thoughts, { type: 'text', text: greeting(request, question) }], stop_reason: 'end_turn' };
  const input = argumentsFor(tool.input_schema ?? {}, question);
  return {
    content: [
      ...thoughts,
      { type: 'text', text: `I use ${tool.name} for that.` },
      { type: 'tool_use', id: `call_demo_${request.messages.length}`, name: tool.name, input, input_raw: JSON.stringify(input) },
    ],
    stop_reason: 'tool_use',
  };
}

function greeting({ tools = [] }: CanonicalRequest, question: string): string {
  const offered = tools.length > 0 ? ` You offered ${tools.length} tools; name one of them, and I call it.` : '';
  return `This is the demo model of Sluice: no provider, no key, always the same answer. You said: "${excerpt(question, 200)}".${offered} Put a key into the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY …), start again, and ask a real one.`;
}

/** The tool that must be called, or the one that the question names, or a harmless one when the question asks for a tool. */
function toolFor({ tools = [], tool_choice: choice }: CanonicalRequest, question: string): CanonicalTool | undefined {
  const own = tools.filter(({ kind }) => kind === undefined || kind === 'function');
  if (choice?.type === 'none') return undefined;
  if (choice?.type === 'tool') return own.find(({ name }) => name === choice.name);
  const named = own.find(({ name }) => new RegExp(`\\b${escaped(name)}\\b`, 'i').test(question));
  const wanted = choice?.type === 'any' || /\btools?\b/i.test(question);
  return (
    named ?? (wanted ? (own.find(({ name }) => HARMLESS.test(name)) ?? (choice?.type === 'any' ? own[0] : undefined)) : undefined)
  );
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const isThinking = ({ thinking }: CanonicalRequest): boolean => thinking !== undefined && thinking.type !== 'disabled';

/** The result that was sent last, when nobody has said anything since. */
function lastResult({ messages }: CanonicalRequest): ToolResultBlock | undefined {
  const last = messages.at(-1);
  return last?.role === 'tool' ? last.content.filter((block) => block.type === 'tool_result').at(-1) : undefined;
}

function textOf({ content }: ToolResultBlock): string {
  return typeof content === 'string'
    ? content
    : content.map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n');
}

function lastWords({ messages }: CanonicalRequest): string {
  const said = messages.findLast(({ role }) => role === 'user')?.content ?? [];
  return (
    said
      .map((block) => (block.type === 'text' ? block.text : ''))
      .filter((text) => text !== '')
      .at(-1) ?? ''
  );
}

const excerpt = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text);
