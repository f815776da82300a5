import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock, TextBlock, ThinkingBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalError } from '../../canonical/errors.ts';
import type { CanonicalChoice, CanonicalResponse, StopDetails } from '../../canonical/response.ts';
import { argumentsOf, CharacterCount, endingOf, isForeign } from '../shared/answer.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { type KeptChoice, readKept } from './kept.ts';
import {
  approximateOrder,
  callFields,
  encodeCallSignature,
  encodeCitation,
  encodeEnvelope,
  encodeImagePart,
  encodeSignature,
  encodeTier,
  encodeTokens,
  isForeignServerCall,
  isGoogleSigned,
  lose,
  reasoningField,
} from './parts-encode.ts';
import { encodeStop, isCutStop } from './stop.ts';
import { encodeUsage } from './usage.ts';

/** A whole `chat.completion` with all fields that the official type requires. Throws when the response is a failure. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  const foreign = isForeign(response, 'openai-chat', context);
  const { content, extensions, stop_reason, stop_details, usage, system_fingerprint: fingerprint } = response;
  const tier = encodeTier(response.service_tier, foreign, context);
  const choices = response.choices ?? [{ index: 0, content, stop_reason, ...(extensions && { extensions }) }];
  return {
    ...readKept(extensions).envelope,
    ...encodeEnvelope(response, foreign, context),
    object: 'chat.completion',
    choices: choices.map((choice) => new ChoiceDraft(choice, stop_details, foreign, context).encode(response.error)),
    ...(usage && { usage: encodeUsage(usage) }),
    ...(tier !== undefined && { service_tier: tier }),
    ...(fingerprint !== undefined && { system_fingerprint: fingerprint }),
  };
}

/** One choice on its way to the wire: blocks in, the fields of a message out. */
class ChoiceDraft {
  readonly #choice: CanonicalChoice;
  readonly #details: StopDetails | undefined;
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #kept: KeptChoice;
  #text = '';
  readonly #length = new CharacterCount();
  #refusal = '';
  readonly #thinking: string[] = [];
  /** The length of all thinking with the paragraphs between, where the next begins. */
  #thought = 0;
  readonly #reasoningDetails: unknown[];
  readonly #annotations: unknown[] = [];
  readonly #images: JsonObject[] = [];
  readonly #parts: unknown[] = [];
  readonly #calls: ToolUseBlock[] = [];
  #audio: JsonObject | undefined;
  readonly #tokens: Record<'content' | 'refusal', JsonObject[]> = { content: [], refusal: [] };

  constructor(choice: CanonicalChoice, details: StopDetails | undefined, foreign: boolean, context: CodecContext) {
    this.#choice = choice;
    this.#details = details;
    this.#isForeign = foreign;
    this.#context = context;
    this.#kept = readKept(choice.extensions);
    this.#reasoningDetails = [...this.#kept.reasoningDetails];
  }

