import { isObject, type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import type {
  ContentBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { isClientCall } from '../../canonical/response.ts';
import { decodeCarrier, decodeCarrierInId } from '../shared/carrier.ts';
import { type CodecContext, invalid } from '../shared/codec.ts';
import { splitDataUrl } from '../shared/data-url.ts';
import {
  expectBoolean,
  expectList,
  expectName,
  expectObject,
  expectShallowJson,
  expectText,
  optional,
} from '../shared/expect.ts';
import { listOf, objectOf, textOf, unknownFields } from '../shared/read.ts';
import { decodeCitation, decodeOpaque, decodeRedacted, decodeResult, signatureOf } from './blocks.ts';
import { decodeCacheControl, keep, placed, unknownWithin } from './fields.ts';

/** What all blocks of one request share. */
export interface Scope {
  context: CodecContext;
  /** The names of the calls so far by their ids: results name only the id. */
  names: Map<string, string>;
  /** A signature of another provider that belongs to the call or text which comes next. */
  next: SignedBlob | undefined;
}

type Decode = (block: JsonObject, at: string, scope: Scope) => ContentBlock | ContentBlock[] | undefined;

const BY_TYPE: Readonly<Record<string, Decode>> = {
  text: decodeText,
  image: decodeImage,
  document: decodeDocument,
  search_result: decodeSearchResult,
  thinking: decodeThinking,
  redacted_thinking: (block) => decodeRedacted(block, ''),
  tool_use: decodeToolUse,
  mcp_tool_use: (block, at, scope) => decodeCall(block, at, scope, 'mcp'),
  tool_result: decodeToolResult,
};

/** Where blocks stand: in a message of that role, or as parts of another block. */
type Place = 'user' | 'assistant' | 'system' | 'part';

type ResultPart = Exclude<ToolResultBlock['content'], string>[number];

const isPart = (block: ContentBlock): block is ResultPart =>
  block.type === 'text' || block.type === 'image' || block.type === 'audio' || block.type === 'file' || block.type === 'opaque';

/** Results of the client's tools are the user's, those of the provider's own the assistant's. */
const ALLOWED: Record<Place, (block: ContentBlock) => boolean> = {
  user: (block) => isPart(block) || (block.type === 'tool_result' && isClientCall(block.kind)),
  assistant: (block) => block.type !== 'tool_result' || !isClientCall(block.kind),
  system: (block) => block.type === 'text' || block.type === 'opaque',
  part: isPart,
};

/** A text, or blocks. Empty texts say nothing. */
export function decodeContent(content: unknown, at: string, place: Place, scope: Scope): ContentBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [placed(at, { type: 'text', text: content }, scope.context)];
  return expectList(content, at).flatMap((item, i) => {
    const param = `${at}[${i}]`;
    const blocks = [decodeBlock(item, param, scope) ?? []].flat();
    if (!blocks.every(ALLOWED[place])) throw invalid(`${param}.type`, `a block of this type cannot stand here`);
    return blocks.map((block) => placed(param, block, scope.context));
  });
}

const decodeParts = (content: unknown, at: string, scope: Scope): ResultPart[] =>
  decodeContent(content, at, 'part', scope).filter(isPart);

/** A type that nobody here knows is passed on as it is. */
function decodeBlock(item: unknown, at: string, scope: Scope): ReturnType<Decode> {
  const block = expectObject(item, at);
  const type = expectName(block['type'], `${at}.type`);
  const decode = Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined;
  if (decode) return decode(block, at, scope);
  if (type.endsWith('_tool_use')) return decodeCall(block, at, scope, 'server');
  return type.endsWith('_tool_result') ? decodeServerResult(block, scope) : decodeOther(block);
}

/** What only this protocol understands. The summary of a compaction is text elsewhere, and a tool that is defined here a tool of the request. */
function decodeOther(block: JsonObject): OpaqueBlock {
  const opaque = decodeOpaque(block);
  const { type, content, tool } = block;
  if (type === 'compaction' && typeof content === 'string' && content !== '') return { ...opaque, text: content };
  const isDefined = type === 'tool_addition' && objectOf(tool)['type'] === 'tool_definition';
  return isDefined ? { ...opaque, hoisted: true } : opaque;
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'citations', 'cache_control']);

export function decodeText(block: JsonObject, at: string, scope: Scope): TextBlock | undefined {
  const text = expectText(block['text'], `${at}.text`);
  if (text === '') return undefined;
  const citations = listOf(block['citations']).filter(isObject).map(decodeCitation);
  return {
    type: 'text',
    text,
    ...(citations.length > 0 && { citations }),
    ...takeNext(scope),
    ...decodeCacheControl(block),
    ...keep(unknownFields(block, TEXT_FIELDS)),
  };
}

