/** Narrower than this, breaking lines helps nobody. */
const NARROWEST = 16;

/** Breaks a text between words (within them only when one alone is too long). Without a width it stays one line. */
export function wrap(text: string, width: number | undefined): string[] {
  if (width === undefined) return [text];
  const limit = Math.max(width, NARROWEST);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > limit) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
    while (line.length > limit) {
      lines.push(line.slice(0, limit));
      line = line.slice(limit);
    }
  }
  return [...lines, line];
}

const UNITS = ['B', 'kB', 'MB', 'GB'] as const;

/** 1536 → "1.5 kB" */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}
