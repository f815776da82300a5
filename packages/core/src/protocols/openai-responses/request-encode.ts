import { deriveId } from '../../accumulate/argument-text.ts';
import type {
  AudioBlock,
  ContentBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { buildArgumentText, CharacterCount } from '../../codec/answers.ts';
import { findMediaType, nameFile } from '../../codec/media.ts';
import type { CodecContext, WireRequest } from '../../codec/protocol.ts';
import { expectList, expectObject, expectText, listOrEmpty, objectOrEmpty, optional, unknownFields } from '../../codec/read.ts';
import { noContent, noteApproximated, noteDropped } from '../../codec/report.ts';
import {
  acceptsSampling,
  buildRules,
  decodeBreakpoint,
  encodeBreakpoint,
  memoizeTarget,
  type TargetContext,
  withoutHoisted,
} from '../../codec/requests.ts';
import type { JsonObject } from '../../json/json.ts';
import { prepare } from '../../passes/prepare.ts';
import type { Capabilities, Rules, TargetRules } from '../../passes/rules.ts';
import {
  decodeCitation,
  decodeLogprobs,
  encodeCitation,
  encodeLogprobs,
  encodeReasoning,
  isOwnThinking,
  isSameItem,
  PART,
} from './blocks.ts';
import { replayableId } from './endpoints.ts';
import { toolRules } from './profiles.ts';
import { addJsonHint, BOUNDS, encodeOptions, encodeParameters, encodeText, encodeThinking, OPTION_FIELDS } from './settings.ts';
import { encodeBuiltIn, encodeToolChoice, encodeTools, foldParallel, SERVER_TOOLS } from './tools.ts';
import { findChannel, PROTOCOL, readExtensions } from './wire.ts';

/** Encodes a canonical request as a Responses request. */
export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const body = encodeRequestBody(request, context);
  return { method: 'POST', path: '/v1/responses', headers: { 'content-type': 'application/json' }, body };
}

/** Encodes the body: extensions first, then the canonical fields over them. */
export function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(withoutHoisted(source, PROTOCOL), buildRequestRules(source, caller), caller);
  const sent = readSent(request);
  const kept = sent ?? {};
  const thinking = encodeThinking(request.thinking, kept['reasoning'], context);
  const isSampling = acceptsSampling(objectOrEmpty(thinking['reasoning'])['effort'] ?? undefined, context);
  const conversation = encodeMessages(foldParallel(request.messages), sent !== undefined, context);
  // The API rejects an empty input, so a system prompt of another protocol that is alone becomes a message.
  const { instructions, items } = encodeSystem(request.system ?? [], sent === undefined && conversation.length === 0);
  const input = [...items, ...conversation];
  const hasTemplate = kept['prompt'] !== undefined;
  const isStored = hasMemory(request) || hasTemplate;
  if (input.length === 0 && instructions === undefined && !isStored) throw noContent('input');
  return {
    ...withoutMapped(kept),
    ...encodeModel(request, context),
    ...(instructions !== undefined && { instructions }),
    ...((input.length > 0 || !hasTemplate) && {
      input: isStored ? input : addJsonHint(input, request.output_format, context),
    }),
    ...encodeToolFields(request, kept, sent !== undefined, context),
    ...encodeParameters(request, isSampling, context),
    ...encodeText(request, kept['text'], context),
    ...thinking,
    ...encodeOptions(request, sent, context),
    ...encodeStreaming(request, kept, context),
  };
}

/** The extensions of a client of this protocol; undefined for other clients. */
const readSent = ({ extensions }: CanonicalRequest): JsonObject | undefined => extensions?.[PROTOCOL];

/** Whether the upstream stores a part of the conversation: results may belong to calls that are not in the request. */
function hasMemory({ state, messages }: CanonicalRequest): boolean {
  if (state?.previous_response_id !== undefined || state?.conversation_id !== undefined) return true;
  return messages.some(({ content }) => content.some((block) => block.type === 'opaque' && block.held !== undefined));
}

function encodeModel({ model }: CanonicalRequest, { target }: CodecContext): JsonObject {
  const name = target?.model || model;
  return name === '' ? {} : { model: name };
}

const MAX_BREAKPOINTS = 4;

