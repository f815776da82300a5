/**
 * `{ api_key: ${KEY} }` is what everybody writes, and to YAML the brace opens a map. For the parser the braces of a reference become characters
 * that mean nothing; as each is one character, places stay what they are.
 */
const HIDDEN = ['\ue000', '\ue001'] as const;

export const hideBraces = (text: string): string => text.replace(/\$\{([^{}\n]*)\}/g, `$$${HIDDEN[0]}$1${HIDDEN[1]}`);

export const showBraces = (text: string): string => text.replaceAll(HIDDEN[0], '{').replaceAll(HIDDEN[1], '}');

/** At least as deep as the text is nested: brackets in strings count too, and so do indentation and the dashes of lists. */
export function deepest(text: string): number {
  let open = 0;
  let most = 0;
  const indents: number[] = [];
  for (const line of text.split('\n')) {
    const dashes = /^(?:\s*[-?:](?=\s))*/.exec(line)?.[0].replace(/\s/g, '').length ?? 0;
    const indent = line.search(/[^\s-]/);
    if (indent >= 0) {
      while ((indents.at(-1) ?? -1) >= indent) indents.pop();
      indents.push(indent);
    }
    most = Math.max(most, open + indents.length + dashes);
    for (const char of line) {
      if (char === '[' || char === '{') open++;
      else if (char === ']' || char === '}') open = Math.max(0, open - 1);
      most = Math.max(most, open + indents.length);
    }
  }
  return most;
}
