import { isObject, type JsonObject, sameJson, setOwn } from '../../accumulate/overlay.ts';
import type { ContentBlock } from '../../canonical/blocks.ts';
import type { Flow } from '../shared/block-writer.ts';
import { textOf } from '../shared/read.ts';
import type { BlockReader, BlockScope } from './block-reader.ts';
import { decodeCitation, decodeOpaque, otherFields, signatureOf } from './blocks.ts';
import { StartText } from './start-text.ts';
import type { WireBlock, WireDelta } from './wire.ts';

const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'citations']);

/** Text. Its block opens with the first character or citation: there are no empty ones. */
export class TextReader implements BlockReader {
  readonly kind = 'text';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #flow: Flow;
  readonly #start: StartText;
  #isUntouched = true;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    const node = otherFields(block, TEXT_FIELDS);
    this.#flow = { kind: 'text', key: scope.newKey(), start: () => ({ type: 'text', text: '', ...node }) };
    this.#start = startText(scope, textOf(block.text));
    if (Array.isArray(block.citations)) for (const citation of block.citations) this.#cite(citation);
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    return type === 'text' && this.#isUntouched && !this.isStopped && this.#start.isRestatedBy(textOf(block.text));
  }

  delta(type: string, delta: WireDelta): boolean {
    if (type === 'text_delta') this.#write(this.#start.push(textOf(delta.text)));
    else if (type === 'citations_delta') this.#cite(delta.citation);
    else return false;
    this.#isUntouched = false;
    return true;
  }

  #write(piece: string): void {
    if (piece === '') return;
    if (this.isStopped) this.#scope.report('anthropic/delta-after-stop');
    this.#scope.emitter.write(this.#flow, { type: 'text_delta', text: piece });
  }

  #cite(citation: unknown): void {
    if (isObject(citation))
      this.#scope.emitter.write(this.#flow, { type: 'citations_delta', citation: decodeCitation(citation) });
  }

  stop(): void {
    if (this.isStopped) return;
    this.#write(this.#start.end());
    this.isStopped = true;
    this.#scope.emitter.closeFlow(this.#flow.key);
  }
}

const THINKING_FIELDS: ReadonlySet<string> = new Set(['type', 'thinking', 'signature']);

/** Thinking. Its block opens at once: it may stay empty and still carry a signature. */
export class ThinkingReader implements BlockReader {
  readonly kind = 'thinking';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #key: number;
  readonly #flow: Flow;
  readonly #start: StartText;
  #isUntouched = true;
  #signature: string;
  #isSigned = false;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    const node = otherFields(block, THINKING_FIELDS);
    this.#key = scope.newKey();
    this.#flow = { kind: 'thinking', key: this.#key, start: () => ({ type: 'thinking', thinking: '', ...node }) };
    this.#start = startText(scope, textOf(block.thinking));
    this.#signature = textOf(block.signature);
    scope.emitter.open(this.#flow);
  }

  isRestatedBy(type: string, block: WireBlock): boolean {
    return type === 'thinking' && this.#isUntouched && !this.isStopped && this.#start.isRestatedBy(textOf(block.thinking));
  }

  delta(type: string, delta: WireDelta): boolean {
    if (type === 'thinking_delta') this.#write(this.#start.push(textOf(delta.thinking)));
    else if (type === 'signature_delta') this.#join(textOf(delta.signature));
    else return false;
    this.#isUntouched = false;
    return true;
  }

  #write(piece: string): void {
    if (piece === '') return;
    if (this.isStopped) this.#scope.report('anthropic/delta-after-stop');
    this.#scope.emitter.write(this.#flow, { type: 'thinking_delta', thinking: piece });
  }

  /** The standard sends one signature; proxies split it, and some send it twice. */
  #join(piece: string): void {
    if (piece === '') return;
    if (this.#signature !== '')
      this.#scope.report(piece === this.#signature ? 'anthropic/signature-repeated' : 'anthropic/signature-split');
    if (piece === this.#signature) return;
    this.#signature += piece;
    this.#isSigned = false;
    if (!this.isStopped) return;
    this.#scope.report('anthropic/signature-late');
    this.#sign();
  }

  #sign(): void {
    if (this.#isSigned || this.#signature === '') return;
    this.#isSigned = true;
    this.#scope.emitter.sign(this.#key, { type: 'signature_delta', signature: signatureOf(this.#signature, this.#scope.model) });
  }

  stop(): void {
    if (this.isStopped) return;
    this.#write(this.#start.end());
    this.isStopped = true;
    this.#sign();
    this.#scope.emitter.closeFlow(this.#key);
  }
}

function startText(scope: BlockScope, value: string): StartText {
  const start = scope.here();
  return new StartText(value, (isRepeated) =>
    isRepeated ? scope.report('anthropic/start-text-repeated') : scope.report('anthropic/text-in-start', undefined, start),
  );
}

/** A block that only this protocol understands: its deltas are merged into it as they are. */
export class OpaqueReader implements BlockReader {
  readonly kind = 'opaque';
  isStopped = false;
  readonly #scope: BlockScope;
  readonly #block: WireBlock;
  readonly #flow: Flow;
  #isUntouched = true;

  constructor(scope: BlockScope, block: WireBlock) {
    this.#scope = scope;
    this.#block = block;
    let raw = block;
    const start = (): ContentBlock => {
      const opened = decodeOpaque(raw);
      // Another block came between: what follows is a block of the same type, and not all of it once more.
      raw = { type: block.type };
      return opened;
    };
    this.#flow = { kind: 'opaque', key: scope.newKey(), start };
    scope.emitter.open(this.#flow);
  }

  isRestatedBy(_type: string, block: WireBlock): boolean {
    return this.#isUntouched && !this.isStopped && sameJson(block, this.#block);
  }

  delta(_type: string, delta: WireDelta): boolean {
    this.#isUntouched = false;
    const raw: JsonObject = {};
    let isEmpty = true;
    for (const key of Object.keys(delta)) {
      if (key === 'type' || delta[key] === null) continue;
      setOwn(raw, key, delta[key]);
      isEmpty = false;
    }
    if (!isEmpty) this.#scope.emitter.write(this.#flow, { type: 'opaque_delta', raw });
    return true;
  }

  stop(): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.#scope.emitter.closeFlow(this.#flow.key);
  }
}

/** A block that is whole in its start. */
export class WholeReader implements BlockReader {
  readonly kind = 'whole';
  isStopped = false;
  readonly #wire: WireBlock;

  constructor(scope: BlockScope, wire: WireBlock, block: ContentBlock) {
    this.#wire = wire;
    scope.emitter.whole(block);
  }

  isRestatedBy(_type: string, block: WireBlock): boolean {
    return !this.isStopped && sameJson(block, this.#wire);
  }

  delta(): boolean {
    return false;
  }

  stop(): void {
    this.isStopped = true;
  }
}
