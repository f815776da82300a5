import type { InterfaceType } from '../canonical/interfaces.ts';
import type { Note } from '../canonical/notes.ts';
import type { HeaderBag } from '../protocols/shared/codec.ts';
import type { ConvertOptions } from './context.ts';
import {
  convertCountTokensRequest,
  convertCountTokensResponse,
  convertEmbeddingsRequest,
  convertEmbeddingsResponse,
  convertModelInfo,
  convertModels,
  convertRerankRequest,
  convertRerankResponse,
  unsupported,
} from './convert-interfaces.ts';
import type { RequestOptions } from './convert-request.ts';

/** A question beside the conversation and its answer, from the client's protocol (`from`) to the upstream's (`to`) and back. */
export interface Lane {
  method: 'GET' | 'POST';
  /** `path`: the endpoint that fits the body; absent where the interface has only one. */
  ask(body: unknown): { body: unknown; headers: HeaderBag; path?: string; notes: Note[] };
  answer(body: unknown): { body: unknown; notes: Note[] };
}

type LaneMaker = (options: RequestOptions) => Lane;

const backwards = ({ from, to, path: _path, headers: _headers, model: _model, ...options }: RequestOptions): ConvertOptions => ({
  ...options,
  from: to,
  to: from,
});

/** Questions that are all in their path. */
const asked = (answer: (body: unknown, options: ConvertOptions) => ReturnType<Lane['answer']>): LaneMaker => {
  return (options) => ({
    method: 'GET',
    ask: () => ({ body: undefined, headers: {}, notes: [] }),
    answer: (body) => answer(body, backwards(options)),
  });
};

const LANES: Partial<Record<InterfaceType, LaneMaker>> = {
  MODELS: asked(convertModels),
  MODEL_INFO: asked(convertModelInfo),
  EMBEDDINGS: (options) => {
    let question: ReturnType<typeof convertEmbeddingsRequest>['value'] | undefined;
    return {
      method: 'POST',
      ask: (body) => {
        const converted = convertEmbeddingsRequest(body, options);
        question = converted.value;
        return converted;
      },
      answer: (body) => convertEmbeddingsResponse(body, { ...backwards(options), ...(question && { embedding: question }) }),
    };
  },
  RERANK: (options) => {
    let question: ReturnType<typeof convertRerankRequest>['value'] | undefined;
    return {
      method: 'POST',
      ask: (body) => {
        const converted = convertRerankRequest(body, options);
        question = converted.value;
        return converted;
      },
      answer: (body) => convertRerankResponse(body, { ...backwards(options), ...(question && { rerank: question }) }),
    };
  },
  COUNT_TOKENS: (options) => ({
    method: 'POST',
    ask: (body) => convertCountTokensRequest(body, options),
    answer: (body) => convertCountTokensResponse(body, backwards(options)),
  }),
};

/** Throws when the client's protocol or the upstream's has no such thing. */
export function laneOf(type: InterfaceType, options: RequestOptions): Lane {
  const lane = LANES[type];
  if (!lane || !options.to.supports(type)) throw unsupported(options.to, type);
  return lane(options);
}
