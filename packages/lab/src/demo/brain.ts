/** The demo model: what it answers, in which protocol, and in which pieces. */

import type {
  CanonicalMessage,
  CanonicalRequest,
  CanonicalResponse,
  CanonicalStreamEvent,
  CanonicalTool,
  ContentBlock,
  ProtocolId,
  ToolResultBlock,
} from '@sluice/core';
import { replay } from '@sluice/core/engine';
import { findMutation, SHORT_NAMES } from '../mutate/index.ts';
import { FaultError, type Faults, parseFaults, splitModel } from '../replay/faults.ts';
import { sampleArguments } from './arguments.ts';

/** Builds the response of the demo model; the same request always gets the same one. */
export function buildDemoResponse(request: CanonicalRequest): Pick<CanonicalResponse, 'content' | 'stop_reason'> {
  const turn = lastTurn(request);
  const text = lastText(turn);
  const result = lastResult(turn);
  const thoughts = buildThinking(request, result ? 'The tool returned a result.' : `The user wrote: ${excerpt(text, 120)}`);
  // A result is never followed by another call, not even a forced one, so that tool loops end.
  const call = result ? undefined : findCall(request, text);
  if (call && 'tool' in call) return { content: [...thoughts, ...callBlocks(call.tool, request)], stop_reason: 'tool_use' };
  const reply = result ? `The tool returned: ${excerpt(readText(result), 2000)}` : greeting(request, text, call?.unknown);
  return { content: [...thoughts, { type: 'text', text: reply }], stop_reason: 'end_turn' };
}

function buildThinking({ thinking }: CanonicalRequest, text: string): ContentBlock[] {
  const isThinking = thinking !== undefined && thinking.type !== 'disabled';
  return isThinking ? [{ type: 'thinking', thinking: text, variant: 'full' }] : [];
}

function callBlocks({ name, namespace, input_schema = {} }: CanonicalTool, { messages }: CanonicalRequest): ContentBlock[] {
  const input = sampleArguments(input_schema);
  return [
    { type: 'text', text: `Calling the tool ${name}.` },
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
  const missing = unknown === undefined ? '' : ` There is no tool "${excerpt(unknown, 80)}".`;
  const example = preferred(tools.filter(isFunction))?.name;
  const offered = example === undefined ? '' : ` Send the line "demo: call ${example}" to see a tool call.`;
  return `This is the demo model of Sluice: it needs no provider and no key, and always responds the same. You wrote: "${excerpt(text, 200)}".${missing}${offered} To use a real model, set an API key in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY …) and restart the gateway.`;
}

/**
 * Finds the call that `tool_choice` forces or a line of the text requests. Tool names elsewhere in the text are
 * ignored.
 */
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

/** The line that makes the demo call a tool. */
const CALL_LINE = /^demo: call (\S+)/m;

const preferred = (tools: readonly CanonicalTool[]): CanonicalTool | undefined =>
  tools.find(({ name }) => READS.test(name)) ?? tools[0];

/** Names of tools that only read. */
const READS = /read|get|list|search|find|glob|grep|fetch|look|weather|time|view|show|query|\bls\b/i;

const isFunction = ({ kind = 'function' }: CanonicalTool): boolean => kind === 'function';

/** The messages since the last assistant message. */
function lastTurn({ messages }: CanonicalRequest): CanonicalMessage[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
}

const lastResult = (turn: readonly CanonicalMessage[]): ToolResultBlock | undefined =>
  turn
    .flatMap(({ content }) => content)
    .filter((block) => block.type === 'tool_result')
    .at(-1);

function readText({ content }: ToolResultBlock): string {
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

/**
 * Models that clients can list. The demo accepts any other name, too, and the id of every dialect:
 * `demo/chat/usage-twice`.
 */
export const DEMO_MODELS: readonly string[] = ['hello', ...SHORT_NAMES.keys()];

/** The protocol of the demo: the client's, unless the model name is a dialect of another protocol. */
export function chooseProtocol(model: string, client: ProtocolId): ProtocolId {
  const { protocols = [client] } = findMutation(splitModel(model).model) ?? {};
  return protocols.includes(client) ? client : (protocols[0] ?? client);
}

/** Reads the faults from the model name: a dialect, or a suffix (`hello!cut=300`). */
export function readFaults(name: string): Faults {
  const { model, fault = '' } = splitModel(name);
  const faults = parseFaults(fault);
  const wrong = UNSUPPORTED.find((one) => faults[one] !== undefined);
  if (wrong) throw new FaultError(`the demo model does not support the fault "${wrong}"; use "sluice replay"`);
  const dialect = findMutation(model);
  return dialect ? { ...faults, mutations: [dialect, ...faults.mutations] } : faults;
}

/** Faults that affect more than the stream. */
const UNSUPPORTED = ['status', 'page', 'delay', 'times'] as const satisfies readonly (keyof Faults)[];

/** Yields the events of a response, word by word. */
export function* streamWords(response: CanonicalResponse): Iterable<CanonicalStreamEvent> {
  for (const event of replay(response)) {
    if (event.type !== 'content_block_delta') yield event;
    else for (const delta of cut(event.delta)) yield { ...event, delta };
  }
}

type Delta = Extract<CanonicalStreamEvent, { type: 'content_block_delta' }>['delta'];

function cut(delta: Delta): Delta[] {
  if (delta.type === 'text_delta') return delta.text.split(WORD_END).map((text) => ({ ...delta, text }));
  if (delta.type === 'thinking_delta') return delta.thinking.split(WORD_END).map((thinking) => ({ ...delta, thinking }));
  if (delta.type !== 'input_json_delta') return [delta];
  const pieces: Delta[] = [];
  for (let at = 0; at < delta.partial_json.length; at += ARGUMENT_PIECE)
    pieces.push({ ...delta, partial_json: delta.partial_json.slice(at, at + ARGUMENT_PIECE) });
  return pieces;
}

/**
 * Words keep the space before them, as models send them. A pattern that starts with spaces would be quadratic in a run
 * of them.
 */
const WORD_END = /(?<=\S)(?=\s)/;

const ARGUMENT_PIECE = 12;
