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
import type { CacheControl, ProtocolId, SignedBlob } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { at, locate, SOURCE } from '../canonical/source.ts';
import { isObject } from '../json/json.ts';
import type { MediaRule, Rules, Telling } from './rules.ts';

/** What another server stores cannot be looked up here, and nothing less would do. */
export function refuseHeld(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  for (const [i, { content }] of request.messages.entries())
    for (const [k, block] of content.entries())
      if (block.type === 'opaque' && block.held !== undefined && block.origin !== rules.protocol)
        rules.refuse({
          path: `/messages/${i}/content/${k}`,
          feature: 'state.item_reference',
          message: `item_reference "${block.held}" names an item stored by another server; set store: false, or send the items themselves`,
        });
  return request;
}

/** Blocks that only another protocol understands go; a call and its result go together, and a stand-in that the source gave stays. */
export function filterForeign(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const own = ownServerCalls(request, rules);
  const filtered = changeBlocks(request, (block, path) => {
    switch (block.type) {
      case 'opaque':
        return filterOpaque(block, path, rules);
      case 'tool_use':
        return isClientCall(block.kind) || own.has(block.id) ? block : drop(block, path, rules);
      case 'tool_result':
        if (isClientCall(block.kind)) return filterResult(block, path, rules);
        return own.has(block.tool_use_id) ? block : drop(block, path, rules);
      default:
        return block;
    }
  });
  return filtered === request ? request : withoutEmptied(dropBereft(filtered, request, rules), request);
}

/** The calls that this protocol's own servers ran. The decoder of a protocol keeps something of each call or result that its server made. */
function ownServerCalls({ messages }: CanonicalRequest, { protocol }: Rules): Set<string> {
  const own = new Set<string>();
  for (const { content } of messages)
    for (const block of content) {
      if (block.extensions?.[protocol] === undefined) continue;
      if (block.type === 'tool_use' && !isClientCall(block.kind)) own.add(block.id);
      else if (block.type === 'tool_result' && !isClientCall(block.kind)) own.add(block.tool_use_id);
    }
  return own;
}

function drop({ type, name }: ToolUseBlock | ToolResultBlock, path: string, rules: Rules): undefined {
  const message = `${name ?? 'a tool'} was run by another provider; neither its call nor its result is sent`;
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
  if (block.origin === rules.protocol) return block;
  const told = { path, feature: 'messages.opaque' };
  const type = typeOf(block.raw);
  if (block.text) {
    rules.note({ code: 'APPROXIMATED', ...told, message: `${type} is not supported by the target; its text is sent` });
    return inPlaceOf<TextBlock>(block, { type: 'text', text: block.text });
  }
  if (block.hoisted) {
    const message = `${type} is not supported by the target; its tools are declared in the tools of the request`;
    rules.note({ code: 'APPROXIMATED', ...told, message });
  } else rules.drop({ ...told, message: `${type} is not supported by the target; dropped` });
  return undefined;
}

const typeOf = (raw: unknown): string =>
  isObject(raw) && typeof raw['type'] === 'string' ? raw['type'] : 'a block of another protocol';

/** Responses refuses an encrypted reasoning item without the item that followed it (P18). */
function dropBereft(filtered: CanonicalRequest, before: CanonicalRequest, rules: Rules): CanonicalRequest {
  const messages = changeAll(filtered.messages, (message, i) => {
    const original = before.messages[i];
    if (!original || message === original) return message;
    const lone = bereft(message, original);
    for (const k of lone.values())
      rules.drop({
        path: `/messages/${i}/content/${k}`,
        feature: 'assistant.thinking',
        message: 'what this reasoning led to is not sent, so neither is it',
      });
    return lone.size === 0 ? message : { ...message, content: message.content.filter((block) => !lone.has(block)) };
  });
  return messages === filtered.messages ? filtered : { ...filtered, messages };
}

/** The reasoning whose follower is gone, with its place in the original. */
function bereft(message: CanonicalMessage, original: CanonicalMessage): Map<ContentBlock, number> {
  const kept = new Set(message.content);
  const lone = new Map<ContentBlock, number>();
  let isGone = false;
  for (let i = original.content.length - 1; i >= 0; i--) {
    const block = original.content[i];
    if (!block) continue;
    if (block.type === 'thinking' && block.signature?.form === 'encrypted' && kept.has(block)) {
      if (isGone) lone.set(block, i);
    } else isGone = !kept.has(block) && !(block.type === 'opaque' && block.text);
  }
  return lone;
}

