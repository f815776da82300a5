import type { TextBlock, ThinkingBlock, ToolUseBlock } from '../canonical/blocks.ts';
import type { SignedBlob } from '../canonical/protocol.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { changeBlocks, inPlaceOf, withoutEmptied } from './blocks.ts';
import type { Rules } from './rules.ts';

/** Only the issuer of a signature accepts it: others are removed with their thinking ("Provider state" in docs/canonical.md). */
export function filterSignatures(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const filtered = changeBlocks(request, (block, path) => {
    if (block.type === 'thinking') return filterThinking(block, path, rules);
    return block.type === 'tool_use' || block.type === 'text' ? unsign(block, path, rules) : block;
  });
  return withoutEmptied(filtered, request);
}

function isUsable({ origin, provider, model }: SignedBlob, rules: Rules): boolean {
  if (origin !== rules.protocol) return false;
  if (provider !== undefined && provider !== rules.provider) return false;
  const [issuer, target] = [rules.modelFamily?.(model), rules.modelFamily?.(rules.model)];
  return issuer === undefined || target === undefined || issuer === target;
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

const told = (block: ThinkingBlock): TextBlock =>
  inPlaceOf(block, { type: 'text', text: `<thinking>${block.thinking}</thinking>` });

/** What was said and called stays, without the proof. */
function unsign<T extends ToolUseBlock | TextBlock>(block: T, path: string, rules: Rules): T {
  if (!block.signature || isUsable(block.signature, rules) || rules.carriesSignature?.(block)) return block;
  const { signature, ...rest } = block;
  const message = `a signature of ${signature?.provider ?? signature?.origin} is worth nothing to others`;
  rules.drop({ path: `${path}/signature`, feature: `assistant.${block.type}.signature`, message });
  return rest as T; // the signature is optional
}