const CAPABILITIES: Capabilities = {
  names: false,
  titles: 'filename',
  contexts: false,
  logprobs: true,
  citable: false,
  clips: false,
  detail: 'everywhere',
  validated: false,
  foreignCallers: /^code_execution/,
  tools: ['strict', 'defer_loading', 'allowed_callers', 'output_schema'],
};

/** What a Responses server requires of requests. */
const findTarget = /* @__PURE__ */ memoizeTarget(buildTarget);

function buildTarget({ profile, source, sourceTraits }: TargetContext): TargetRules {
  return {
    ...toolRules(profile),
    protocol: PROTOCOL,
    toolId: profile.tool_id,
    unsignedThinking: 'keep',
    serverTools: SERVER_TOOLS,
    media: {
      // The API accepts no audio in messages; a client of this protocol may use a server that does.
      audio: source === PROTOCOL ? ['wav', 'mp3'] : [],
      imageUrls: true,
      fileUrls: true,
      imageIds: true,
      fileIds: true,
      idProtocols: [PROTOCOL, 'openai-chat'],
      video: !profile.official,
      assistantAudio: 'transcript',
      inToolResults: true,
    },
    alternate: profile.strict_alternation,
    emptyMessages: 'drop_beside',
    dropWhitespace: false,
    firstUser: false,
    trailingAssistant: sourceTraits?.continuesPrefill ? 'note' : 'keep',
    midSystem: 'keep',
    schemas: { tool: 'openai', strictTool: 'openai-strict', output: 'openai', strictOutput: 'openai' },
    bounds: BOUNDS,
    maxStop: Number.POSITIVE_INFINITY,
    maxTools: profile.max_tools,
    // Models without breakpoints cache automatically.
    cacheMarks: { places: profile.cache_breakpoints ? 'inputs' : 'automatic', max: MAX_BREAKPOINTS, ttls: ['30m', '12h'] },
    supports: CAPABILITIES,
  };
}

/** A request has extensions of this protocol exactly if it was decoded from it. */
function buildRequestRules(request: CanonicalRequest, context: CodecContext): Rules {
  const target = findTarget(readSent(request) ? { profile: context.profile, source: PROTOCOL } : context);
  return buildRules(target, context, hasMemory(request));
}

/** Extensions that are replaced by canonical fields. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([...OPTION_FIELDS, 'reasoning', 'text', 'tool_choice', 'stream_options']);

/** Object.fromEntries defines fields, so that one called `__proto__` is data. */
const withoutMapped = (kept: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(kept).filter(([name]) => !MAPPED_FIELDS.has(name)));

/**
 * Encodes tools, tool choice and parallel calls. Without tools there is nothing to choose, unless a stored prompt has
 * some.
 */
function encodeToolFields(request: CanonicalRequest, kept: JsonObject, isOwn: boolean, context: CodecContext): JsonObject {
  const { tools = [], tool_choice: choice, parallel_tool_use: parallel } = request;
  const hasTools = tools.length > 0 || isOwn;
  if (choice && !hasTools && (choice.type === 'any' || choice.type === 'tool'))
    noteDropped(context, {
      path: '/tool_choice',
      feature: 'tool_choice',
      message: 'tool_choice without tools is rejected by the target; dropped',
    });
  return {
    ...(tools.length > 0 && { tools: encodeTools(tools, isOwn) }),
    ...(choice && hasTools && { tool_choice: encodeToolChoice(choice, tools, kept['tool_choice']) }),
    ...(parallel !== undefined && hasTools && { parallel_tool_calls: parallel }),
  };
}

function encodeStreaming(
  { stream: wanted, stream_options: options }: CanonicalRequest,
  kept: JsonObject,
  context: CodecContext,
): JsonObject {
  const stream = context.target?.stream ?? wanted;
  if (!stream) return wanted === undefined ? {} : { stream: false };
  const padding = options?.include_obfuscation;
  const stream_options = {
    ...objectOrEmpty(kept['stream_options']),
    ...(padding !== undefined && context.profile.official && { include_obfuscation: padding }),
  };
  return { stream: true, ...(Object.keys(stream_options).length > 0 && { stream_options }) };
}

// ---- system

/** The system prompt, split into `instructions` and items of the input. */
export interface Instructions {
  instructions: string | undefined;
  items: JsonObject[];
}

/**
 * Leading plain text becomes the `instructions`. The first block with fields of a message, a developer role or a cache
 * mark is an input item, and so are all that follow, to keep the order. `isInput`: everything is an item.
 */