/** Only the issuer of a signature accepts it: others are removed with their thinking ("Provider state" in docs/canonical.md). */
export function filterSignatures(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const filtered = changeBlocks(request, (block, path) => {
    if (block.type === 'thinking') return filterThinking(block, path, rules);
    return block.type === 'tool_use' || block.type === 'text' ? unsign(block, path, rules) : block;
  });
  return withoutEmptied(filtered, request);
}

/** What becomes of a block: itself, another, or nothing. */
type Change = (block: ContentBlock, path: string, message: CanonicalMessage) => ContentBlock | undefined;

/** The request with its blocks changed; what was not changed is the same object, up to the request itself. */
export function changeBlocks(request: CanonicalRequest, change: Change): CanonicalRequest {
  const messages = changeAll(request.messages, (message, i) => {
    const content = changeAll(message.content, (block, k) => change(block, `/messages/${i}/content/${k}`, message));
    return content === message.content ? message : { ...message, content };
  });
  return messages === request.messages ? request : { ...request, messages };
}

function filterThinking(block: ThinkingBlock, path: string, rules: Rules): ThinkingBlock | TextBlock | undefined {
  const { signature, thinking } = block;
  if (signature ? isUsable(signature, rules) : rules.unsignedThinking === 'keep') return block;
  if (rules.foreignThinking === 'text' && thinking !== '') return told(block);
  // What is kept beside the text is thought, too: ciphertext of OpenRouter's.
  if (signature || thinking !== '' || block.extensions)
    rules.drop({ path, feature: 'assistant.thinking', message: 'the thinking of an earlier turn is not sent' });
  return undefined;
}

/** What was said and called stays, without the proof. */
function unsign<T extends ToolUseBlock | TextBlock>(block: T, path: string, rules: Rules): T {
  if (!block.signature || isUsable(block.signature, rules) || rules.carriesSignature?.(block)) return block;
  const { signature, ...rest } = block;
  const message = `a signature of ${signature?.provider ?? signature?.origin} is worth nothing to others`;
  rules.drop({ path: `${path}/signature`, feature: `assistant.${block.type}.signature`, message });
  return rest as T; // the signature is optional
}

function isUsable({ origin, provider, model }: SignedBlob, rules: Rules): boolean {
  if (origin !== rules.protocol) return false;
  if (provider !== undefined && provider !== rules.provider) return false;
  const [issuer, target] = [rules.modelFamily?.(model), rules.modelFamily?.(rules.model)];
  return issuer === undefined || target === undefined || issuer === target;
}

/** Without the assistant messages that lost all of their blocks since `before`, which has the same messages. */
function withoutEmptied(request: CanonicalRequest, before: CanonicalRequest): CanonicalRequest {
  const messages = changeAll(request.messages, (message, i) => {
    const isEmptied = message.role === 'assistant' && message.content.length === 0 && before.messages[i]?.content.length !== 0;
    return isEmptied ? undefined : message;
  });
  return messages === request.messages ? request : { ...request, messages };
}

interface MediaRules extends Telling {
  protocol: ProtocolId;
  media: MediaRule;
}

type Medium = ImageBlock | AudioBlock | FileBlock;

type Part = Medium | TextBlock | OpaqueBlock;

function spellOut(block: FileBlock, path: string, rules: MediaRules): Part[] {
  const { source, title, context, search_result: found, citations_enabled: isCited, cache_control: mark } = block;
  rules.note({ code: 'APPROXIMATED', path, feature: 'file.text', message: 'the document is sent as text' });
  if (isCited) rules.drop({ path: `${path}/citations_enabled`, feature: 'file.citations', message: 'documents are not cited' });
  const text = (said: string): TextBlock => inPlaceOf(block, { type: 'text', text: said });
  const head = [title ?? source.filename, found?.source, context].filter((line) => line !== undefined && line !== '').join('\n');
  const parts =
    source.text !== undefined
      ? [text(head ? `${head}\n\n${source.text}` : source.text)]
      : [...(head ? [text(head)] : []), ...convertAll(source.content ?? [], `${path}/source/content`, rules).filter(isPart)];
  const last = parts.at(-1);
  if (!mark || !last || last.type === 'opaque') return parts;
  return [...parts.slice(0, -1), { ...last, cache_control: placedMark(block, mark) }];
}

