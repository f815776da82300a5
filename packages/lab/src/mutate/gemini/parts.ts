/** Mutations of the parts, calls and signatures of Gemini. */

import { type Mutation, mutations, type WireStream } from '../mutation.ts';
import { isDocument, isObject, type Json, objects, rewrite, toText, within, without } from '../payloads.ts';
import { chunkLike, editCalls, editCandidates, editParts, isPlainText, isWholeCall, readParts } from './wire.ts';

const ONLY = ['gemini'] as const;

/** Puts every part into a chunk of its own; other fields of the chunk stay with the last part. */
const spread = (stream: WireStream): WireStream =>
  rewrite(stream, (chunks) =>
    chunks.flatMap((chunk) => {
      const [candidate, another] = objects(chunk['candidates']);
      const parts = candidate ? readParts(candidate) : [];
      if (!candidate || another || parts.length < 2) return [chunk];
      const last = {
        ...candidate,
        content: { ...(isObject(candidate['content']) && candidate['content']), parts: parts.slice(-1) },
      };
      return [...parts.slice(0, -1).map((part) => chunkLike(chunk, [part])), { ...chunk, candidates: [last] }];
    }),
  );

/** Puts all parts into the first chunk that has any. */
const gather = (stream: WireStream): WireStream =>
  rewrite(stream, (chunks) => {
    const isSole = chunks.every(({ candidates }) => objects(candidates).length <= 1);
    const holders = chunks.filter(({ candidates }) => objects(candidates).some((candidate) => readParts(candidate).length > 0));
    const [first, another] = holders;
    if (!isSole || !first || !another) return chunks;
    const parts = holders.flatMap(({ candidates }) => objects(candidates).flatMap(readParts));
    const emptied = (chunk: Json): Json => ({
      ...chunk,
      candidates: objects(chunk['candidates']).map((candidate) => without(candidate, 'content')),
    });
    return chunks.flatMap((chunk) => (chunk === first ? [chunkLike(chunk, parts), emptied(chunk)] : [emptied(chunk)]));
  });

const CONTENT = mutations('content', ONLY, {
  'gemini/texts-in-halves': {
    title: 'Every text is split in two parts, at any UTF-16 code unit',
    apply: (stream, random) =>
      editParts(stream, (part) => {
        const text = toText(part['text']);
        if (!isPlainText(part) || text.length < 2) return part;
        const at = 1 + Math.floor(random() * (text.length - 1));
        return [text.slice(0, at), text.slice(at)].map((piece) => ({ ...part, text: piece }));
      }),
  },
  'gemini/parts-apart': { title: 'Every part in a separate chunk', apply: spread },
  'gemini/parts-together': { title: 'All parts in one chunk', apply: gather },
  'gemini/empty-texts': {
    title: 'Empty text parts between the others',
    apply: (stream) => editParts(stream, (part) => [part, { text: '' }]),
  },
  'gemini/thought-false': {
    title: 'Parts that are not thoughts have thought: false',
    apply: (stream) =>
      editParts(stream, (part) => (isPlainText(part) && !('thought' in part) ? { ...part, thought: false } : part)),
  },
  'gemini/null-parts': {
    title: 'Parts that are null',
    rule: 'gemini/malformed-part',
    apply: (stream) =>
      editCandidates(stream, (candidate) =>
        readParts(candidate).length === 0
          ? candidate
          : within(candidate, 'content', (content) => ({ ...content, parts: [null, ...readParts(candidate)] })),
      ),
  },
  'gemini/nameless-calls': {
    title: 'A call without a name before the first part',
    loses: ['blocks'],
    rule: 'gemini/nameless-call',
    apply: (stream) => first(stream, { functionCall: { args: { a: 1 } } }),
  },
  'gemini/unknown-parts': {
    title: 'Parts of an undocumented kind',
    loses: ['blocks'],
    rule: 'gemini/unknown-part',
    apply: (stream) => first(stream, { hologram: { depth: 3 } }),
  },
});

/** Inserts a part before all others. */
const first = (stream: WireStream, part: Json): WireStream =>
  rewrite(stream, (chunks) => {
    const holder = chunks.find(({ candidates }) => objects(candidates).some((candidate) => readParts(candidate).length > 0));
    return chunks.map((chunk) => (chunk === holder ? withFirst(chunk, part) : chunk));
  });

const withFirst = (chunk: Json, part: Json): Json => ({
  ...chunk,
  candidates: objects(chunk['candidates']).map((candidate, at) =>
    at === 0 ? within(candidate, 'content', (content) => ({ ...content, parts: [part, ...readParts(candidate)] })) : candidate,
  ),
});

