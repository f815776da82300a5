/** Passes about content blocks: those of other protocols, signatures and media. */

import {
  type AudioBlock,
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  isClientCall,
  type OpaqueBlock,
  type TextBlock,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../canonical/message.ts';
import type { CacheControl, SignedBlob } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { locate, SOURCE, withSource } from '../canonical/source.ts';
import { isObject } from '../json/json.ts';
import type { Rules } from './rules.ts';

/** Rejects references to items stored by another server, because their content is unknown. */
export function rejectStoredItems(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  for (const [i, { content }] of request.messages.entries())
    for (const [k, block] of content.entries())
      if (block.type === 'opaque' && block.held !== undefined && block.origin !== rules.target.protocol)
        rules.refuse({
          path: `/messages/${i}/content/${k}`,
          feature: 'state.item_reference',
          message: `item_reference "${block.held}" refers to an item stored by another server; set store: false, or send the items themselves`,
        });
  return request;
}

/**
 * Drops blocks that only another protocol understands, and calls that its servers ran, with their results. A block
 * with a text equivalent becomes text.
 */
export function filterForeign(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const own = listOwnServerCalls(request, rules);
  const filtered = changeBlocks(request, (block, path) => {
    switch (block.type) {
      case 'opaque':
        return filterOpaque(block, path, rules);
      case 'tool_use':
        return isClientCall(block.kind) || own.has(block.id) ? block : dropServerCall(block, path, rules);
      case 'tool_result':
        if (isClientCall(block.kind)) return filterResult(block, path, rules);
        return own.has(block.tool_use_id) ? block : dropServerCall(block, path, rules);
      default:
        return block;
    }
  });
  return filtered === request ? request : withoutEmptied(dropLoneReasoning(filtered, request, rules), request);
}

/**
 * Ids of calls that the target's own servers ran: the target's decoder always adds extensions to such calls or their
 * results.
 */
function listOwnServerCalls({ messages }: CanonicalRequest, { target: { protocol } }: Rules): Set<string> {
  const own = new Set<string>();
  for (const { content } of messages)
    for (const block of content) {
      if (block.extensions?.[protocol] === undefined) continue;
      if (block.type === 'tool_use' && !isClientCall(block.kind)) own.add(block.id);
      else if (block.type === 'tool_result' && !isClientCall(block.kind)) own.add(block.tool_use_id);
    }
  return own;
}

function dropServerCall({ type, name }: ToolUseBlock | ToolResultBlock, path: string, rules: Rules): undefined {
  const message = `${name ?? 'a tool'} was run by another provider; its call and result are dropped`;
  rules.drop({ path, feature: `assistant.${type}`, message });
}

function filterResult(block: ToolResultBlock, path: string, rules: Rules): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = changeAll(block.content, (part, i) =>
    part.type === 'opaque' ? filterOpaque(part, `${path}/content/${i}`, rules) : part,
  );
  return content === block.content ? block : { ...block, content };
}

function filterOpaque(block: OpaqueBlock, path: string, rules: Rules): OpaqueBlock | TextBlock | undefined {
  if (block.origin === rules.target.protocol) return block;
  const place = { path, feature: 'messages.opaque' };
  const type = readType(block.raw);
  if (block.text) {
    rules.note({ code: 'APPROXIMATED', ...place, message: `${type} is not supported by the target; its text is sent` });
    return copySource<TextBlock>(block, { type: 'text', text: block.text });
  }
  if (block.hoisted) {
    const message = `${type} is not supported by the target; its tools are declared in the tools of the request`;
    rules.note({ code: 'APPROXIMATED', ...place, message });
  } else if (isSealedCompaction(block.raw)) {
    rules.refuse({
      path,
      feature: 'messages.compaction',
      message: `${type} replaces the conversation before it, and only the server that made it can read it; send the conversation itself, or use the model that compacted it`,
    });
  } else rules.drop({ ...place, message: `${type} is not supported by the target; dropped` });
  return undefined;
}

/** Dropping it would drop everything that it stands for. */
const isSealedCompaction = (raw: unknown): boolean =>
  isObject(raw) && readType(raw).includes('compaction') && typeof raw['encrypted_content'] === 'string';

const readType = (raw: unknown): string =>
  isObject(raw) && typeof raw['type'] === 'string' ? raw['type'] : 'a block of another protocol';