function takeNext(scope: Scope): { signature?: SignedBlob } {
  const signature = scope.next;
  scope.next = undefined;
  return signature ? { signature } : {};
}

const SOURCE_FIELDS: ReadonlySet<string> = new Set(['type', 'data', 'media_type', 'url', 'file_id', 'content']);

/** The fields of a block and of its source that have no place of their own. An id says by them whose it is. */
function keptOf(block: JsonObject, known: ReadonlySet<string>): JsonObject {
  const kept = unknownWithin(block, known, 'source', SOURCE_FIELDS);
  const isFile = objectOf(block['source'])['type'] === 'file';
  return isFile ? { ...kept, source: { ...objectOf(kept['source']), type: 'file' } } : kept;
}

/** A `data:` URL is no URL. */
const decodeUrl = (url: string): { url: string } | { data: string; media_type: string } => splitDataUrl(url) ?? { url };

const IMAGE_FIELDS: ReadonlySet<string> = new Set(['type', 'source', 'cache_control']);

function decodeImage(block: JsonObject, at: string): ImageBlock | OpaqueBlock {
  const source = decodeImageSource(expectObject(block['source'], `${at}.source`), `${at}.source`);
  if (!source) return decodeOpaque(block);
  return { type: 'image', source, ...decodeCacheControl(block), ...keep(keptOf(block, IMAGE_FIELDS)) };
}

function decodeImageSource(source: JsonObject, at: string): ImageBlock['source'] | undefined {
  const media = optional(source['media_type'], `${at}.media_type`, expectText);
  switch (source['type']) {
    case 'base64':
      return { data: expectText(source['data'], `${at}.data`), ...(media !== undefined && { media_type: media }) };
    case 'url':
      return decodeUrl(expectName(source['url'], `${at}.url`));
    case 'file':
      return { file_id: expectName(source['file_id'], `${at}.file_id`) };
    default:
      return undefined;
  }
}

const DOCUMENT_FIELDS: ReadonlySet<string> = new Set(['type', 'source', 'title', 'context', 'citations', 'cache_control']);

function decodeDocument(block: JsonObject, at: string, scope: Scope): FileBlock | OpaqueBlock {
  const source = decodeDocumentSource(expectObject(block['source'], `${at}.source`), `${at}.source`, scope);
  if (!source) return decodeOpaque(block);
  const context = optional(block['context'], `${at}.context`, expectText);
  return {
    type: 'file',
    source,
    ...titleOf(block, at),
    ...(context !== undefined && { context }),
    ...citationsOf(block),
    ...decodeCacheControl(block),
    ...keep(keptOf(block, DOCUMENT_FIELDS)),
  };
}

const titleOf = (block: JsonObject, at: string): { title?: string } => {
  const title = optional(block['title'], `${at}.title`, expectText);
  return title === undefined ? {} : { title };
};

const citationsOf = (block: JsonObject): { citations_enabled?: boolean } => {
  const { enabled } = objectOf(block['citations']);
  return typeof enabled === 'boolean' ? { citations_enabled: enabled } : {};
};

function decodeDocumentSource(source: JsonObject, at: string, scope: Scope): FileBlock['source'] | undefined {
  const media = optional(source['media_type'], `${at}.media_type`, expectText);
  const media_type = media !== undefined && { media_type: media };
  switch (source['type']) {
    case 'base64':
      return { file_data: expectText(source['data'], `${at}.data`), ...media_type };
    case 'text':
      return { text: expectText(source['data'], `${at}.data`), ...media_type };
    case 'content':
      return { content: decodeParts(source['content'], `${at}.content`, scope) };
    case 'file':
      return { file_id: expectName(source['file_id'], `${at}.file_id`) };
    case 'url': {
      const found = decodeUrl(expectName(source['url'], `${at}.url`));
      return 'url' in found ? { file_url: found.url } : { file_data: found.data, media_type: found.media_type };
    }
    default:
      return undefined;
  }
}

const SEARCH_FIELDS: ReadonlySet<string> = new Set(['type', 'source', 'title', 'content', 'citations', 'cache_control']);

function decodeSearchResult(block: JsonObject, at: string, scope: Scope): FileBlock {
  return {
    type: 'file',
    source: { content: decodeParts(block['content'], `${at}.content`, scope) },
    search_result: { source: expectText(block['source'], `${at}.source`) },
    ...titleOf(block, at),
    ...citationsOf(block),
    ...decodeCacheControl(block),
    ...keep(unknownFields(block, SEARCH_FIELDS)),
  };
}

