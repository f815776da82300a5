import { countKeys } from '../accumulate/overlay.ts';
import type { Node } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';

/** Whether nothing but text is said: nobody calls, shows, signs or marks anything, and nothing is kept for one protocol alone. */
export function isPlainTalk({ tools, tool_choice: choice, prompt_cache: cache, system, messages }: CanonicalRequest): boolean {
  if (tools || choice || cache) return false;
  return (system ?? NOTHING).every(isPlainText) && messages.every(isPlainMessage);
}

const NOTHING: readonly never[] = [];

const isPlainMessage = (message: CanonicalMessage): boolean =>
  countKeys(message) === 2 && message.role !== 'tool' && message.content.every(isPlainText);

/** A type and a text, and for instructions the role they came with. */
const isPlainText = (block: Node & { type: string; role?: string }): boolean =>
  block.type === 'text' && countKeys(block) === (block.role === undefined ? 2 : 3);
