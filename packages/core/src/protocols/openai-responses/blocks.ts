import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Citation, OpaqueBlock, TextBlock, ThinkingBlock, TokenLogprob, TopLogprob } from '../../canonical/blocks.ts';
import type { Extensions, SignedBlob } from '../../canonical/protocol.ts';
import { unknownFields } from '../shared/read.ts';
import { type Channel, filled, type WireItem } from './wire.ts';

const ORIGIN = 'openai-responses';

const REASONING_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, id: 0, content: 0, summary: 0, encrypted_content: 0 } satisfies {
    [K in keyof WireItem]?: 0;
  }),
);

/** The fields of the wire that a block has no place for, under their own names; `item_id` is the id of the item it came from. */
function keep(item: WireItem, others: JsonObject | undefined): { extensions?: Extensions } {
  const id = filled(item.id);
  if (id === undefined && others === undefined) return {};
  return { extensions: { [ORIGIN]: { ...(id !== undefined && { item_id: id }), ...others } } };
}

export const startText = (item: WireItem, isRefusal: boolean): TextBlock => {
  const phase = filled(item.phase);
  return {
    type: 'text',
    text: '',
    ...(isRefusal && { refusal: true }),
    ...keep(item, phase === undefined ? undefined : { phase }),
  };
};

export const startThinking = (item: WireItem, channel: Channel | undefined): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  ...((channel === 'summary' || channel === 'full') && { variant: channel }),
  ...keep(item, unknownFields(item, REASONING_FIELDS)),
});

/** What OpenRouter and others add to a reasoning item (`format`), which has to go back with it. That it is done, its end says. */
export function reasoningExtras({ status, ...item }: WireItem): JsonObject | undefined {
  return unknownFields(status === 'incomplete' ? { status, ...item } : item, REASONING_FIELDS);
}

export const opaque = (raw: unknown): OpaqueBlock => ({ type: 'opaque', origin: ORIGIN, raw });

export function signedBlob(value: string, item: WireItem): SignedBlob {
  const id = filled(item.id);
  return { origin: ORIGIN, form: 'encrypted', value, ...(id !== undefined && { item_id: id }) };
}

const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** `url_citation`, `file_citation`, `container_file_citation`, `file_path`; anything else by what it points at. */
export function decodeCitation(annotation: JsonObject): Citation {
  const url = filled(annotation['url']);
  const title = filled(annotation['title']);
  const file_id = filled(annotation['file_id']);
  const filename = filled(annotation['filename']);
  const start = number(annotation['start_index']);
  const end = number(annotation['end_index']);
  return {
    kind: url === undefined ? 'file' : 'url',
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(file_id !== undefined && { file_id }),
    ...(filename !== undefined && { filename }),
    ...(start !== undefined && { start }),
    ...(end !== undefined && { end }),
    raw: annotation,
    origin: ORIGIN,
  };
}

const isBytes = (value: unknown): value is number[] => Array.isArray(value) && value.every((byte) => typeof byte === 'number');

function decodeToken(value: unknown): TopLogprob | undefined {
  if (!isObject(value) || typeof value['token'] !== 'string' || typeof value['logprob'] !== 'number') return undefined;
  const { token, logprob, bytes } = value;
  return { token, logprob, ...((bytes === null || isBytes(bytes)) && { bytes }) };
}

export function decodeLogprobs(list: unknown): TokenLogprob[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined;
  const tokens = list.flatMap((value: unknown): TokenLogprob[] => {
    const token = decodeToken(value);
    if (!token) return [];
    const alternatives = isObject(value) ? value['top_logprobs'] : undefined;
    const top = Array.isArray(alternatives) ? alternatives.flatMap((entry: unknown) => decodeToken(entry) ?? []) : [];
    return [{ ...token, ...(top.length > 0 && { top }) }];
  });
  return tokens.length > 0 ? tokens : undefined;
}
