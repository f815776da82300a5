/** The blocks of a prompt, in the order in which providers cache them, for requests of every protocol. */

/** A part of a request that is a prompt: tools, instructions, or messages. */
export interface PromptSection {
  /** The name of its field. */
  readonly name: string;
  readonly kind: SectionKind;
  readonly blocks: readonly unknown[];
}

type SectionKind = 'tools' | 'system' | 'messages';

/** The fields of all protocols. A cached prompt begins with the tools, then come the instructions and the messages. */
const SECTION_FIELDS = {
  tools: 'tools',
  functions: 'tools',
  system: 'system',
  instructions: 'system',
  systemInstruction: 'system',
  system_instruction: 'system',
  messages: 'messages',
  input: 'messages',
  contents: 'messages',
} as const satisfies Record<string, SectionKind>;

/** Lists the sections of a request body that are present. */
export function listSections(body: unknown): PromptSection[] {
  if (!isRecord(body)) return [];
  const sections: PromptSection[] = [];
  for (const [name, kind] of Object.entries(SECTION_FIELDS)) {
    const value = body[name];
    if (value !== undefined && value !== null) sections.push({ name, kind, blocks: Array.isArray(value) ? value : [value] });
  }
  return sections;
}

/** The beginning of a prompt that later turns repeat: tools, instructions, and the messages up to the user's first one. */
export function findPrefix(body: unknown): string | undefined {
  const parts: string[] = [];
  let hasMessage = false;
  for (const { kind, blocks } of listSections(body)) {
    const end = kind === 'messages' ? findFirstUser(blocks) + 1 : blocks.length;
    hasMessage ||= kind === 'messages' && blocks.length > 0;
    for (const block of blocks.slice(0, end)) parts.push(writeBlock(block));
  }
  return hasMessage ? parts.join('\n') : undefined;
}

/** The index of the user's first message: instructions may come before it. Without one, the first message counts. */
export function findFirstUser(messages: readonly unknown[]): number {
  const found = messages.findIndex((message) => isRecord(message) && (message['role'] ?? 'user') === 'user');
  return Math.max(0, found);
}

/**
 * A block as text. Marks of the cache are left out, because clients move them from turn to turn, and a text is written
 * like a list with one text, because clients need the list for the mark.
 */
export function writeBlock(block: unknown): string {
  const normal =
    isRecord(block) && typeof block['content'] === 'string' ? { ...block, content: writeText(block['content']) } : block;
  const text = JSON.stringify(normal) ?? '';
  return text.includes(CACHE_MARK) ? (JSON.stringify(normal, dropCacheMark) ?? '') : text;
}

const writeText = (text: string): unknown => [{ type: 'text', text }];

const CACHE_MARK = '"cache_control"';

const dropCacheMark = (name: string, value: unknown): unknown => (name === 'cache_control' ? undefined : value);

/** Whether a value is a JSON object. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
