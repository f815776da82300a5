import type {
  AudioBlock,
  ContentBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ToolResultBlock,
} from '../canonical/blocks.ts';
import type { CacheControl, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { at, locate, SOURCE } from '../canonical/source.ts';
import { changeAll, inPlaceOf } from './blocks.ts';
import type { MediaRule, Telling } from './rules.ts';

type Medium = ImageBlock | AudioBlock | FileBlock;
type Part = Medium | TextBlock | OpaqueBlock;

interface MediaRules extends Telling {
  protocol: ProtocolId;
  media: MediaRule;
}

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

/** Blocks that are no media pass unseen. */
function convertAll(blocks: readonly ContentBlock[], path: string, rules: MediaRules): ContentBlock[] {
  return blocks.flatMap((block, i): ContentBlock[] => (isMedium(block) ? convert(block, `${path}/${i}`, rules) : [block]));
}

const isMedium = (block: ContentBlock): block is Medium =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

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

function canSay({ audio_id: id, source }: AudioBlock, { media: { spoken } }: MediaRules): boolean {
  if (spoken === 'id') return id !== undefined;
  return spoken === 'data' && source.data !== undefined;
}

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

/** An id is worth something only where the file was uploaded. */
const isOwn = (block: Medium, { protocol, media: { idsOf = [protocol] } }: MediaRules): boolean =>
  idsOf.some((id) => block.extensions?.[id] !== undefined);

const foreignId = (path: string, what: string, rules: MediaRules): never =>
  rules.refuse({
    path,
    feature: `${what}.file_id`,
    message: `the ${what} is known only by the id of a file that this provider cannot see`,
  });

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

/** A mark that moved to another node stands where it stood. */
const placedMark = (block: FileBlock, mark: CacheControl): CacheControl =>
  at(locate('/block/cache_control', { block }), { ...mark }, { trace: SOURCE in block });

const isPart = (block: ContentBlock): block is Part => isMedium(block) || block.type === 'text' || block.type === 'opaque';

function lose(path: string, feature: string, message: string, rules: MediaRules): Part[] {
  rules.drop({ path, feature, message });
  return [];
}
