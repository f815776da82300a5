import type { WireChunk } from './chat-wire.ts';
import { countKeys, isSet, type JsonObject, present } from './overlay.ts';
import { UnknownFields } from './unknown-fields.ts';

const KNOWN: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'choices',
  'usage',
  'obfuscation', // OpenAI's padding of each chunk
]);

/**
 * The fields of chat chunks that have no meaning of their own; the last non-null value wins. Chunks of OpenAI have a fixed set of fields:
 * counting the keys and reading two of them by name makes accumulating 1000 chunks of text 7 % faster (25.2 instead of 26.9 us).
 */
export class ChunkFields {
  readonly #others: UnknownFields;

  constructor(kept?: JsonObject) {
    this.#others = new UnknownFields(KNOWN, kept);
  }

  get kept(): JsonObject {
    return this.#others.kept;
  }

  look(chunk: WireChunk): void {
    const { id, object, created, model, choices, usage, service_tier: tier, system_fingerprint: fingerprint } = chunk;
    const meant = present(id) + present(object) + present(created) + present(model) + present(choices) + present(usage);
    if (countKeys(chunk) !== meant + present(tier) + present(fingerprint)) {
      this.#others.look(chunk);
      return;
    }
    if (isSet(tier)) this.kept['service_tier'] = tier;
    if (isSet(fingerprint)) this.kept['system_fingerprint'] = fingerprint;
  }
}
