/** Numbers, times and names as text. */

/** `1.2k`, `35M`. */
export function formatCount(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value < 1000) return String(value);
  const [scale, unit] = value < 999_950 ? [1000, 'k'] : [1_000_000, 'M'];
  const scaled = value / scale;
  return `${scaled < 10 ? scaled.toFixed(1).replace(/\.0$/, '') : Math.round(scaled)}${unit}`;
}

/** `320 ms`, `2.31 s`, `4 min 10 s`. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `$0.0123`; `–` when unknown. Small amounts keep two significant digits. */
export function formatCost(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return '–';
  if (micros === 0) return '$0';
  const dollars = micros / 1e6;
  return `$${dollars >= 0.1 ? dollars.toFixed(2) : dollars.toFixed(Math.min(6, 1 - Math.floor(Math.log10(dollars))))}`;
}

/** The local time of day, `14:02:11`. */
export const formatTime = (iso: string): string => TIME.format(new Date(iso));

/** The local date and time with milliseconds. */
export const formatDateTime = (iso: string): string => DATE_TIME.format(new Date(iso));

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

const DATE_TIME = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'medium',
});

/** Letters and names of protocols, the same everywhere. */
export const PROTOCOLS: Readonly<Record<string, { letter: string; title: string }>> = {
  'openai-chat': { letter: 'C', title: 'OpenAI Chat' },
  'anthropic-messages': { letter: 'A', title: 'Anthropic Messages' },
  'openai-responses': { letter: 'R', title: 'OpenAI Responses' },
  gemini: { letter: 'G', title: 'Gemini' },
};

/** Cuts text in the middle of a page, with the number of characters that are left out. */
export function cutText(text: string, max: number): { shown: string; rest: number } {
  if (text.length <= max) return { shown: text, rest: 0 };
  // Not between the halves of a character.
  const end = /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : max;
  return { shown: text.slice(0, end), rest: text.length - end };
}

/** A value that is JSON; undefined when the text is not. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** JSON with line breaks; other text as it is. */
export function formatJson(text: string): string {
  const parsed = parseJson(text);
  return parsed ? JSON.stringify(parsed.value, null, 2) : text;
}
