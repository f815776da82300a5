import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, TokenLogprob, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CanonicalChoice, CanonicalResponse, StopDetails } from '../../canonical/response.ts';
import { argumentsOf, CharacterCount, endingOf, isForeign, type TextCount } from '../shared/answer.ts';
import type { CodecContext } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import type { CallSink } from './call-encode.ts';
import { ChoiceEncoder, type ChoiceSink } from './choice-encode.ts';
import { type KeptChoice, readKept } from './kept.ts';
import { callFields, encodeEnvelope, encodeTier, encodeTokens, lose, reasoningField } from './parts-encode.ts';
import { isCutStop } from './stop.ts';
import { encodeUsage } from './usage.ts';

/** A whole `chat.completion` with all fields that the official type requires. Throws when the response is a failure. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  const foreign = isForeign(response, 'openai-chat', context);
  const { content, extensions, stop_reason, stop_details, usage, system_fingerprint: fingerprint } = response;
  const tier = encodeTier(response.service_tier, foreign, context);
  const choices = response.choices ?? [{ index: 0, content, stop_reason, ...(extensions && { extensions }) }];
  const scope: ChoiceScope = { details: stop_details, error: response.error, isForeign: foreign };
  return {
    ...readKept(extensions).envelope,
    ...encodeEnvelope(response, foreign, context),
    object: 'chat.completion',
    choices: choices.map((choice) => encodeChoice(choice, scope, context)),
    ...(usage && { usage: encodeUsage(usage) }),
    ...(tier !== undefined && { service_tier: tier }),
    ...(fingerprint !== undefined && { system_fingerprint: fingerprint }),
  };
}

interface ChoiceScope {
  details: StopDetails | undefined;
  error: CanonicalError | undefined;
  isForeign: boolean;
}

function encodeChoice(choice: CanonicalChoice, { details, error, isForeign }: ChoiceScope, context: CodecContext): JsonObject {
  const stop = endingOf(choice, details, error, context);
  const kept = readKept(choice.extensions);
  const sink = new MessageSink(kept, context);
  const blocks = new ChoiceEncoder(isForeign, context, sink);
  for (const [at, block] of choice.content.entries()) blocks.start(at, block);
  const finish = blocks.finish(stop, details?.explanation);
  const isLegacy = kept.isLegacy && sink.calls.size === 1;
  return {
    ...kept.choice,
    index: choice.index,
    message: sink.message(blocks, isCutStop(stop), isLegacy),
    logprobs: sink.logprobs,
    finish_reason: isLegacy && finish === 'tool_calls' ? 'function_call' : finish,
  };
}

/** Writes a choice as the fields of a message. */
class MessageSink implements ChoiceSink {
  readonly calls = new CallList();
  readonly #kept: KeptChoice;
  readonly #context: CodecContext;
  #text = '';
  #refusal = '';
  #reasoning = '';
  readonly #details: unknown[];
  #audio: JsonObject | undefined;
  readonly #tokens: Record<'content' | 'refusal', JsonObject[]> = { content: [], refusal: [] };

  constructor(kept: KeptChoice, context: CodecContext) {
    this.#kept = kept;
    this.#context = context;
    this.#details = [...kept.reasoningDetails];
  }

  get hasRefusal(): boolean {
    return this.#refusal !== '';
  }

  get details(): number {
    return this.#details.length;
  }

  newCount(): TextCount {
    return new CharacterCount();
  }