/** Streams the arguments in pieces, as Vertex AI does: strings, numbers, booleans and null of a flat object. */
const partial = (stream: WireStream, hasEnd: boolean): WireStream =>
  editParts(stream, (part) => {
    const call = part['functionCall'];
    const pieces = isWholeCall(part) && isObject(call) ? splitArguments(call['args']) : undefined;
    if (!isObject(call) || !pieces) return part;
    const { args, ...named } = call;
    return [
      { ...part, functionCall: { ...named, willContinue: true } },
      ...pieces.map((piece) => ({ functionCall: { partialArgs: [piece], willContinue: true } })),
      ...(hasEnd ? [{ functionCall: {} }] : []),
    ];
  });

/** The pieces of the arguments; undefined when a value is nested or a name needs quoting. */
function splitArguments(args: unknown): Json[] | undefined {
  if (!isObject(args) || Object.keys(args).length === 0) return undefined;
  const pieces = Object.entries(args).flatMap(([name, value]): (Json | undefined)[] => {
    const jsonPath = `$.${name}`;
    if (!/^[a-z_]\w*$/i.test(name)) return [undefined];
    if (typeof value === 'string')
      return stringPieces(value).map((stringValue, at, all) => ({
        jsonPath,
        stringValue,
        ...(at < all.length - 1 && { willContinue: true }),
      }));
    if (typeof value === 'number') return [{ jsonPath, numberValue: value }];
    if (typeof value === 'boolean') return [{ jsonPath, boolValue: value }];
    return value === null ? [{ jsonPath, nullValue: 'NULL_VALUE' }] : [undefined];
  });
  return pieces.every((piece) => piece !== undefined) ? pieces : undefined;
}

const stringPieces = (text: string): string[] => (text.length < 2 ? [text] : [text.slice(0, 1), text.slice(1)]);

const CALLS = mutations('calls', ONLY, {
  'gemini/ids-missing': {
    title: 'Calls have no id',
    loses: ['call_ids'],
    apply: (stream) => editCalls(stream, (call) => without(call, 'id')),
  },
  'gemini/ids-equal': {
    title: 'All calls share one id',
    loses: ['call_ids'],
    rule: 'gemini/duplicate-call-id',
    apply: (stream) => {
      let count = 0;
      editCalls(stream, (call) => {
        count++;
        return call;
      });
      return count > 1 ? editCalls(stream, (call) => ({ ...call, id: 'call' })) : stream;
    },
  },
  'gemini/no-args': {
    title: 'Calls without arguments have no args',
    apply: (stream) =>
      editCalls(stream, (call) => (isDocument(JSON.stringify(call['args'] ?? null)) ? call : without(call, 'args'))),
  },
  'gemini/args-text': {
    title: 'args is a string of JSON',
    rule: 'gemini/args-not-object',
    apply: (stream) =>
      editCalls(stream, (call) => (isObject(call['args']) ? { ...call, args: JSON.stringify(call['args']) } : call)),
  },
  'gemini/args-streamed': { title: 'Arguments come piece by piece', apply: (stream) => partial(stream, true) },
  'gemini/args-streamed-no-end': {
    title: 'Arguments come piece by piece, without an end marker',
    // The decoder holds text that follows back until the call ends.
    loses: ['blocks'],
    rule: 'gemini/call-not-ended',
    // In a truncated turn, a call without an end is not a violation.
    apply: (stream) => (stream.frames.some(({ data }) => data.includes('"STOP"')) ? partial(stream, false) : stream),
  },
  'gemini/stray-call-ends': {
    title: 'Empty calls without a call to end',
    rule: 'gemini/stray-call-end',
    apply: (stream) => editParts(stream, (part) => (isWholeCall(part) ? [part, { functionCall: {} }] : part)),
  },
  'gemini/nested-signatures': {
    title: 'The signature is inside the call',
    rule: 'gemini/nested-signature',
    apply: (stream) =>
      editParts(stream, (part) => {
        const { thoughtSignature, functionCall: call } = part;
        if (typeof thoughtSignature !== 'string' || !isObject(call)) return part;
        return { ...without(part, 'thoughtSignature'), functionCall: { ...call, thoughtSignature } };
      }),
  },
});

const SIGNATURES = mutations('content', ONLY, {
  'gemini/signatures-apart': {
    title: 'The signature of a text is on the empty text after it',
    apply: (stream) =>
      editParts(stream, (part) => {
        const { thoughtSignature, text, thought } = part;
        if (typeof thoughtSignature !== 'string' || toText(text) === '' || thought) return part;
        return [without(part, 'thoughtSignature'), { text: '', thoughtSignature }];
      }),
  },
  'gemini/signatures-underscored': {
    title: 'The signature is spelled with an underscore',
    apply: (stream) =>
      editParts(stream, (part) => {
        const { thoughtSignature } = part;
        const isKnown = 'text' in part || 'functionCall' in part;
        return typeof thoughtSignature === 'string' && isKnown
          ? { ...without(part, 'thoughtSignature'), thought_signature: thoughtSignature }
          : part;
      }),
  },
});

/** Mutations of the parts, calls and signatures. */
export const GEMINI_PART_MUTATIONS: readonly Mutation[] = [...CONTENT, ...CALLS, ...SIGNATURES];