const THINKING_FIELDS: ReadonlySet<string> = new Set(['type', 'thinking', 'signature']);

/** Thinking, signed by Anthropic, by the issuer that a carrier names, or by nobody. One that only carries for the next block is none. */
function decodeThinking(block: JsonObject, at: string, scope: Scope): ThinkingBlock | undefined {
  const value = textOf(block['signature']);
  const thinking = textOf(block['thinking']);
  const carrier = decodeCarrier(value);
  const isNext = carrier?.attach === 'next';
  if (isNext) scope.next = placed(`${at}.signature`, carrier.blob, scope.context);
  if (isNext && thinking === '') return undefined;
  const isUnsigned = value === '' || carrier?.blob.value === '';
  const signature = isUnsigned || isNext ? undefined : (carrier?.blob ?? signatureOf(value, ''));
  return { type: 'thinking', thinking, ...(signature && { signature }), ...keep(unknownFields(block, THINKING_FIELDS)) };
}

const CALL_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'name', 'input', 'cache_control']);

/** A call of the client's tools. Its id may carry the call's signature, or reasoning that stood before the call. */
function decodeToolUse(block: JsonObject, at: string, scope: Scope): ContentBlock[] {
  const { id, carried } = decodeCarrierInId(expectName(block['id'], `${at}.id`));
  if (carried?.attach === 'next') scope.next = placed(`${at}.id`, carried.blob, scope.context);
  const call = decodeCall({ ...block, id }, at, scope, undefined);
  return carried?.attach === 'self' ? [{ type: 'thinking', thinking: '', signature: carried.blob }, call] : [call];
}

/** The type of a call that the provider runs is kept: it says whose it is. That the model itself called says nothing. */
function decodeCall(block: JsonObject, at: string, scope: Scope, kind: 'server' | 'mcp' | undefined): ToolUseBlock {
  const id = expectName(block['id'], `${at}.id`);
  const name = expectName(block['name'], `${at}.name`);
  const { caller, ...fields } = unknownFields(block, CALL_FIELDS) ?? {};
  const isDirect = isObject(caller) && caller['type'] === 'direct';
  scope.names.set(id, name);
  return {
    type: 'tool_use',
    id,
    name,
    ...decodeInput(block['input'], `${at}.input`),
    ...(kind && { kind }),
    ...takeNext(scope),
    ...decodeCacheControl(block),
    ...keep({ ...(kind && { type: block['type'] }), ...fields, ...(caller !== undefined && !isDirect && { caller }) }),
  };
}

/** Clients that joined a stream by hand may send the text; anything that is no object goes on as text. */
function decodeInput(input: unknown, at: string): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(input)) return { input };
  const raw = typeof input === 'string' ? input : (writeJson(input) ?? '');
  const value = expectShallowJson(raw, at);
  return { input: isObject(value) ? value : {}, ...(raw !== '' && { input_raw: raw }) };
}

const RESULT_FIELDS: ReadonlySet<string> = new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control']);

function decodeToolResult(block: JsonObject, at: string, scope: Scope): ToolResultBlock {
  const { id } = decodeCarrierInId(expectName(block['tool_use_id'], `${at}.tool_use_id`));
  const name = scope.names.get(id);
  const isError = optional(block['is_error'], `${at}.is_error`, expectBoolean);
  return {
    type: 'tool_result',
    tool_use_id: id,
    ...(name !== undefined && { name }),
    content: decodeResultContent(block['content'], `${at}.content`, scope),
    ...(isError !== undefined && { is_error: isError }),
    ...decodeCacheControl(block),
    ...keep(unknownFields(block, RESULT_FIELDS)),
  };
}

function decodeResultContent(content: unknown, at: string, scope: Scope): ToolResultBlock['content'] {
  if (typeof content === 'string') return content;
  const parts = content === undefined || content === null ? [] : decodeParts(content, at, scope);
  return parts.length === 0 ? '' : parts;
}

/** What a tool of the provider answered, in one of its many shapes: it goes back as it came. */
function decodeServerResult(block: JsonObject, { names }: Scope): ToolResultBlock {
  const { type, content } = block;
  return {
    ...decodeResult(block, names.get(textOf(block['tool_use_id']))),
    ...decodeCacheControl(block),
    ...keep({ ...unknownFields(block, RESULT_FIELDS), type, ...(content !== undefined && { content }) }),
  };
}