/** Responses rejects an encrypted reasoning item without the item that followed it (P18). */
function dropLoneReasoning(filtered: CanonicalRequest, before: CanonicalRequest, rules: Rules): CanonicalRequest {
  const messages = changeAll(filtered.messages, (message, i) => {
    const original = before.messages[i];
    if (!original || message === original) return message;
    const lone = findLoneReasoning(message, original);
    for (const k of lone.values())
      rules.drop({
        path: `/messages/${i}/content/${k}`,
        feature: 'assistant.thinking',
        message: 'reasoning without the item that follows it is rejected by the target; dropped',
      });
    return lone.size === 0 ? message : { ...message, content: message.content.filter((block) => !lone.has(block)) };
  });
  return messages === filtered.messages ? filtered : { ...filtered, messages };
}

/** Reasoning whose following item was dropped, with its index in the original message. */
function findLoneReasoning(message: CanonicalMessage, original: CanonicalMessage): Map<ContentBlock, number> {
  const remaining = new Set(message.content);
  const lone = new Map<ContentBlock, number>();
  let isGone = false;
  for (let i = original.content.length - 1; i >= 0; i--) {
    const block = original.content[i];
    if (!block) continue;
    if (block.type === 'thinking' && block.signature?.form === 'encrypted' && remaining.has(block)) {
      if (isGone) lone.set(block, i);
    } else isGone = !remaining.has(block) && !(block.type === 'opaque' && block.text);
  }
  return lone;
}

/**
 * Only the issuer of a signature accepts it: others are removed, with their thinking ("Provider state" in
 * docs/canonical.md).
 */
export function filterSignatures(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const filtered = changeBlocks(request, (block, path) => {
    if (block.type === 'thinking') return filterThinking(block, path, rules);
    return block.type === 'tool_use' || block.type === 'text' ? unsign(block, path, rules) : block;
  });
  return withoutEmptied(filtered, request);
}

function filterThinking(block: ThinkingBlock, path: string, rules: Rules): ThinkingBlock | TextBlock | undefined {
  const { signature, thinking } = block;
  if (signature ? isUsable(signature, rules) : rules.target.unsignedThinking === 'keep') return block;
  if (rules.foreignThinking === 'text' && thinking !== '') return asText(block);
  // Extensions can hold thinking too: OpenRouter's ciphertext.
  if (signature || thinking !== '' || block.extensions)
    rules.drop({
      path,
      feature: 'assistant.thinking',
      message: 'thinking of an earlier turn is not supported by the target; dropped',
    });
  return undefined;
}

const asText = (block: ThinkingBlock): TextBlock =>
  copySource(block, { type: 'text', text: `<thinking>${block.thinking}</thinking>` });

/** Text and calls stay, without the signature. */
function unsign<T extends ToolUseBlock | TextBlock>(block: T, path: string, rules: Rules): T {
  if (!block.signature || isUsable(block.signature, rules) || rules.target.carriesSignature?.(block)) return block;
  const { signature, ...rest } = block;
  const message = `a signature of ${signature?.provider ?? signature?.origin} is not valid for other providers; dropped`;
  rules.drop({ path: `${path}/signature`, feature: `assistant.${block.type}.signature`, message });
  return rest as T; // the signature is optional
}

function isUsable({ origin, provider, model }: SignedBlob, rules: Rules): boolean {
  if (origin !== rules.target.protocol) return false;
  if (provider !== undefined && provider !== rules.provider) return false;
  const [issuer, target] = [rules.target.modelFamily?.(model), rules.target.modelFamily?.(rules.model)];
  return issuer === undefined || target === undefined || issuer === target;
}

/** Removes assistant messages that lost all their blocks since `before`, which has the same messages. */
function withoutEmptied(request: CanonicalRequest, before: CanonicalRequest): CanonicalRequest {
  const messages = changeAll(request.messages, (message, i) => {
    const isEmptied = message.role === 'assistant' && message.content.length === 0 && before.messages[i]?.content.length !== 0;
    return isEmptied ? undefined : message;
  });
  return messages === request.messages ? request : { ...request, messages };
}

/**
 * Converts images, audio and files to forms that the target accepts. Others are dropped, or rejected if they are ids.
 */
export function convertMedia(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const messages = request.messages.flatMap((message, at): CanonicalMessage[] => {
    const path = `/messages/${at}/content`;
    if (message.role === 'user') return [{ ...message, content: convertAll(message.content, path, rules) }];
    if (message.role === 'assistant') return [convertAssistantAudio(message, path, rules)];
    return message.role === 'tool' ? convertResults(message, path, rules) : [message];
  });
  return { ...request, messages };
}

