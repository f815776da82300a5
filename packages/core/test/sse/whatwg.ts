import type { SseFrame } from '../../src/sse/encode.ts';

/** The algorithm of WHATWG HTML 9.2.6, written down as the standard words it: slow, whole text, no leniency. */
export function whatwg(text: string): SseFrame[] {
  const frames: SseFrame[] = [];
  let open: SseFrame & { lines: string[] } = { data: '', lines: [] };
  for (const line of text
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)
    .slice(0, -1)) {
    if (line === '') {
      const { lines, data: _, ...rest } = open;
      if (lines.length > 0) frames.push({ ...rest, data: lines.join('\n') });
      open = { data: '', lines: [] };
      continue;
    }
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'data') open.lines.push(value);
    if (name === 'event' && value !== '') open.event = value;
    if (name === 'event' && value === '') delete open.event;
    if (name === 'id' && !value.includes('\0')) open.id = value;
    if (name === 'retry' && /^[0-9]+$/.test(value) && Number.isSafeInteger(Number(value))) open.retry = Number(value);
  }
  return frames;
}
