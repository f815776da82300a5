import { deriveId } from '../../accumulate/argument-text.ts';
import type {
  AudioBlock,
  ContentBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/message.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { withFieldSource, withSource } from '../../canonical/source.ts';
import { extensionPath } from '../../codec/extensions.ts';
import type { CodecContext, WireRequest } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectConversation,
  expectList,
  expectName,
  expectObject,
  expectShallow,
  expectShallowJson,
  expectText,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toPointer,
  unknownFields,
} from '../../codec/read.ts';
import { invalid, isStrict, missing, noteRepaired } from '../../codec/report.ts';
import { decodeBreakpoint, isDetail, isEmptyText, keepSource, readDataUrl } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { writeExact } from '../../json/literals.ts';
import { decodeReasoning } from './blocks.ts';
import { isDerivedId } from './endpoints.ts';
import { decodeAssistantItem } from './request-encode.ts';
import {
  collectTextExtensions,
  decodeOptions,
  decodeParameters,
  decodeTextOptions,
  decodeThinking,
  PARAMETER_FIELDS,
} from './settings.ts';
import {
  collectToolChoiceExtensions,
  decodeBuiltInCall,
  decodeBuiltInOutput,
  decodeInputTools,
  decodeToolChoice,
  decodeTools,
} from './tools.ts';
import { listFieldPaths, PROTOCOL, readExtensions, toExtensions } from './wire.ts';

/** Decodes a Responses request. */
export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context);
}

/**
 * Fields with a canonical place. Everything else is kept as an extension; options and `reasoning` are both mapped and
 * kept.
 */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'stream',
  ...PARAMETER_FIELDS,
]);

/** Decodes the body of a Responses request. */
export function decodeRequestBody(wire: unknown, context: CodecContext): CanonicalRequest {
  const body = expectObject(wire, 'body');
  const list = readInput(body);
  expectShallow(body);
  const { system, messages } = decodeInput(list, { context });
  const declared = decodeTools(body['tools'], 'tools', context);
  const tools = [...declared, ...decodeInputTools(list, declared, context)];
  const choice = decodeToolChoice(body['tool_choice']);
  const thinking = decodeThinking(body['reasoning'], context);
  const options = decodeOptions(body, context);
  const parallel = optional(body['parallel_tool_calls'], 'parallel_tool_calls', expectBoolean);
  const instructed = [...decodeInstructions(body['instructions'], context), ...system];
  const request: CanonicalRequest = {
    model: readModel(body),
    ...(instructed.length > 0 && { system: instructed }),
    messages,
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(body, options.include ?? [], context),
    ...decodeTextOptions(body['text']),
    ...(parallel !== undefined && { parallel_tool_use: parallel }),
    ...(thinking && { thinking }),
    ...decodeStreaming(body),
    ...options,
    // Always set, because it also shows that the request came in this protocol.
    extensions: {
      [PROTOCOL]: {
        ...unknownFields(body, MAPPED_FIELDS),
        ...collectTextExtensions(body['text']),
        ...collectToolChoiceExtensions(body['tool_choice'], tools),
      },
    },
  };
  return withSource('', request, context, listFieldPaths(body));
}

/** The input items; they are optional with a stored prompt or a stored conversation. */
function readInput(body: JsonObject): readonly unknown[] {
  const { input, prompt, previous_response_id: previous, conversation } = body;
  if (input !== undefined && input !== null) return expectInput(input);
  if (prompt ?? previous ?? conversation) return [];
  throw missing('input');
}

function expectInput(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [{ role: 'user', content: value }];
  const list = expectList(value, 'input');
  expectConversation(list, 'input');
  return list;
}

function decodeInstructions(value: unknown, context: CodecContext): SystemBlock[] {
  const text = optional(value, 'instructions', expectText);
  if (!text) return [];
  return [withSource('/instructions', { type: 'text', text, extensions: { [PROTOCOL]: { instructions: true } } }, context)];
}

/** The model; a stored prompt may define it. */
const readModel = ({ model, prompt }: JsonObject): string =>
  prompt && (model === undefined || model === null) ? '' : expectName(model, 'model');

function decodeStreaming(body: JsonObject): Pick<CanonicalRequest, 'stream' | 'stream_options'> {
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const padding = objectOrEmpty(optional(body['stream_options'], 'stream_options', expectObject))['include_obfuscation'];
  return {
    ...(stream !== undefined && { stream }),
    ...(typeof padding === 'boolean' && { stream_options: { include_obfuscation: padding } }),
  };
}