  encode(error: CanonicalError | undefined): JsonObject {
    const { index, content } = this.#choice;
    const stop = endingOf(this.#choice, this.#details, error, this.#context);
    content.forEach((block, i) => {
      if (this.#isForeign && block.type === 'text' && block.text !== '' && this.#calls.length > 0)
        approximateOrder(this.#context, i);
      this.#add(block, `/content/${i}`);
    });
    if (stop === 'refusal' && this.#refusal === '') this.#refusal = this.#details?.explanation ?? '';
    if (stop === 'pause_turn')
      approximate(this.#context, { path: '/stop_reason', feature: 'stop_reason', message: 'pause_turn is written as stop' });
    const hasText = content.some((block) => block.type === 'text');
    const finish = encodeStop(stop, hasText && this.#refusal !== '');
    const isLegacy = this.#kept.isLegacy && this.#calls.length === 1;
    return {
      ...this.#kept.choice,
      index,
      message: this.#message(isCutStop(stop), isLegacy),
      logprobs: this.#logprobs(),
      finish_reason: isLegacy && finish === 'tool_calls' ? 'function_call' : finish,
    };
  }

  #add(block: ContentBlock, path: string): void {
    switch (block.type) {
      case 'text':
        this.#addText(block, path);
        return;
      case 'thinking':
        this.#addThinking(block);
        return;
      case 'tool_use':
        this.#addCall(block, path);
        return;
      case 'image':
        this.#addImage(encodeImagePart(block), path);
        return;
      case 'audio':
        this.#addAudio(block, path);
        return;
      case 'opaque':
        if (block.origin === 'openai-chat') this.#parts.push(block.raw);
        else if (block.text !== undefined) this.#say(block.text);
        else lose(this.#context, path, 'content.opaque', `a block of ${block.origin} has no form in OpenAI Chat`);
        return;
      case 'file':
      case 'tool_result':
        lose(this.#context, path, `content.${block.type}`, `an answer of OpenAI Chat holds no ${block.type}`);
        return;
      default:
        block satisfies never;
    }
  }

  #say(text: string): void {
    this.#text += text;
    this.#length.add(text);
  }

  #addText({ text, refusal, citations = [], logprobs, signature }: TextBlock, path: string): void {
    const side = refusal ? 'refusal' : 'content';
    for (const token of logprobs ? encodeTokens(logprobs, this.#kept.logprobsRest[side]) : []) this.#tokens[side].push(token);
    const length = new CharacterCount();
    length.add(text);
    for (const citation of citations) {
      const annotation = encodeCitation(citation, this.#length.value, length);
      if (annotation !== undefined) this.#annotations.push(annotation);
      else lose(this.#context, `${path}/citations`, 'citations', `a ${citation.kind} citation is no annotation of OpenAI Chat`);
    }
    if (refusal) this.#refusal += text;
    else this.#say(text);
    if (signature) this.#sign(signature, 'next');
  }

  #addThinking({ thinking, variant, signature }: ThinkingBlock): void {
    const start = this.#thinking.length === 0 ? 0 : this.#thought + this.#paragraph.length;
    if (thinking !== '' && variant !== 'redacted') {
      this.#thinking.push(thinking);
      this.#thought = start + thinking.length;
    }
    if (signature) this.#sign(signature, 'self', start);
  }

  #sign(signature: Parameters<typeof encodeSignature>[0], attach: 'self' | 'next', start?: number): void {
    if (signature.origin === 'openai-chat') return; // it stands in `thinking_blocks`, which go back as they came
    const place = { index: this.#reasoningDetails.length, start };
    this.#reasoningDetails.push(encodeSignature(signature, attach, place, this.#context));
  }

  /** Blocks of another protocol are paragraphs; those of chat are one text that other content interrupted. */
  get #paragraph(): string {
    return this.#isForeign ? '\n\n' : '';
  }

  get #reasoningText(): string {
    return this.#thinking.join(this.#paragraph);
  }

  #addCall(block: ToolUseBlock, path: string): void {
    if (isForeignServerCall(block)) {
      lose(this.#context, path, 'content.server_tool_use', `${block.name} was called and run by the provider`);
      return;
    }
    if (block.signature && !isGoogleSigned(block.signature)) this.#sign(block.signature, 'next');
    this.#calls.push(block);
  }

  #addImage(image: JsonObject | undefined, path: string): void {
    if (image) this.#images.push(image);
    else lose(this.#context, path, 'content.image', 'the file of an image cannot leave its provider');
  }

  #addAudio({ source, transcript, audio_id: id, expires_at: expires }: AudioBlock, path: string): void {
    if (this.#audio) {
      lose(this.#context, path, 'content.audio', 'a message of OpenAI Chat has one audio');
      return;
    }
    this.#audio = {
      id: id ?? this.#context.newId('audio_'),
      data: source.data ?? '',
      transcript: transcript ?? '',
      // What another provider said cannot be named in a later request: it has expired.
      expires_at: expires ?? 0,
      ...this.#kept.audio,
    };
  }

  #message(isCut: boolean, isLegacy: boolean): JsonObject {
    const hasOther = this.#calls.length > 0 || this.#refusal !== '' || this.#audio !== undefined;
    const [call] = this.#calls;
    return {
      ...this.#kept.message,
      role: 'assistant',
      content: this.#text === '' && hasOther ? null : this.#text,
      refusal: this.#refusal === '' ? null : this.#refusal,
      ...this.#reasoning(),
      ...(this.#reasoningDetails.length > 0 && { reasoning_details: this.#reasoningDetails }),
      ...(this.#annotations.length > 0 && { annotations: this.#annotations }),
      ...(this.#images.length > 0 && { images: this.#images }),
      ...(this.#parts.length > 0 && { content_parts: this.#parts }),
      ...(this.#audio && { audio: this.#audio }),
      ...(call && isLegacy && { function_call: { name: call.name, arguments: argumentsOf(call, isCut) } }),
      ...(call && !isLegacy && { tool_calls: inWireOrder(this.#calls).map((block) => encodeCall(block, isCut)) }),
    };
  }

  #reasoning(): JsonObject {
    const field = reasoningField(this.#context);
    const text = this.#reasoningText;
    if (text === '') return {};
    if (field === undefined) {
      lose(this.#context, '/content', 'content.thinking', 'the client takes no reasoning');
      return {};
    }
    return Object.fromEntries((this.#kept.reasoningNames ?? [field]).map((name) => [name, text]));
  }

  #logprobs(): JsonObject | null {
    const { logprobs: late, logprobsRest: rest } = this.#kept;
    const { refusal } = this.#tokens;
    const content = [...encodeTokens(late, rest['content']), ...this.#tokens.content];
    if (content.length + refusal.length === 0 && Object.keys(rest).length === 0) return null;
    return { ...rest, content: content.length > 0 ? content : null, refusal: refusal.length > 0 ? refusal : null };
  }
}

function encodeCall(block: ToolUseBlock, isCut: boolean): JsonObject {
  const { outer, inner } = callFields(block);
  const index = block.extensions?.['openai-chat']?.['index'];
  const text = argumentsOf(block, isCut);
  const { id, name } = block;
  return {
    ...outer,
    ...(isGoogleSigned(block.signature) && encodeCallSignature(block.signature)),
    ...(index !== undefined && { index }),
    id,
    ...(block.kind === 'custom'
      ? { type: 'custom', custom: { ...inner, name, input: text } }
      : { type: 'function', function: { ...inner, name, arguments: text } }),
  };
}

/** Chat lists calls by the wire's index when every call has its own; otherwise as they were opened. */
function inWireOrder(calls: readonly ToolUseBlock[]): readonly ToolUseBlock[] {
  const indexOf = (block: ToolUseBlock): number => Number(objectOf(block.extensions?.['openai-chat'])['index'] ?? Number.NaN);
  const indexes = new Set(calls.map(indexOf));
  if (indexes.size !== calls.length || indexes.has(Number.NaN)) return calls;
  return calls.toSorted((a, b) => indexOf(a) - indexOf(b));
}
