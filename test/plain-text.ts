/** Joins the text deltas of a recorded stream in the plainest way, knowing nothing of the library: what `text` has to equal. */
export function plainText(protocol: string, body: string): string {
  const read = READERS[protocol];
  if (!read) throw new Error(`no plain reader for ${protocol}`);
  return payloads(body).map(read).join('');
}

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of any shape
type Json = any;

export function payloads(body: string): Json[] {
  const data = body
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim());
  const end = data.indexOf('[DONE]');
  return (end < 0 ? data : data.slice(0, end)).flatMap((line) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
}

const partText = (part: Json): string => (part?.type === 'text' ? part.text : '');

const READERS: Record<string, (payload: Json) => string> = {
  'openai-chat': ({ choices }) => {
    const choice = (choices ?? []).find(({ index = 0 }) => index === 0);
    const content = choice?.delta?.content ?? '';
    return Array.isArray(content) ? content.map(partText).join('') : content;
  },
  'anthropic-messages': ({ type, delta, content_block: block }) => {
    if (type === 'content_block_start' && block?.type === 'text') return block.text ?? '';
    return type === 'content_block_delta' && delta?.type === 'text_delta' ? delta.text : '';
  },
  'openai-responses': ({ type, delta }) => (type === 'response.output_text.delta' ? delta : ''),
  gemini: (payload) => {
    const parts = (payload.response ?? payload).candidates?.find(({ index = 0 }) => index === 0)?.content?.parts ?? [];
    return parts.map(({ text = '', thought }: Json) => (thought ? '' : text)).join('');
  },
};
