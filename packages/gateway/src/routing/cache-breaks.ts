/** Finds what made a prompt cache useless: the first block of a conversation that changed since its turn before. */

import { hash } from 'node:crypto';
import { BoundedCache } from '@sluice/core/internal';
import { findFirstUser, isRecord, listSections, type PromptSection, writeBlock } from './prompt-blocks.ts';

/** The blocks of the last turn of every conversation, as digests: no text of a prompt is kept. */
export class CacheBreaks {
  readonly #turns = new BoundedCache<readonly Section[]>(CONVERSATION_LIMITS);

  /**
   * The first block that differs from the turn before, such as `tools[3].description changed`; undefined when the turn
   * continues the one before, or is the first. `session`: what the client calls its conversation.
   */
  compare(session: string, model: string, body: unknown): string | undefined {
    const listed = listSections(body);
    if (!listed.some(({ kind }) => kind === 'messages')) return undefined;
    const conversation = nameThread(session, model, listed);
    const sections = listed.map(digestSection);
    const before = this.#turns.get(conversation);
    this.#turns.set(conversation, sections);
    return before && findChange(before, sections);
  }
}

/** Agents run several threads in one session, which have different first messages. */
function nameThread(session: string, model: string, sections: readonly PromptSection[]): string {
  const messages = sections.find(({ kind }) => kind === 'messages')?.blocks ?? [];
  return String(digest(JSON.stringify([session, model, writeBlock(messages[findFirstUser(messages)])])));
}

interface Section extends Pick<PromptSection, 'name' | 'kind'> {
  readonly blocks: readonly Block[];
}

interface Block {
  readonly digest: number;
  /** Digests of the fields of a tool. */
  readonly fields?: Readonly<Record<string, number>>;
}

const digestSection = ({ name, kind, blocks }: PromptSection): Section => ({
  name,
  kind,
  blocks: blocks.slice(0, MAX_BLOCKS).map(kind === 'tools' ? digestTool : digestBlock),
});

const digestBlock = (block: unknown): Block => ({ digest: digest(writeBlock(block)) });

/** A tool, with the fields of a function, so that a change can be located. */
function digestTool(tool: unknown): Block {
  const { digest: whole } = digestBlock(tool);
  if (!isRecord(tool)) return { digest: whole };
  const inner = tool['function'];
  const [source, prefix] = isRecord(inner) ? [inner, 'function.'] : [tool, ''];
  const fields: Record<string, number> = Object.create(null);
  for (const name of TOOL_FIELDS) if (source[name] !== undefined) fields[prefix + name] = digest(writeBlock(source[name]));
  return { digest: whole, fields };
}

const TOOL_FIELDS = ['name', 'description', 'input_schema', 'parameters'] as const;

function findChange(before: readonly Section[], now: readonly Section[]): string | undefined {
  for (const section of now) {
    const last = before.find(({ name }) => name === section.name);
    const change = last ? findBlockChange(last, section) : `${section.name} added`;
    if (change !== undefined) return change;
  }
  const removed = before.find(({ name }) => !now.some((section) => section.name === name));
  return removed && `${removed.name} removed`;
}

/** Messages that are added continue the conversation; tools and instructions come before it. */
function findBlockChange(before: Section, { name, kind, blocks }: Section): string | undefined {
  const index = before.blocks.findIndex((block, i) => block.digest !== blocks[i]?.digest);
  if (index >= 0) {
    const [last, block] = [before.blocks[index], blocks[index]];
    return block ? `${name}[${index}]${findField(last, block)} changed` : `${name}[${index}] removed`;
  }
  return kind !== 'messages' && blocks.length > before.blocks.length ? `${name}[${before.blocks.length}] added` : undefined;
}

/** The field of a tool that changed, if it is the same tool. */
function findField(before: Block | undefined, { fields = {} }: Block): string {
  const last = before?.fields ?? {};
  const changed = Object.keys(fields).filter((name) => fields[name] !== last[name]);
  const [first] = changed;
  return first === undefined || changed.some((name) => name.endsWith('name')) ? '' : `.${first}`;
}

/** 48 bits: a number, so that a turn of a long conversation takes a few kilobytes. */
const digest = (text: string): number => Number.parseInt(hash('sha1', text).slice(0, 12), 16);

/** Blocks of a section that are compared. */
const MAX_BLOCKS = 512;

/** Conversations that are remembered. With 512 messages of 48 bytes each, that is 12 MB. */
const CONVERSATION_LIMITS = { entries: 500, bytes: 64 * 1024 };