export function encodeSystem(system: readonly SystemBlock[], isInput: boolean): Instructions {
  const first = isInput ? 0 : system.findIndex((block) => !isInstruction(block));
  const plain = first < 0 ? system : system.slice(0, first);
  return {
    instructions: plain.length > 0 ? plain.map(({ text }) => text).join('\n\n') : undefined,
    items: first < 0 ? [] : encodeSystemItems(system.slice(first)),
  };
}

function isInstruction(block: SystemBlock): boolean {
  const { instructions, message } = readExtensions(block);
  if (instructions === true) return true;
  return message === undefined && block.role !== 'developer' && !block.cache_control;
}

/** A block with a role starts a message; the others continue it. */
function encodeSystemItems(blocks: readonly SystemBlock[]): JsonObject[] {
  const runs: SystemBlock[][] = [];
  for (const block of blocks) {
    const run = runs.at(-1);
    if (run && block.role === undefined) run.push(block);
    else runs.push([block]);
  }
  return runs.map((run) => {
    const [first] = run;
    const { id: named, ...fields } = objectOrEmpty(first && readExtensions(first)['message']);
    const id = replayableId(named, 'msg');
    return {
      ...fields,
      type: 'message',
      ...(id !== undefined && { id }),
      role: first?.role ?? 'developer',
      content: run.map(encodeInputText),
    };
  });
}

function encodeInputText(block: TextBlock | SystemBlock): JsonObject {
  const { message: _, instructions: __, ...fields } = readExtensions(block);
  return { ...fields, type: 'input_text', text: block.text, ...encodeBreakpoint(block) };
}

// ---- messages

/** The conversation as items, in order. `isOwn`: the client uses this protocol, so lists of texts stay lists. */
function encodeMessages(messages: readonly CanonicalMessage[], isOwn: boolean, context: CodecContext): JsonObject[] {
  const custom = findCustomCalls(messages);
  return messages.flatMap((message, i) => {
    const at = `/messages/${i}`;
    switch (message.role) {
      case 'user':
        return [encodeMessage(message, 'user', at, context)];
      case 'system':
        return [encodeMessage(message, readExtensions(message)['role'] === 'system' ? 'system' : 'developer', at, context)];
      case 'assistant':
        return new TurnEncoder(message, at, context).encode();
      case 'tool':
        return message.content.flatMap((block, k) => {
          if (block.type !== 'tool_result') return [];
          const form = { isCustom: custom.has(block.tool_use_id), isOwn };
          return [encodeBuiltIn(block) ?? encodeOutput(block, form, `${at}/content/${k}`, context)];
        });
      default:
        return message.role satisfies never;
    }
  });
}

function findCustomCalls(messages: readonly CanonicalMessage[]): Set<string> {
  const ids = new Set<string>();
  for (const { content } of messages)
    for (const block of content) {
      if (block.type === 'tool_use' && block.kind === 'custom') ids.add(block.id);
      else if (block.type === 'tool_result' && block.kind === 'custom') ids.add(block.tool_use_id);
    }
  return ids;
}

function encodeMessage(message: CanonicalMessage, role: string, at: string, context: CodecContext): JsonObject {
  const id = replayableId(message.id, 'msg');
  const { role: _, ...fields } = readExtensions(message);
  const parts = encodeParts(message.content, `${at}/content`, context);
  return {
    ...fields,
    type: 'message',
    ...(id !== undefined && { id }),
    role,
    content: parts.length > 0 ? parts : '',
  };
}

/** Encodes an assistant turn: its blocks as items, in their order. */
class TurnEncoder {
  readonly #message: CanonicalMessage;
  readonly #at: string;
  readonly #context: CodecContext;
  readonly #items: JsonObject[] = [];
  #texts: TextBlock[] = [];
  /** The path of the first text. */
  #textsAt = '';
  #thoughts: ThinkingBlock[] = [];
  /** The path of the latest thinking block. */
  #lastThought = '';

  constructor(message: CanonicalMessage, at: string, context: CodecContext) {
    this.#message = message;
    this.#at = `${at}/content`;
    this.#context = context;
  }