  write(text: string, isRefusal: boolean, logprobs: readonly TokenLogprob[] | undefined): void {
    if (isRefusal) this.#refusal += text;
    else this.#text += text;
    if (!logprobs) return;
    const side = isRefusal ? 'refusal' : 'content';
    for (const token of encodeTokens(logprobs, this.#kept.logprobsRest[side])) this.#tokens[side].push(token);
  }

  think(text: string): boolean {
    this.#reasoning += text;
    return true;
  }

  addDetail(detail: JsonObject): void {
    this.#details.push(detail);
  }

  startAudio({ source, transcript, audio_id: id, expires_at: expires }: AudioBlock): boolean {
    if (this.#audio) return false;
    this.#audio = {
      id: id ?? this.#context.newId('audio_'),
      data: source.data ?? '',
      transcript: transcript ?? '',
      // Audio of another provider cannot be referenced in a later request: it is marked as expired.
      expires_at: expires ?? 0,
      ...this.#kept.audio,
    };
    return true;
  }

  message({ annotations, images, parts }: ChoiceEncoder, isCut: boolean, isLegacy: boolean): JsonObject {
    const hasOther = this.calls.size > 0 || this.hasRefusal || this.#audio !== undefined;
    return {
      ...this.#kept.message,
      role: 'assistant',
      content: this.#text === '' && hasOther ? null : this.#text,
      refusal: this.hasRefusal ? this.#refusal : null,
      ...this.#reasoningFields(),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
      ...(annotations.length > 0 && { annotations }),
      ...(images.length > 0 && { images }),
      ...(parts.length > 0 && { content_parts: parts }),
      ...(this.#audio && { audio: this.#audio }),
      ...(this.calls.size > 0 && this.calls.encode(isCut, isLegacy)),
    };
  }

  #reasoningFields(): JsonObject {
    const field = reasoningField(this.#context);
    const text = this.#reasoning;
    if (text === '') return {};
    if (field === undefined) {
      lose(this.#context, '/content', 'content.thinking', 'the client takes no reasoning');
      return {};
    }
    return Object.fromEntries((this.#kept.reasoningNames ?? [field]).map((name) => [name, text]));
  }

  get logprobs(): JsonObject | null {
    const { logprobs: late, logprobsRest: rest } = this.#kept;
    const { refusal } = this.#tokens;
    const content = [...encodeTokens(late, rest['content']), ...this.#tokens.content];
    if (content.length + refusal.length === 0 && Object.keys(rest).length === 0) return null;
    return { ...rest, content: content.length > 0 ? content : null, refusal: refusal.length > 0 ? refusal : null };
  }
}

interface CallEntry {
  block: ToolUseBlock;
  /** Fields beside the standard ones. */
  fields: JsonObject | undefined;
}

/** The calls of a whole message: they are encoded at the end, when it is known whether the message was cut. */
class CallList implements CallSink {
  readonly #calls = new Map<number, CallEntry>();

  get size(): number {
    return this.#calls.size;
  }

  has(at: number): boolean {
    return this.#calls.has(at);
  }

  start(at: number, block: ToolUseBlock): void {
    this.#calls.set(at, { block, fields: undefined });
  }

  add(at: number, fields: JsonObject): void {
    const call = this.#calls.get(at);
    if (call) call.fields = fields;
  }

  encode(isCut: boolean, isLegacy: boolean): JsonObject {
    const calls = [...this.#calls.values()];
    const [first] = calls;
    if (first && isLegacy) return { function_call: { name: first.block.name, arguments: argumentsOf(first.block, isCut) } };
    return { tool_calls: inWireOrder(calls).map((call) => encodeCall(call, isCut)) };
  }
}

function encodeCall({ block, fields }: CallEntry, isCut: boolean): JsonObject {
  const { outer, inner } = callFields(block);
  const index = block.extensions?.['openai-chat']?.['index'];
  const text = argumentsOf(block, isCut);
  const { id, name } = block;
  return {
    ...outer,
    ...fields,
    ...(index !== undefined && { index }),
    id,
    ...(block.kind === 'custom'
      ? { type: 'custom', custom: { ...inner, name, input: text } }
      : { type: 'function', function: { ...inner, name, arguments: text } }),
  };
}

/** Chat lists calls by the wire's index if every call has its own; otherwise in the order in which they were opened. */
function inWireOrder(calls: readonly CallEntry[]): readonly CallEntry[] {
  const indexes = new Set(calls.map(wireIndex));
  if (indexes.size !== calls.length || indexes.has(Number.NaN)) return calls;
  return calls.toSorted((a, b) => wireIndex(a) - wireIndex(b));
}

const wireIndex = ({ block }: CallEntry): number => Number(objectOf(block.extensions?.['openai-chat'])['index'] ?? Number.NaN);