/** Earlier audio of the assistant is replaced by its transcript if the target cannot take it. */
function convertAssistantAudio(message: CanonicalMessage, path: string, rules: Rules): CanonicalMessage {
  const content = changeAll(message.content, (block, i) => {
    if (block.type !== 'audio' || canResend(block, rules)) return block;
    const place = { path: `${path}/${i}`, feature: 'assistant.audio' };
    if (block.transcript) {
      rules.note({
        code: 'APPROXIMATED',
        ...place,
        message: 'earlier audio is not supported by the target; its transcript is sent',
      });
      return copySource<TextBlock>(block, { type: 'text', text: block.transcript });
    }
    rules.drop({ ...place, message: 'earlier audio is not supported by the target and has no transcript; dropped' });
    return undefined;
  });
  return content === message.content ? message : { ...message, content };
}

function canResend(
  { audio_id: id, source }: AudioBlock,
  {
    target: {
      media: { assistantAudio },
    },
  }: Rules,
): boolean {
  if (assistantAudio === 'id') return id !== undefined;
  return assistantAudio === 'data' && source.data !== undefined;
}

type Medium = ImageBlock | AudioBlock | FileBlock;

type Part = Medium | TextBlock | OpaqueBlock;

/** The tool message and, if results may not contain media, a user message with the media of all its results. */
function convertResults(message: CanonicalMessage, path: string, rules: Rules): CanonicalMessage[] {
  const attached: ContentBlock[] = [];
  const content = message.content.map((block, i) => {
    if (block.type !== 'tool_result' || typeof block.content === 'string') return block;
    const parts = block.content.flatMap((part, k): Part[] =>
      isMedium(part) ? convert(part, `${path}/${i}/content/${k}`, rules) : [part],
    );
    const outside = rules.target.media.inToolResults ? [] : parts.filter(isMedium);
    if (outside.length === 0) return { ...block, content: parts };
    attached.push({ type: 'text', text: `Attachment of tool call ${block.tool_use_id}:` }, ...outside);
    rules.note({
      code: 'APPROXIMATED',
      path: `${path}/${i}`,
      feature: 'tool_result.media',
      message: `media in tool results are not supported by the target; those of ${block.tool_use_id} are sent in a user message`,
    });
    return withoutMedia(block, parts, outside);
  });
  const tool: CanonicalMessage = { ...message, content };
  return attached.length > 0 ? [tool, { role: 'user', content: attached }] : [tool];
}

function convert(block: Medium, path: string, rules: Rules): Part[] {
  switch (block.type) {
    case 'image':
      return convertImage(block, path, rules);
    case 'audio':
      return convertAudio(block, path, rules);
    case 'file':
      return convertFile(block, path, rules);
    default:
      return block satisfies never;
  }
}

function convertImage(block: ImageBlock, path: string, rules: Rules): Part[] {
  const { url, data, file_id: id } = block.source;
  if (data === '') return dropMedia(path, 'image', 'the image has no data; dropped', rules);
  if (data !== undefined || (url !== undefined && rules.target.media.imageUrls)) return [block];
  if (url !== undefined) return dropMedia(path, 'image', 'image URLs are not supported by the target; dropped', rules);
  if (id === undefined) return dropMedia(path, 'image', 'the image has neither data nor a URL; dropped', rules);
  return rules.target.media.imageIds && isOwn(block, rules) ? [block] : rejectId(path, 'image', rules);
}

/** Other names of formats, as in media types. */
const AUDIO_FORMATS: Record<string, string> = {
  mpeg: 'mp3',
  mp3: 'mp3',
  wav: 'wav',
  wave: 'wav',
  'x-wav': 'wav',
  'vnd.wave': 'wav',
};