  encode(): JsonObject[] {
    this.#message.content.forEach((block, i) => {
      this.#add(block, `${this.#at}/${i}`);
    });
    this.#flush();
    this.#dropTrailing();
    return this.#items;
  }

  #add(block: ContentBlock, path: string): void {
    if (block.type === 'text') this.#addText(block, path);
    else if (block.type === 'thinking') this.#addThinking(block, path);
    else {
      this.#flush();
      this.#addItem(block, path);
    }
  }

  #addText(block: TextBlock, path: string): void {
    if (block.text === '') return;
    const last = this.#texts.at(-1);
    if (this.#thoughts.length > 0 || (last && !isSameMessage(last, block))) this.#flush();
    if (this.#texts.length === 0) this.#textsAt = path;
    this.#texts.push(block);
  }

  /** Thinking of other protocols has no item here. */
  #addThinking(block: ThinkingBlock, path: string): void {
    if (!isOwnThinking(block)) {
      noteDropped(this.#context, {
        path,
        feature: 'assistant.thinking',
        message: 'thinking of an earlier turn is not supported by the target; dropped',
      });
      return;
    }
    const last = this.#thoughts.at(-1);
    if (this.#texts.length > 0 || (last && !isSameItem(last, block))) this.#flush();
    this.#thoughts.push(block);
    this.#lastThought = path;
  }

  #addItem(block: Exclude<ContentBlock, TextBlock | ThinkingBlock>, path: string): void {
    if (block.type === 'tool_use') this.#items.push(encodeBuiltIn(block) ?? encodeCall(block));
    else if (block.type === 'opaque') this.#items.push(objectOrEmpty(block.raw));
    else
      noteDropped(this.#context, {
        path,
        feature: `assistant.${block.type}`,
        message: `this ${block.type} in an assistant message is not supported by OpenAI Responses; dropped`,
      });
  }

  #flush(): void {
    if (this.#thoughts.length > 0) this.#addReasoning(encodeReasoning(this.#thoughts));
    if (this.#texts.length > 0) this.#items.push(encodeAssistantMessage(this.#texts, this.#message, this.#textsAt));
    this.#thoughts = [];
    this.#texts = [];
  }

  /** An item whose id was dropped, because it is not one of this API, may be empty. */
  #addReasoning(item: JsonObject): void {
    const { id, summary, content, encrypted_content: cipher } = item;
    if (id ?? cipher ?? content ?? listOrEmpty(summary)[0]) this.#items.push(item);
    else
      noteDropped(this.#context, {
        path: this.#lastThought,
        feature: 'assistant.thinking',
        message: 'the reasoning item is empty after conversion; dropped',
      });
  }

  /**
   * The API looks up reasoning by id and rejects it without the item that follows. Without an id only the encrypted
   * content counts.
   */
  #dropTrailing(): void {
    const led = 1 + this.#items.findLastIndex(({ type }) => type !== 'reasoning');
    const trailing = this.#items.splice(led);
    for (const { id, ...rest } of trailing) {
      if (id === undefined || rest['encrypted_content'] !== undefined) this.#items.push(rest);
      else
        noteDropped(this.#context, {
          path: this.#lastThought,
          feature: 'assistant.thinking',
          message: 'reasoning without the item that follows it is rejected by OpenAI Responses; dropped',
        });
    }
  }
}

/** Whether two texts belong to one item: they have its id, or a part number; texts of other protocols are joined. */
function isSameMessage(before: TextBlock, after: TextBlock): boolean {
  const own = after.extensions?.[PROTOCOL];
  if (own === undefined) return before.extensions?.[PROTOCOL] === undefined;
  return own[PART] !== undefined || (own['item_id'] !== undefined && own['item_id'] === readExtensions(before)['item_id']);
}

function encodeCall(call: ToolUseBlock): JsonObject {
  const isCustom = call.kind === 'custom';
  const { parallel_call_id: _, ...fields } = readExtensions(call);
  const id = replayableId(call.item_id, isCustom ? 'ctc' : 'fc');
  return {
    ...fields,
    type: isCustom ? 'custom_tool_call' : 'function_call',
    ...(id !== undefined && { id }),
    call_id: call.id,
    ...(call.namespace !== undefined && { namespace: call.namespace }),
    name: call.name,
    [isCustom ? 'input' : 'arguments']: buildArgumentText(call, false),
    ...(call.status && { status: call.status }),
  };
}

/**
 * An assistant message. Always `output_text`: the API rejects `input_text` of an assistant, and llama.cpp rejects a
 * string.
 */