/** Blocks that are no media pass unseen. */
function convertAll(blocks: readonly ContentBlock[], path: string, rules: MediaRules): ContentBlock[] {
  return blocks.flatMap((block, i): ContentBlock[] => (isMedium(block) ? convert(block, `${path}/${i}`, rules) : [block]));
}

function convert(block: Medium, path: string, rules: MediaRules): Part[] {
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

function convertImage(block: ImageBlock, path: string, rules: MediaRules): Part[] {
  const { url, data, file_id: id } = block.source;
  if (data === '') return lose(path, 'image', 'the image has no data; dropped', rules);
  if (data !== undefined || (url !== undefined && rules.media.imageUrls)) return [block];
  if (url !== undefined) return lose(path, 'image', 'images are not fetched by URL', rules);
  if (id === undefined) return lose(path, 'image', 'the image has neither data nor a URL', rules);
  return rules.media.imageIds && isOwn(block, rules) ? [block] : foreignId(path, 'image', rules);
}

/** Media types that say a format in another word. */
const AUDIO_FORMATS: Record<string, string> = {
  mpeg: 'mp3',
  mp3: 'mp3',
  wav: 'wav',
  wave: 'wav',
  'x-wav': 'wav',
  'vnd.wave': 'wav',
};

function convertAudio(block: AudioBlock, path: string, rules: MediaRules): Part[] {
  const { data, format: named, media_type: type } = block.source;
  const word = named ?? type?.replace(/^audio\//, '').replace(/;.*/s, '') ?? '';
  const format = (Object.hasOwn(AUDIO_FORMATS, word) && AUDIO_FORMATS[word]) || word;
  if (data === undefined) return lose(path, 'audio', 'audio can only be sent inline', rules);
  if (data === '') return lose(path, 'audio', 'the audio has no data; dropped', rules);
  if (!rules.media.audio.includes(format)) return lose(path, 'audio', audioLoss(format, rules), rules);
  return [named === format ? block : { ...block, source: { ...block.source, format } }];
}

const audioLoss = (format: string, { media }: MediaRules): string =>
  media.audio.length === 0
    ? 'audio is not supported by the target; dropped'
    : `audio format ${format || '(unknown)'} is not supported by the target; dropped`;

/** Images, audio and files of users and tools in the forms the target takes; what it cannot take is dropped, or refused when it is an id. */
export function media(request: CanonicalRequest, rules: MediaRules): CanonicalRequest {
  const messages = request.messages.flatMap((message, at): CanonicalMessage[] => {
    const path = `/messages/${at}/content`;
    if (message.role === 'user') return [{ ...message, content: convertAll(message.content, path, rules) }];
    if (message.role === 'assistant') return [convertSaid(message, path, rules)];
    return message.role === 'tool' ? convertResults(message, path, rules) : [message];
  });
  return { ...request, messages };
}

/** What an assistant said aloud is its text, where it cannot be named or said again. */
function convertSaid(message: CanonicalMessage, path: string, rules: MediaRules): CanonicalMessage {
  const content = changeAll(message.content, (block, i) => {
    if (block.type !== 'audio' || canSay(block, rules)) return block;
    const told = { path: `${path}/${i}`, feature: 'assistant.audio' };
    if (block.transcript) {
      rules.note({ code: 'APPROXIMATED', ...told, message: 'of earlier audio the transcript is sent' });
      return inPlaceOf<TextBlock>(block, { type: 'text', text: block.transcript });
    }
    rules.drop({ ...told, message: 'earlier audio without a transcript is not sent' });
    return undefined;
  });
  return content === message.content ? message : { ...message, content };
}

/** The list with its items changed, without those that became nothing; the same list when all stayed. */
export function changeAll<T>(list: T[], change: (item: T, index: number) => T | undefined): T[] {
  const changed = list.map(change);
  if (changed.every((item, i) => item === list[i])) return list;
  return changed.filter((item) => item !== undefined);
}

function canSay({ audio_id: id, source }: AudioBlock, { media: { spoken } }: MediaRules): boolean {
  if (spoken === 'id') return id !== undefined;
  return spoken === 'data' && source.data !== undefined;
}

const told = (block: ThinkingBlock): TextBlock =>
  inPlaceOf(block, { type: 'text', text: `<thinking>${block.thinking}</thinking>` });

/** A node made of another stands where that stood. */
export const inPlaceOf = <T extends object>(old: object, node: T): T =>
  SOURCE in old ? { ...node, [SOURCE]: old[SOURCE] } : node;

/** The tool message, and behind it a user message with the media of all its results when these may not hold any. */
function convertResults(message: CanonicalMessage, path: string, rules: MediaRules): CanonicalMessage[] {
  const attached: ContentBlock[] = [];
  const content = message.content.map((block, i) => {
    if (block.type !== 'tool_result' || typeof block.content === 'string') return block;
    const parts = block.content.flatMap((part, k): Part[] =>
      isMedium(part) ? convert(part, `${path}/${i}/content/${k}`, rules) : [part],
    );
    const outside = rules.media.inToolResults ? [] : parts.filter(isMedium);
    if (outside.length === 0) return { ...block, content: parts };
    attached.push({ type: 'text', text: `Attachment of tool call ${block.tool_use_id}:` }, ...outside);
    rules.note({
      code: 'APPROXIMATED',
      path: `${path}/${i}`,
      feature: 'tool_result.media',
      message: `the media in the result of ${block.tool_use_id} follow in a user message`,
    });
    return withoutMedia(block, parts, outside);
  });
  const tool: CanonicalMessage = { ...message, content };
  return attached.length > 0 ? [tool, { role: 'user', content: attached }] : [tool];
}

function withoutMedia(block: ToolResultBlock, parts: readonly Part[], outside: readonly Medium[]): ToolResultBlock {
  const rest = parts.filter((part) => !isMedium(part));
  const kind = outside.every(({ type }) => type === 'image') ? 'image' : 'file';
  return { ...block, content: rest.length > 0 ? rest : `(see attached ${kind})` };
}

/** A document of text becomes text, and one of blocks becomes these, where the target knows only files. */
function convertFile(block: FileBlock, path: string, rules: MediaRules): Part[] {
  const { file_data: data, file_id: id, file_url: url, text, content, media_type: type } = block.source;
  if (text !== undefined || content !== undefined) return rules.media.textFiles ? [block] : spellOut(block, path, rules);
  if (type?.startsWith('video/') && !rules.media.video) return lose(path, 'file', `a film of ${type} cannot be seen`, rules);
  if (data) return [block];
  if (id !== undefined) return rules.media.fileIds && isOwn(block, rules) ? [block] : foreignId(path, 'file', rules);
  if (url !== undefined && rules.media.fileUrls) return [block];
  return lose(path, 'file', url === undefined ? 'the file has no data; dropped' : 'documents are not fetched by URL', rules);
}

/** An id is worth something only where the file was uploaded. */
const isOwn = (block: Medium, { protocol, media: { idsOf = [protocol] } }: MediaRules): boolean =>
  idsOf.some((id) => block.extensions?.[id] !== undefined);

const foreignId = (path: string, what: string, rules: MediaRules): never =>
  rules.refuse({
    path,
    feature: `${what}.file_id`,
    message: `the ${what} is known only by the id of a file that this provider cannot see`,
  });

/** A mark that moved to another node stands where it stood. */
const placedMark = (block: FileBlock, mark: CacheControl): CacheControl =>
  at(locate('/block/cache_control', { block }), { ...mark }, { trace: SOURCE in block });

const isPart = (block: ContentBlock): block is Part => isMedium(block) || block.type === 'text' || block.type === 'opaque';

const isMedium = (block: ContentBlock): block is Medium =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

function lose(path: string, feature: string, message: string, rules: MediaRules): Part[] {
  rules.drop({ path, feature, message });
  return [];
}