// ---- items

/** State shared by all parts of a request. */
interface Scope {
  context: CodecContext;
}

interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

function decodeInput(list: readonly unknown[], scope: Scope): Conversation {
  const reader = new InputReader(scope);
  list.forEach((item, i) => {
    reader.read(expectObject(item, `input[${i}]`), `input[${i}]`);
  });
  return reader.conversation;
}

type ReadItem = (reader: InputReader, item: JsonObject, param: string) => void;

const ITEMS: Readonly<Record<string, ReadItem>> = {
  message: (reader, item, param) => reader.message(item, param),
  reasoning: (reader, item, param) => reader.reasoning(item, param),
  item_reference: (reader, item, param) => reader.reference(item, param),
  function_call: (reader, item, param) => reader.call(item, param),
  custom_tool_call: (reader, item, param) => reader.call(item, param),
  function_call_output: (reader, item, param) => reader.output(item, param),
  custom_tool_call_output: (reader, item, param) => reader.output(item, param),
};

const ROLES = ['user', 'assistant', 'system', 'developer'];

const MESSAGE_FIELDS = new Set(['type', 'role', 'content', 'id']);

/** The blocks of users, system messages and tool results. */
type Part = TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock;

/**
 * Groups items to turns: consecutive reasoning, text and calls are one assistant turn, consecutive outputs one tool
 * message.
 */
