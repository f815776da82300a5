export interface ThinkSplit {
  reasoning: string;
  text: string;
}

const TAG = /<(\/?)think(?:ing)?>/g;

/**
 * Splits `<think>…</think>` out of a text: local servers without a reasoning parser leave the tags in the content. Templates that open the tag
 * in the prompt leave only the closing one. Only for callers who ask: tags may be literal output. null when there are none.
 */
export function splitThink(text: string): ThinkSplit | null {
  const split: ThinkSplit = { reasoning: '', text: '' };
  let from = 0;
  let isThinking: boolean | undefined;
  for (const match of text.matchAll(TAG)) {
    const isClosing = match[1] === '/';
    // The first tag closes: everything before it was thought. A closing tag that closes nothing is literal text.
    if (isClosing && isThinking === false) continue;
    if (!isClosing && isThinking) continue;
    split[isClosing ? 'reasoning' : 'text'] += text.slice(from, match.index);
    from = match.index + match[0].length;
    isThinking = !isClosing;
  }
  if (isThinking === undefined) return null;
  split[isThinking ? 'reasoning' : 'text'] += text.slice(from);
  return split;
}
