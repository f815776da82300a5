import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, ThinkingBlock, ToolResultBlock } from '../../canonical/blocks.ts';
import type { CanonicalMessage } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { type CodecContext, invalid } from '../shared/codec.ts';
import { expectConversation, expectObject, expectText, optional } from '../shared/expect.ts';
import { unknownFields } from '../shared/read.ts';
import { CallBook } from './call-book.ts';
import { keep } from './kept.ts';
import { decodePart, type PartSite } from './parts-decode.ts';
import { CONTENT_FIELDS, camelKeys } from './wire.ts';

type Speaker = 'user' | 'model' | 'system';

/** Google knows `user` and `model`; results once came from `function`. */
const ROLES: Readonly<Record<string, Speaker>> = {
  user: 'user',
  function: 'user',
  tool: 'user',
  model: 'model',
  assistant: 'model',
  system: 'system',
  developer: 'system',
};

/** A list of contents; the SDKs also take one content, or a text. */
export function expectContents(value: unknown): readonly unknown[] {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  if (list.length === 0) throw invalid('contents', 'must not be empty');
  expectConversation(list, 'contents');
  return list;
}

export function decodeContents(list: readonly unknown[], context: CodecContext): CanonicalMessage[] {
  const messages: CanonicalMessage[] = [];
  const book = new CallBook();
  list.forEach((item, i) => {
    const param = `contents[${i}]`;
    const content = typeof item === 'string' ? { parts: [{ text: item }] } : camelKeys(expectObject(item, param));
    const role = roleOf(content, param);
    const last = messages.at(-1);
    if (role === 'model' && last?.role !== 'assistant') book.beginTurn();
    const site: PartSite = { param, content: i, role, book, context };
    const blocks = partsOf(content, param).map((part, k) => decodePart(part, k, site));
    const fields = unknownFields(content, CONTENT_FIELDS);
    const place = `/contents/${i}`;
    if (role === 'model') addModel(messages, blocks.flat(), fields, place, context);
    else addUser(messages, blocks.flat(), role, fields, place, context);
  });
  return messages;
}

function roleOf({ role }: JsonObject, param: string): Speaker {
  const word = optional(role, `${param}.role`, expectText) || 'user';
  const speaker = Object.hasOwn(ROLES, word) ? ROLES[word] : undefined;
  if (!speaker) throw invalid(`${param}.role`, 'must be one of user, model');
  return speaker;
}

/** A list of parts; one part alone is taken too, and so is a text. */
export function partsOf({ parts }: JsonObject, param: string): readonly unknown[] {
  if (Array.isArray(parts)) return parts;
  if (typeof parts === 'string' || isObject(parts)) return [parts];
  if (parts === undefined || parts === null) return [];
  throw invalid(`${param}.parts`, 'must be a list');
}

/** What a model says in several contents is one turn: streaming clients keep every fragment as one. */
function addModel(
  messages: CanonicalMessage[],
  blocks: readonly ContentBlock[],
  fields: JsonObject | undefined,
  place: string,
  context: CodecContext,
): void {
  const last = messages.at(-1);
  if (last?.role === 'assistant') {
    for (const block of blocks) addBlock(last.content, block);
    return;
  }
  const content: ContentBlock[] = [];
  for (const block of blocks) addBlock(content, block);
  messages.push(at(place, { role: 'assistant', content, ...keep(fields) }, context));
}

/**
 * Thoughts arrive in pieces, and what another provider signed in a piece of its own, perhaps only after what followed the thought: they are
 * one block again. What Google signed is not touched.
 */
function addBlock(content: ContentBlock[], block: ContentBlock): void {
  const place = isLate(block) ? content.findLastIndex(({ type }) => type === 'thinking') : content.length - 1;
  const last = content[place];
  const joined = last && !('signature' in last) ? join(last, block) : undefined;
  if (joined) content[place] = joined;
  else content.push(block);
}

/** A signature without its thought. One of redacted thinking never had any. */
const isLate = (block: ContentBlock): boolean =>
  block.type === 'thinking' && block.thinking === '' && block.signature !== undefined && block.signature.form !== 'redacted';

function join(last: ContentBlock, block: ContentBlock): ContentBlock | undefined {
  const signature = 'signature' in block ? block.signature : undefined;
  if (signature?.origin === 'gemini') return undefined;
  if (last.type === 'thinking' && block.type === 'thinking' && isPlain(last) && isPlain(block))
    return { ...last, thinking: last.thinking + block.thinking, ...(signature && { signature }) };
  return last.type === 'text' && block.type === 'text' && block.text === '' && signature ? { ...last, signature } : undefined;
}

/** Beside being a thought it says nothing about itself. */
const isPlain = ({ extensions }: ThinkingBlock): boolean => Object.keys(extensions?.gemini ?? {}).length <= 1;

const isResult = (block: ContentBlock): block is ToolResultBlock => block.type === 'tool_result';

/** The results of a turn are a message of their own, before what the user says beside them. */
function addUser(
  messages: CanonicalMessage[],
  blocks: readonly ContentBlock[],
  role: 'user' | 'system',
  fields: JsonObject | undefined,
  place: string,
  context: CodecContext,
): void {
  const results = blocks.filter(isResult);
  const said = blocks.filter((block) => !isResult(block));
  const last = messages.at(-1);
  if (results.length > 0 && last?.role === 'tool') for (const result of results) last.content.push(result);
  else if (results.length > 0)
    messages.push(at(place, { role: 'tool', content: results, ...(said.length === 0 && keep(fields)) }, context));
  if (said.length > 0 || results.length === 0) messages.push(at(place, { role, content: said, ...keep(fields) }, context));
}