function encodeAssistantMessage(texts: readonly TextBlock[], message: CanonicalMessage, path: string): JsonObject {
  const [first] = texts;
  const { item_id: itemId, phase, status, message: rest } = first ? readExtensions(first) : {};
  const isUnnamed = itemId === undefined && first?.extensions?.[PROTOCOL] !== undefined;
  // The published type requires an id; an item that a client of this protocol sent without one stays without.
  const id = replayableId(itemId ?? message.id, 'msg') ?? (isUnnamed ? undefined : deriveId('msg_', path));
  const finalPhase = phase ?? message.phase;
  return {
    ...objectOrEmpty(rest),
    type: 'message',
    ...(id !== undefined && { id }),
    role: 'assistant',
    // An output item with an id requires a status.
    ...(status !== undefined ? { status } : id !== undefined && { status: 'completed' }),
    content: texts.map(encodeAssistantPart),
    ...(finalPhase !== undefined && { phase: finalPhase }),
  };
}

function encodeAssistantPart(block: TextBlock): JsonObject {
  const { item_id: _, phase: __, status: ___, message: ____, [PART]: _____, ...fields } = readExtensions(block);
  if (block.refusal) return { ...fields, type: 'refusal', refusal: block.text };
  const length = new CharacterCount();
  length.add(block.text);
  const annotations = (block.citations ?? []).flatMap((citation) => encodeCitation(citation, length) ?? []);
  return {
    ...fields,
    type: 'output_text',
    text: block.text,
    annotations,
    ...(block.logprobs && { logprobs: encodeLogprobs(block.logprobs) }),
  };
}

interface OutputForm {
  isCustom: boolean;
  isOwn: boolean;
}

function encodeOutput(block: ToolResultBlock, { isCustom, isOwn }: OutputForm, at: string, context: CodecContext): JsonObject {
  const fields = readExtensions(block);
  const output = typeof block.content === 'string' ? block.content : encodeOutputParts(block.content, isOwn, at, context);
  const isUnmarked = block.is_error === true && fields['status'] !== 'incomplete';
  return {
    ...fields,
    type: isCustom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: block.tool_use_id,
    output: isUnmarked ? markError(output, at, context) : output,
  };
}

/** Text alone is a string unless the client sent a list; images and files stay parts. */
function encodeOutputParts(
  blocks: readonly ContentBlock[],
  isOwn: boolean,
  at: string,
  context: CodecContext,
): string | JsonObject[] {
  const parts = encodeParts(blocks, `${at}/content`, context);
  if (isOwn && parts.length > 0) return parts;
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n') : parts;
}

const isPlainText = (part: JsonObject): boolean => part['type'] === 'input_text' && Object.keys(part).length === 2;

/** Matches text that already names an error: the wire has no field for it. */
const ERROR_PREFIX = /^\s*error\s*[:!-]/i;

function markError(output: string | JsonObject[], at: string, context: CodecContext): string | JsonObject[] {
  const text = typeof output === 'string' ? output : String(output.find(({ type }) => type === 'input_text')?.['text'] ?? '');
  noteApproximated(context, {
    path: at,
    feature: 'tool_result.is_error',
    message: 'the error flag of a tool result is not supported by OpenAI Responses; sent as the prefix "Error:"',
  });
  if (ERROR_PREFIX.test(text)) return output;
  return typeof output === 'string' ? `Error: ${output}` : [{ type: 'input_text', text: 'Error:' }, ...output];
}

// ---- content parts

/** The blocks of a user message, system message or tool result as parts; `at` is their JSON pointer. */
function encodeParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): JsonObject[] {
  return blocks.flatMap((block, i) => encodePart(block, `${at}/${i}`, context));
}

function encodePart(block: ContentBlock, at: string, context: CodecContext): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [encodeInputText(block)];
    case 'image':
      return [encodeImage(block)];
    case 'audio':
      return [encodeAudio(block)];
    case 'file':
      return [encodeFile(block)];
    case 'opaque':
      return [objectOrEmpty(block.raw)]; // of this protocol: others were removed before
    case 'thinking':
    case 'tool_use':
    case 'tool_result':
      noteDropped(context, {
        path: at,
        feature: `messages.${block.type}`,
        message: `a ${block.type} block is not supported here by OpenAI Responses; dropped`,
      });
      return [];
    default:
      return block satisfies never;
  }
}

