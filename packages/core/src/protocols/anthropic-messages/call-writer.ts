import { parseJson } from '../../accumulate/overlay.ts';
import type { ContentBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { BlockDelta } from '../../canonical/events.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import { argumentsOf } from '../shared/answer.ts';
import { carrierBlock, dropSignature, encodeCall } from './answer.ts';
import type { BlockEncoder, EncoderScope } from './block-writers.ts';
import { INVALID, tellWrapped } from './call-input.ts';

/** A call: its arguments go out as they come, as long as they can be an object. */
export class CallBlockEncoder implements BlockEncoder {
  index: number | undefined;
  readonly #scope: EncoderScope;
  #block: ToolUseBlock;
  #signature: SignedBlob | undefined;
  #isEmpty = true;
  #form: 'unknown' | 'object' | 'other' = 'unknown';
  /** Arguments that are no object wait for the stop; so does white space, which tells nothing. */
  #held = '';

  /** `isHeld`: the call may still be signed, and a signature stands before what it signs. */
  constructor(scope: EncoderScope, block: ToolUseBlock, isHeld: boolean) {
    this.#scope = scope;
    this.#block = block;
    this.#signature = block.signature;
    if (this.#isBroken) this.#form = 'other';
    if (!isHeld) this.#begin();
    const text = argumentsOf(block, true);
    if (text !== '') this.#write(text);
  }

  /** Known from the start to be no call that may be run. */
  get #isBroken(): boolean {
    return this.#block.status === 'incomplete' && this.#block.kind !== 'custom';
  }

  delta(delta: BlockDelta): void {
    if (delta.type === 'signature_delta') this.#signature = delta.signature;
    else if (delta.type === 'input_json_delta' && delta.partial_json !== '') this.#write(delta.partial_json);
    else if (delta.type === 'input_text_delta' && delta.text !== '') this.#write(delta.text);
  }

  #begin(): number {
    if (this.index !== undefined) return this.index;
    const { sink, answer } = this.#scope;
    if (this.#signature && answer.wantsThinking) sink.whole(carrierBlock(this.#signature, 'next', answer.context));
    const { signature: _, ...block } = this.#block;
    const signed = this.#signature ? { ...block, signature: this.#signature } : block;
    this.#signature = undefined;
    this.index = sink.start(encodeCall(signed, {}, this.#scope.path, answer));
    return this.index;
  }

  #write(text: string): void {
    this.#begin();
    if (this.#block.kind === 'custom') this.#writeText(text);
    else if (this.#form === 'object') this.#send(text);
    else this.#hold(text);
  }

  #send(partial: string): void {
    this.#isEmpty = false;
    this.#scope.sink.delta(this.#begin(), 'input_json_delta', 'partial_json', partial);
  }

  /** The first character tells what they are. */
  #hold(text: string): void {
    this.#held += text;
    const [first] = this.#form === 'unknown' ? text.trimStart() : '';
    if (first === undefined) return;
    this.#form = first === '{' ? 'object' : 'other';
    if (this.#form === 'object') this.#send(this.#held);
  }

  /** The text of a custom tool, as the one field of an object. */
  #writeText(text: string): void {
    const inner = JSON.stringify(text).slice(1, -1);
    this.#send(this.#isEmpty ? `{"input":"${inner}` : inner);
  }

  stop(final: ContentBlock | undefined): void {
    this.#correct(final);
    const index = this.#begin();
    const { sink, answer } = this.#scope;
    const isCut = final?.type === 'tool_use' && final.status === 'incomplete';
    if (this.#block.kind === 'custom') this.#endText(isCut);
    else if (this.#form === 'other') this.#wrap();
    if (this.#isEmpty) sink.delta(index, 'input_json_delta', 'partial_json', '');
    sink.stop(index);
    if (!this.#signature) return;
    if (answer.wantsThinking) sink.whole(carrierBlock(this.#signature, 'self', answer.context));
    else dropSignature(this.#scope.path, 'tool_use', answer);
  }

  /** A text that was cut stays open, as the arguments of a function do. */
  #endText(isCut: boolean): void {
    if (!isCut) this.#send(this.#isEmpty ? '{"input":""}' : '"}');
  }

  /** Arguments that are no object are put into one (P44), and the last brace of those that are no JSON is left out: nobody may run them. */
  #wrap(): void {
    const value = this.#isBroken ? undefined : parseJson(this.#held);
    if (value === null) return; // none, as Groq says it
    tellWrapped(this.#block, value === undefined ? INVALID : 'input', this.#scope.path, this.#scope.answer.context);
    this.#send(value === undefined ? `{"${INVALID}":${JSON.stringify(this.#held)}` : `{"input":${this.#held}}`);
  }

  /** What was settled late still counts if the call has not gone out; otherwise it can only be told. */
  #correct(final: ContentBlock | undefined): void {
    if (final?.type !== 'tool_use') return;
    const { name } = this.#block;
    if (this.index === undefined) this.#block = final;
    else if (final.name !== name)
      this.#scope.answer.context.note({
        code: 'APPROXIMATED',
        path: this.#scope.path,
        feature: 'content.tool_use.name',
        message: `the name of a call was ${name} when it was sent, and is ${final.name}`,
      });
  }
}