class InputReader {
  readonly conversation: Conversation = { system: [], messages: [] };
  readonly #scope: Scope;
  /** The names of calls by id, and the ids of calls without an output. */
  readonly #calls = new Map<string, string>();
  readonly #openCalls = new Set<string>();
  /** The signature of the call or text that follows. */
  #next: SignedBlob | undefined;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  read(item: JsonObject, param: string): void {
    const type = optional(item['type'], `${param}.type`, expectText) || findType(item);
    if (type === undefined) throw invalid(`${param}.type`, 'is required unless the item has a role or an id');
    const read = Object.hasOwn(ITEMS, type) ? ITEMS[type] : undefined;
    if (read) read(this, item, param);
    else this.#readOther(item, param);
  }

  /** Built-in tools that the client runs become calls; items that only the server understands become opaque blocks. */
  #readOther(item: JsonObject, param: string): void {
    const call = decodeBuiltInCall(item);
    const result = decodeBuiltInOutput(item);
    if (call) this.#addBlock(this.#sign(call), param);
    else if (result) this.#addResult(result, param);
    else {
      const hoisted = item['type'] === 'additional_tools' && { hoisted: true };
      this.#addBlock({ type: 'opaque', origin: PROTOCOL, raw: item, ...hoisted } satisfies OpaqueBlock, param);
    }
  }

  /** Reads a reference to a stored item, which only a server of this protocol can resolve. */
  reference(item: JsonObject, param: string): void {
    this.#addBlock({ type: 'opaque', origin: PROTOCOL, raw: item, held: textOrEmpty(item['id']) } satisfies OpaqueBlock, param);
  }

  message(item: JsonObject, param: string): void {
    const role = expectText(item['role'], `${param}.role`);
    if (role === 'assistant') {
      const blocks = decodeAssistantItem(item, param, this.#next !== undefined);
      for (const [block, place] of blocks)
        this.#addBlock(this.#sign(block), place, listItemPaths(toPointer(place), toPointer(param)));
      if (blocks.length === 0) {
        const message = 'a message without content is not accepted by the target; dropped';
        noteRepaired(this.#scope.context, { path: toPointer(param), feature: 'messages.empty', message });
      }
      return;
    }
    if (!ROLES.includes(role)) throw invalid(`${param}.role`, `must be one of ${ROLES.join(', ')}`);
    if (typeof item['content'] !== 'string') expectList(item['content'], `${param}.content`);
    const content = decodeContent(item['content'], `${param}.content`, this.#scope);
    if (role === 'user')
      this.#add({ role, content, ...readId(item), ...toExtensions(unknownFields(item, MESSAGE_FIELDS)) }, param);
    else this.#addSystem(item, role, content, param);
  }

  /** Adds a system message; before the first turn it becomes part of the system prompt. */
  #addSystem(item: JsonObject, role: string, content: Part[], param: string): void {
    const { system, messages } = this.conversation;
    const fields = unknownFields(item, MESSAGE_FIELDS);
    const isHoisted = messages.length === 0 || this.#scope.context.policy.systemHoist === 'all';
    const texts = content.filter((block) => block.type === 'text');
    if (isHoisted && texts.length === content.length)
      for (const [i, block] of texts.entries())
        system.push(i === 0 ? this.#hoistFirst(block, role, { ...readId(item), ...fields }, param) : hoist(block));
    else this.#add({ role: 'system', content, ...readId(item), ...toExtensions({ ...fields, role }) }, param);
  }

  /** The first block of each message has its role and fields: a block without a role continues the message. */
  #hoistFirst(block: TextBlock, name: string, fields: JsonObject, param: string): SystemBlock {
    const role = name === 'developer' ? 'developer' : 'system';
    const first: SystemBlock = { ...hoist(block), role, ...toExtensions({ ...readExtensions(block), message: fields }) };
    return withFieldSource(MESSAGE_PATH, toPointer(param), first, this.#scope.context);
  }

  reasoning(item: JsonObject, param: string): void {
    const { blocks, signs } = decodeReasoning(item, this.#scope.context);
    for (const block of blocks) this.#addBlock(block, param);
    const blob = signs && withSource(toPointer(`${param}.encrypted_content`), signs.blob, this.#scope.context);
    if (blob && (signs.which === 'next' || !this.#signLast(blob))) this.#next = blob;
  }

  /** Signs the preceding text; false if there is none. */
  #signLast(signature: SignedBlob): boolean {
    const content = this.conversation.messages.at(-1)?.content;
    const last = content?.at(-1);
    if (!content || last?.type !== 'text' || this.conversation.messages.at(-1)?.role !== 'assistant') return false;
    content[content.length - 1] = { ...last, signature };
    return true;
  }

  call(item: JsonObject, param: string): void {
    const block = decodeCall(item, param, this.#scope.context);
    this.#calls.set(block.id, block.name);
    this.#openCalls.add(block.id);
    this.#addBlock(this.#sign(block), param);
  }

  #sign<T extends ContentBlock>(block: T): T {
    const signature = this.#next;
    if (!signature || (block.type !== 'text' && block.type !== 'tool_use')) return block;
    this.#next = undefined;
    return { ...block, signature };
  }

  output(item: JsonObject, param: string): void {
    const [oldest] = this.#openCalls;
    const named = textOrEmpty(optional(item['call_id'], `${param}.call_id`, expectText));
    const id = named || oldest || deriveId('call_', param);
    if (!named) {
      const message = `the tool output has no call_id; matched to ${id}`;
      noteRepaired(this.#scope.context, { path: toPointer(`${param}.call_id`), feature: 'messages.tool_use.id', message });
    }
    this.#openCalls.delete(id);
    const name = this.#calls.get(id);
    this.#addResult({ ...decodeOutput(item, id, param, this.#scope), ...(name !== undefined && { name }) }, param);
  }

  #addResult(result: ToolResultBlock, param: string): void {
    const last = this.conversation.messages.at(-1);
    const placed = withSource(toPointer(param), result, this.#scope.context);
    if (last?.role === 'tool') last.content.push(placed);
    else this.#add({ role: 'tool', content: [placed] }, param);
  }

  /** Adds a block to the assistant turn. */
  #addBlock(block: ContentBlock, param: string, paths = listPartPaths(toPointer(param))): void {
    const last = this.conversation.messages.at(-1);
    const placed = withSource(toPointer(param), block, this.#scope.context, paths);
    if (last?.role === 'assistant') last.content.push(placed);
    else this.#add({ role: 'assistant', content: [placed] }, param);
  }

  #add(message: CanonicalMessage, param: string): void {
    this.conversation.messages.push(withSource(toPointer(param), message, this.#scope.context));
  }
}

/** The type of an item without one: a message has a role, a reference only an id. */
const findType = ({ role, id }: JsonObject): string | undefined =>
  role !== undefined ? 'message' : typeof id === 'string' && id !== '' ? 'item_reference' : undefined;

const readId = ({ id }: JsonObject): { id?: string } => (typeof id === 'string' && id !== '' ? { id } : {});

function hoist(block: TextBlock): SystemBlock {
  const { refusal: _, citations: __, logprobs: ___, signature: ____, ...rest } = block;
  return rest;
}

/** The wire location of each field whose canonical path differs. */
const listPartPaths = (place: string): Record<string, string> => ({
  'source/detail': `${place}/detail`,
  'source/filename': `${place}/filename`,
  cache_control: `${place}/prompt_cache_breakpoint`,
  citations: `${place}/annotations`,
});

const MESSAGE_PATH = extensionPath(PROTOCOL, 'message');
const PHASE_PATH = extensionPath(PROTOCOL, 'phase');
const STATUS_PATH = extensionPath(PROTOCOL, 'status');

/** The wire location of each field of a part of an assistant message, which also has fields of its item. */
const listItemPaths = (place: string, item: string): Record<string, string> => ({
  ...listPartPaths(place),
  [MESSAGE_PATH]: item,
  [PHASE_PATH]: `${item}/phase`,
  [STATUS_PATH]: `${item}/status`,
});

// ---- content parts

type DecodePart = (part: JsonObject, param: string) => Part;

const PARTS: Readonly<Record<string, DecodePart>> = {
  input_text: decodeTextPart,
  output_text: decodeTextPart,
  text: decodeTextPart,
  input_image: decodeImage,
  input_file: decodeFile,
  input_audio: decodeAudio,
};

const TEXT_FIELDS = new Set(['type', 'text', 'prompt_cache_breakpoint']);

function decodeTextPart(part: JsonObject, param: string): TextBlock {
  return {
    type: 'text',
    text: expectText(part['text'], `${param}.text`),
    ...decodeBreakpoint(part),
    ...toExtensions(unknownFields(part, TEXT_FIELDS)),
  };
}

/** A file id is kept as an extension, which shows that it belongs to this protocol. */
const IMAGE_FIELDS = new Set(['type', 'image_url', 'detail', 'prompt_cache_breakpoint']);

/** Chat's `{image_url:{url}}` is accepted as well. */
function decodeImage(part: JsonObject, param: string): ImageBlock {
  const link = objectOrEmpty(part['image_url'])['url'] ?? part['image_url'];
  const url = optional(link, `${param}.image_url`, expectName);
  const id = optional(part['file_id'], `${param}.file_id`, expectName);
  if (url === undefined && id === undefined) throw missing(`${param}.image_url`);
  const { detail } = part;
  return {
    type: 'image',
    source: {
      ...(url !== undefined && (readDataUrl(url) ?? { url })),
      ...(id !== undefined && { file_id: id }),
      ...(isDetail(detail) && { detail }),
    },
    ...decodeBreakpoint(part),
    ...toExtensions(unknownFields(part, IMAGE_FIELDS)),
  };
}

const FILE_FIELDS = new Set(['type', 'file_data', 'file_url', 'filename', 'prompt_cache_breakpoint']);

/** Accepts a data URL or raw base64. */
function decodeFile(part: JsonObject, param: string): FileBlock {
  const data = optional(part['file_data'], `${param}.file_data`, expectText);
  const url = optional(part['file_url'], `${param}.file_url`, expectName);
  const id = optional(part['file_id'], `${param}.file_id`, expectName);
  const filename = optional(part['filename'], `${param}.filename`, expectText);
  if (data === undefined && url === undefined && id === undefined) throw missing(`${param}.file_data`);
  const split = data === undefined ? undefined : readDataUrl(data);
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: split?.data ?? data }),
      ...(split && { media_type: split.media_type }),
      ...(url !== undefined && { file_url: url }),
      ...(id !== undefined && { file_id: id }),
      ...(filename !== undefined && { filename }),
    },
    ...decodeBreakpoint(part),
    ...toExtensions(unknownFields(part, FILE_FIELDS)),
  };
}

const AUDIO_FIELDS = new Set(['type', 'input_audio', 'prompt_cache_breakpoint']);

function decodeAudio(part: JsonObject, param: string): AudioBlock {
  const audio = expectObject(part['input_audio'], `${param}.input_audio`);
  const format = expectText(audio['format'], `${param}.input_audio.format`);
  return {
    type: 'audio',
    source: { data: expectText(audio['data'], `${param}.input_audio.data`), format, media_type: `audio/${format}` },
    ...decodeBreakpoint(part),
    ...toExtensions(unknownFields(part, AUDIO_FIELDS)),
  };
}

/** Decodes text or a list of parts. Empty text is left out; an unknown part becomes an opaque block. */
function decodeContent(content: unknown, param: string, scope: Scope): Part[] {
  const place = toPointer(param);
  if (typeof content === 'string')
    return content === '' ? [] : [withSource(place, { type: 'text', text: content } satisfies TextBlock, scope.context)];
  return (optional(content, param, expectList) ?? []).flatMap((value, i): Part[] => {
    const inner = `${param}[${i}]`;
    const part = typeof value === 'string' ? { type: 'input_text', text: value } : expectObject(value, inner);
    if (isEmptyText(part)) return [];
    const type = expectText(part['type'], `${inner}.type`);
    const decode = Object.hasOwn(PARTS, type) ? PARTS[type] : undefined;
    const block: Part = decode ? decode(part, inner) : { type: 'opaque', origin: PROTOCOL, raw: part };
    return [withSource(`${place}/${i}`, block, scope.context, listPartPaths(`${place}/${i}`))];
  });
}

// ---- calls

const CALL_FIELDS = new Set(['type', 'id', 'call_id', 'name', 'namespace', 'arguments', 'input', 'status']);

/** Decodes `function_call` and `custom_tool_call`. */
function decodeCall(item: JsonObject, param: string, context: CodecContext): ToolUseBlock {
  const isCustom = item['type'] === 'custom_tool_call';
  const name = expectName(item['name'], `${param}.name`);
  const namespace = optional(item['namespace'], `${param}.namespace`, expectText);
  const { id, status } = item;
  return {
    type: 'tool_use',
    id: callId(item, name, param, context),
    name,
    ...(isCustom
      ? { input: expectText(item['input'], `${param}.input`), kind: 'custom' }
      : decodeArguments(item['arguments'], `${param}.arguments`, context)),
    ...(namespace && { namespace }),
    ...(typeof id === 'string' && id !== '' && !isDerivedId(id) && { item_id: id }),
    ...(isStatus(status) && { status }),
    ...toExtensions(unknownFields(item, CALL_FIELDS)),
  };
}

/** Derived from the position in the conversation, so that the id is stable and prompt caches stay valid. */
function callId(item: JsonObject, name: string, param: string, context: CodecContext): string {
  const given = optional(item['call_id'], `${param}.call_id`, expectText);
  if (given) return given;
  const derived = textOrEmpty(item['id']) || deriveId('call_', param, name);
  const message = `a tool call has no call_id; sent as ${derived}`;
  noteRepaired(context, { path: toPointer(`${param}.call_id`), feature: 'messages.tool_use.id', message });
  return derived;
}

/** The text is kept in `input_raw`. If it is not a JSON object, `input` is empty, and encoders use `input_raw`. */
function decodeArguments(value: unknown, param: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(value)) return { input: value, ...keepSource(value) };
  const text = optional(value, param, expectText) ?? '';
  if (text.trim() === '') return { input: {} };
  const parsed = expectShallowJson(text, param);
  if (isObject(parsed)) return { input: parsed, input_raw: text };
  if (isStrict(context, 'tool_use.arguments'))
    throw new CodecError({
      code: 'TOOL_CALL_PARSE_ERROR',
      message: `${param}: must be a string that contains a JSON object`,
      http_status: 400,
      param,
    });
  return { input: {}, input_raw: text };
}

const STATUSES: readonly unknown[] = ['in_progress', 'completed', 'incomplete'] satisfies ToolUseBlock['status'][];

const isStatus = (status: unknown): status is NonNullable<ToolUseBlock['status']> => STATUSES.includes(status);

const OUTPUT_FIELDS = new Set(['type', 'call_id', 'output']);

/** Decodes the output of a call. The wire has no error flag, only the status `incomplete`. */
function decodeOutput(item: JsonObject, id: string, param: string, scope: Scope): ToolResultBlock {
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: decodeResult(item['output'], `${param}.output`, scope),
    ...(item['status'] === 'incomplete' && { is_error: true }),
    ...(item['type'] === 'custom_tool_call_output' && { kind: 'custom' }),
    ...toExtensions(unknownFields(item, OUTPUT_FIELDS)),
  };
}

/** Decodes text or parts; any other value is serialized. */
function decodeResult(output: unknown, param: string, scope: Scope): ToolResultBlock['content'] {
  if (typeof output === 'string') return output;
  if (Array.isArray(output)) {
    const blocks = decodeContent(output, param, scope);
    return blocks.length === 0 ? '' : blocks;
  }
  if (output === undefined || output === null) return '';
  const text = writeExact(output);
  if (text === undefined) throw invalid(param, 'is nested too deeply');
  return text;
}