function encodeImage(block: ImageBlock): JsonObject {
  const { url, data, media_type: type, file_id: id, detail } = block.source;
  const image_url = data === undefined ? url : `data:${type || 'image/png'};base64,${data}`;
  return {
    ...readExtensions(block),
    type: 'input_image',
    ...(image_url !== undefined && { image_url }),
    ...(image_url === undefined && id !== undefined && { file_id: id }),
    detail: detail ?? 'auto',
    ...encodeBreakpoint(block),
  };
}

function encodeAudio(block: AudioBlock): JsonObject {
  const { data, format } = block.source;
  return { ...readExtensions(block), type: 'input_audio', input_audio: { data, format }, ...encodeBreakpoint(block) };
}

/** The API requires a name and a media type for each file. */
function encodeFile(block: FileBlock): JsonObject {
  const { file_data: data, file_id: id, file_url: url, filename, media_type: named } = block.source;
  const type = named || (findMediaType({ name: filename, data }) ?? 'application/pdf');
  const name = filename ?? nameFile(type);
  const given = filename === undefined ? {} : { filename };
  const source =
    data !== undefined
      ? { filename: name, file_data: `data:${type};base64,${data}` }
      : { ...given, ...(url === undefined ? { file_id: id } : { file_url: url }) };
  return { ...readExtensions(block), type: 'input_file', ...source, ...encodeBreakpoint(block) };
}

// ---- assistant messages of the history

const MESSAGE_FIELDS = new Set(['type', 'role', 'content', 'id', 'phase', 'status']);

/** Decodes an assistant message to blocks, each with its path. Other fields of the item are kept on its first text. */
export function decodeAssistantItem(
  item: JsonObject,
  param: string,
  isSigned: boolean,
): [block: TextBlock | OpaqueBlock, param: string][] {
  const { content, id, phase, status } = item;
  const inner = `${param}.content`;
  const parts =
    typeof content === 'string' ? [{ type: 'output_text', text: content }] : (optional(content, inner, expectList) ?? []);
  const rest = unknownFields(item, MESSAGE_FIELDS);
  const head = {
    ...(typeof id === 'string' && id !== '' && { item_id: id }),
    ...(typeof phase === 'string' && { phase }),
    ...(typeof status === 'string' && { status }),
  };
  return parts.flatMap((value, i): [TextBlock | OpaqueBlock, string][] => {
    const place = typeof content === 'string' ? inner : `${inner}[${i}]`;
    const part = typeof value === 'string' ? { type: 'output_text', text: value } : expectObject(value, place);
    const channel = findChannel(expectText(part['type'], `${place}.type`));
    // An unknown part is kept in a message of its own.
    if (channel !== 'text' && channel !== 'refusal') return [[opaqueMessage(item, part), place]];
    const fields = { ...head, ...(i === 0 && rest && { message: rest }), ...(i > 0 && { [PART]: i }) };
    const block = decodeText(part, place, channel === 'refusal', fields);
    return block.text === '' && !isSigned ? [] : [[block, place]];
  });
}

const opaqueMessage = (item: JsonObject, part: JsonObject): OpaqueBlock => ({
  type: 'opaque',
  origin: PROTOCOL,
  raw: { ...item, type: 'message', content: [part] },
});

/** Extensions that tell which message a text belongs to. */
const ITEM_FIELDS = ['item_id', 'phase', 'status', 'message', PART];

const PART_FIELDS = new Set(['type', 'text', 'refusal', 'annotations', 'logprobs', 'prompt_cache_breakpoint', ...ITEM_FIELDS]);

function decodeText(part: JsonObject, param: string, isRefusal: boolean, fields: JsonObject): TextBlock {
  const name = isRefusal ? 'refusal' : 'text';
  const citations = listOrEmpty(part['annotations']).map((value, i) =>
    decodeCitation(expectObject(value, `${param}.annotations[${i}]`)),
  );
  const logprobs = decodeLogprobs(part['logprobs']);
  return {
    type: 'text',
    text: expectText(part[name], `${param}.${name}`),
    ...(isRefusal && { refusal: true }),
    ...(citations.length > 0 && { citations }),
    ...(logprobs && { logprobs }),
    ...decodeBreakpoint(part),
    extensions: { [PROTOCOL]: { ...unknownFields(part, PART_FIELDS), ...fields } },
  };
}