function convertAudio(block: AudioBlock, path: string, rules: Rules): Part[] {
  const { data, format: named, media_type: type } = block.source;
  const word = named ?? type?.replace(/^audio\//, '').replace(/;.*/s, '') ?? '';
  const format = (Object.hasOwn(AUDIO_FORMATS, word) && AUDIO_FORMATS[word]) || word;
  if (data === undefined) return dropMedia(path, 'audio', 'audio must be inline data; dropped', rules);
  if (data === '') return dropMedia(path, 'audio', 'the audio has no data; dropped', rules);
  if (!rules.target.media.audio.includes(format)) return dropMedia(path, 'audio', explainAudio(format, rules), rules);
  return [named === format ? block : { ...block, source: { ...block.source, format } }];
}

const explainAudio = (format: string, { target: { media } }: Rules): string =>
  media.audio.length === 0
    ? 'audio is not supported by the target; dropped'
    : `audio format ${format || '(unknown)'} is not supported by the target; dropped`;

/** Documents of text or blocks become these, if the target supports only files. */
function convertFile(block: FileBlock, path: string, rules: Rules): Part[] {
  const { file_data: data, file_id: id, file_url: url, text, content, media_type: type } = block.source;
  if (text !== undefined || content !== undefined) return rules.target.media.textFiles ? [block] : fileToText(block, path, rules);
  if (type?.startsWith('video/') && !rules.target.media.video)
    return dropMedia(path, 'file', `${type} is not supported by the target; dropped`, rules);
  if (data) return [block];
  if (id !== undefined) return rules.target.media.fileIds && isOwn(block, rules) ? [block] : rejectId(path, 'file', rules);
  if (url !== undefined && rules.target.media.fileUrls) return [block];
  return dropMedia(
    path,
    'file',
    url === undefined ? 'the file has no data; dropped' : 'document URLs are not supported by the target; dropped',
    rules,
  );
}

function fileToText(block: FileBlock, path: string, rules: Rules): Part[] {
  const { source, title, context, search_result: found, citations_enabled: isCited, cache_control: mark } = block;
  rules.note({
    code: 'APPROXIMATED',
    path,
    feature: 'file.text',
    message: 'text documents are not supported by the target; sent as text',
  });
  if (isCited)
    rules.drop({
      path: `${path}/citations_enabled`,
      feature: 'file.citations',
      message: 'citations of documents are not supported by the target; dropped',
    });
  const createText = (text: string): TextBlock => copySource(block, { type: 'text', text });
  const head = [title ?? source.filename, found?.source, context].filter((line) => line !== undefined && line !== '').join('\n');
  const parts =
    source.text !== undefined
      ? [createText(head ? `${head}\n\n${source.text}` : source.text)]
      : [
          ...(head ? [createText(head)] : []),
          ...convertAll(source.content ?? [], `${path}/source/content`, rules).filter(isPart),
        ];
  const last = parts.at(-1);
  if (!mark || !last || last.type === 'opaque') return parts;
  return [...parts.slice(0, -1), { ...last, cache_control: moveMark(block, mark) }];
}

/** Converts the media among the blocks. */
function convertAll(blocks: readonly ContentBlock[], path: string, rules: Rules): ContentBlock[] {
  return blocks.flatMap((block, i): ContentBlock[] => (isMedium(block) ? convert(block, `${path}/${i}`, rules) : [block]));
}

const isPart = (block: ContentBlock): block is Part => isMedium(block) || block.type === 'text' || block.type === 'opaque';

/** A cache mark that moved to another node keeps its place in the source. */
const moveMark = (block: FileBlock, mark: CacheControl): CacheControl =>
  withSource(locate('/block/cache_control', { block }), { ...mark }, { trace: SOURCE in block });

function dropMedia(path: string, feature: string, message: string, rules: Rules): Part[] {
  rules.drop({ path, feature, message });
  return [];
}

/** A file id is valid only where the file was uploaded. */
const isOwn = (
  block: Medium,
  {
    target: {
      protocol,
      media: { idProtocols = [protocol] },
    },
  }: Rules,
): boolean => idProtocols.some((id) => block.extensions?.[id] !== undefined);

const rejectId = (path: string, what: string, rules: Rules): never =>
  rules.refuse({
    path,
    feature: `${what}.file_id`,
    message: `the ${what} refers to an uploaded file that this provider cannot access; send its data instead`,
  });

function withoutMedia(block: ToolResultBlock, parts: readonly Part[], outside: readonly Medium[]): ToolResultBlock {
  const rest = parts.filter((part) => !isMedium(part));
  const kind = outside.every(({ type }) => type === 'image') ? 'image' : 'file';
  return { ...block, content: rest.length > 0 ? rest : `(see attached ${kind})` };
}

const isMedium = (block: ContentBlock): block is Medium =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

/** Returns the block, its replacement, or undefined to remove it. */
type Change = (block: ContentBlock, path: string, message: CanonicalMessage) => ContentBlock | undefined;

/** Changes the blocks of a request. Unchanged parts, up to the request itself, stay the same objects. */
export function changeBlocks(request: CanonicalRequest, change: Change): CanonicalRequest {
  const messages = changeAll(request.messages, (message, i) => {
    const content = changeAll(message.content, (block, k) => change(block, `/messages/${i}/content/${k}`, message));
    return content === message.content ? message : { ...message, content };
  });
  return messages === request.messages ? request : { ...request, messages };
}

/** Changes the items of a list and removes those that became undefined; returns the same list if nothing changed. */
export function changeAll<T>(list: T[], change: (item: T, index: number) => T | undefined): T[] {
  const changed = list.map(change);
  if (changed.every((item, i) => item === list[i])) return list;
  return changed.filter((item) => item !== undefined);
}

/** Gives a new node the source place of the node it replaces. */
export const copySource = <T extends object>(old: object, node: T): T =>
  SOURCE in old ? { ...node, [SOURCE]: old[SOURCE] } : node;
