/** Turns a recorded body and its request into a shape: see fixtures/corpus/README.md. */
import { classify, fieldOf, isFree, isSchemaName, isStreamed, mediaOf, splitDataUrl } from './classes.js';
import { decodeString, scanFrame, splitFrames } from './scan.js';
import { describeId, describeJson, describeName, describeText } from './specs.js';

/** A string inside another, shorter than this, is taken for chance. */
const MIN_SHARED = 6;

/** Members of one of these lists of numbers would spell the text: they are replaced. */
const SPELLING = new Set(['token_ids', 'prompt_token_ids', 'values', 'embedding']);

/**
 * The parts of a shape that come from the bytes.
 * @param {{body: string, request: string | undefined, isStream: boolean}} recorded
 * @param {import('./vocabulary.js').Vocabulary} vocabulary
 */
export function deriveShape({ body, request, isStream }, vocabulary) {
  const bodyFrames = splitFrames(body, isStream).map((frame) => readFrame(frame, isStream, vocabulary));
  const requestFrame = request === undefined ? undefined : readFrame(request, false, vocabulary);
  const table = new StringTable(vocabulary);
  for (const text of [...collectTexts([requestFrame ?? []], false), ...collectTexts(bodyFrames, isStream)]) table.add(text);
  const strings = table.describe();
  const escapes = findEscapes(body);
  const written = bodyFrames.map((frame) => writeFrame(frame, table));
  return {
    ...(escapes !== '' && { escapes }),
    strings,
    ...foldFrames(written),
    // A request has one frame: its holes hold their values.
    ...(requestFrame && { request: inline(writeFrame(requestFrame, table)) }),
  };
}

/** The pieces of a frame; strings that the vocabulary does not explain have a `field` and a `text`. */
function readFrame(frame, isStream, vocabulary) {
  let payload;
  return scanFrame(frame, isStream).map((piece, at, all) => {
    if (piece.kind === 'line' || payload === undefined) payload = parsePayload(all.slice(piece.kind === 'line' ? at + 1 : at));
    if (piece.kind === 'line')
      return vocabulary.hasLine(piece.raw) ? { ...piece, kind: 'text' } : openString(piece, payload, piece.raw);
    return piece.kind === 'string' ? readString(piece, payload, vocabulary) : { ...piece, payload };
  });
}

/** The JSON that begins at a piece, up to the next line. */
function parsePayload(pieces) {
  const end = pieces.findIndex(({ kind }) => kind === 'line');
  const raw = (end < 0 ? pieces : pieces.slice(0, end)).map((piece) => piece.raw).join('');
  try {
    return { json: JSON.parse(raw) };
  } catch {
    return { json: undefined };
  }
}

function readString(piece, payload, vocabulary) {
  const { raw, path, isKey } = piece;
  const text = piece.isPlain ? raw : decodeString(raw);
  if (text === '') return { ...piece, kind: 'text' };
  const isBelowUser = isFree(path);
  if (isKey) {
    const isName = isSchemaName(path) || (isBelowUser ? !vocabulary.hasFreeKey(text) : !vocabulary.hasKey(text));
    return isName ? { ...openString(piece, payload, text), field: 'name', isBelowUser: false } : { ...piece, kind: 'text' };
  }
  const field = isSchemaList(path) ? 'required' : fieldOf(path);
  if (!isBelowUser && vocabulary.hasValue(field, text)) return { ...piece, kind: 'text' };
  return { ...openString(piece, payload, text), field, isBelowUser };
}

/** Lists of property names in a schema. */
const isSchemaList = (path) => path.at(-2) === 'required' && typeof path.at(-1) === 'number';

const openString = (piece, payload, text) => ({ ...piece, kind: 'open', text, field: '', isBelowUser: false, payload });

/**
 * Every text to describe: the joined pieces of a streamed field, or a string on its own. Each knows its pieces, which learn their place.
 */
function collectTexts(frames, isStream) {
  const chains = new Map();
  const texts = [];
  for (const piece of frames.flat().filter(({ kind }) => kind === 'open')) {
    const key = isStream && isStreamed(piece.field, piece.path ?? []) && !piece.isBelowUser ? chainKey(piece) : undefined;
    if (key === undefined) texts.push({ text: piece.text, pieces: [piece] });
    else if (chains.has(key)) chains.get(key).push(piece);
    else chains.set(key, [piece]);
  }
  for (const pieces of chains.values()) texts.push(...joinChain(pieces));
  return texts;
}

/** What tells the pieces of one streamed field from those of another. */
function chainKey({ path, payload }) {
  let node = payload.json;
  // Some servers change the id of an item with every event, but not its position.
  const item = node?.output_index === undefined ? 'item_id' : 'output_index';
  const parts = [describeNode(node, ['type', item, 'content_index', 'summary_index', 'index'])];
  for (const step of path) {
    node = node?.[step];
    parts.push(typeof step === 'string' ? step : describeNode(node, ['index', 'type', 'thought']));
  }
  return parts.join(' ');
}

const describeNode = (node, fields) =>
  fields.map((field) => (typeof node?.[field] === 'object' ? '' : String(node?.[field] ?? ''))).join(',');

/** Pieces in which each begins with the one before are snapshots, not pieces. */
const isCumulative = (pieces) =>
  pieces.length > 1 && pieces.slice(1).every(({ text }, at) => text.startsWith(pieces[at].text) && text.length >= 2);

function joinChain(pieces) {
  if (pieces.length < 2 || isCumulative(pieces)) return pieces.map((piece) => ({ text: piece.text, pieces: [piece] }));
  return [{ text: pieces.map(({ text }) => text).join(''), pieces }];
}

/** The strings of a shape, each once; a string that is part of another is a slice of it. */
class StringTable {
  #vocabulary;
  #names = new Map();
  #entries = [];
  #texts = [];

  constructor(vocabulary) {
    this.#vocabulary = vocabulary;
  }

  add(text) {
    this.#texts.push(text);
  }

  /** Assigns every piece its place, and describes the strings: names first, because others refer to them. */
  describe() {
    // The longest first, so that parts find what they are part of.
    for (const text of this.#texts.toSorted((a, b) => b.text.length - a.text.length)) this.#place(text);
    const others = this.#entries.filter(({ kind }) => kind !== 'name');
    const specs = others.map((entry) => this.#describe(entry).join(' '));
    const names = [...this.#names.keys()].map((name) => describeName(name).join(' '));
    for (const [at, entry] of others.entries()) entry.index = names.length + at;
    return [...names, ...specs];
  }

  locate({ place }) {
    const { entry, from, to } = place;
    const index = entry.kind === 'name' ? this.#names.get(entry.text) : entry.index;
    return { index, from, to, length: entry.length };
  }

  #place({ text, pieces }) {
    const [{ field, isBelowUser }] = pieces;
    const kind = classify(field, text, isBelowUser);
    const { entry, from } = this.#findPlace(text, kind) ?? { entry: this.#open(text, kind), from: 0 };
    let at = from;
    for (const piece of pieces) {
      piece.place = { entry, from: at, to: at + piece.text.length };
      at += piece.text.length;
      entry.cuts.add(piece.place.from).add(piece.place.to);
    }
    if (pieces.length > 1) entry.parts.push(...pieces.map(({ place }) => place));
  }

  #findPlace(text, kind) {
    const same = this.#entries.find((entry) => entry.text === text && (entry.kind === kind || kind !== 'name'));
    if (same) return { entry: same, from: 0 };
    if (kind !== 'text' && kind !== 'json' && kind !== 'literal') return undefined;
    if (text.length < MIN_SHARED) return undefined;
    const entry = this.#entries.find((one) => (one.kind === 'text' || one.kind === 'json') && one.text.includes(text));
    return entry && { entry, from: entry.text.indexOf(text) };
  }

  #open(text, kind) {
    const entry = { text, kind, length: text.length, cuts: new Set(), parts: [], index: -1 };
    if (kind === 'name') this.#refer(text);
    this.#entries.push(entry);
    return entry;
  }

  #refer(name) {
    if (!this.#names.has(name)) this.#names.set(name, this.#names.size);
    return `@${this.#names.get(name)}`;
  }

  #describe({ text, kind, cuts, parts }) {
    const refer = (name) => this.#refer(name);
    switch (kind) {
      case 'literal':
        return [`'${encodeURIComponent(text)}`];
      case 'media':
        return [mediaOf(text)];
      case 'data-url':
        return this.#describeDataUrl(text);
      case 'base64':
        return [`${/[-_]/.test(text) ? 'g' : 'b'}${text.length}`];
      case 'url':
        return [`l${text.length}`];
      case 'id':
        return describeId(text, { words: this.#vocabulary.words, findName: (run) => this.#findName(run) });
      case 'path':
        return this.#describePath(text);
      case 'json':
        return describeRepeated(text, parts, (part, own) => describeJson(part, own, refer), [...cuts]);
      default:
        return describeRepeated(text, parts, (part, own) => describeText(part, own, this.#vocabulary.tags), [...cuts]);
    }
  }

  #findName(run) {
    return this.#names.has(run) ? [`@${this.#names.get(run)}`] : undefined;
  }

  #describeDataUrl(text) {
    const [, type, data] = splitDataUrl(text);
    return [`'${encodeURIComponent(`data:${type};base64,`)}`, mediaOf(data) ?? `b${data.length}`];
  }

  /** `$.a[0].b` names arguments; `#/$defs/a` names a definition of a schema. */
  #describePath(text) {
    const isPointer = text.startsWith('#');
    return text.split(isPointer ? /([^#/]+)/ : /([A-Za-z_]\w*)/).flatMap((part, at) => {
      if (part === '') return [];
      const isName = at % 2 === 1 && !(isPointer && this.#vocabulary.hasKey(part));
      return [isName ? this.#refer(part) : `'${encodeURIComponent(part)}`];
    });
  }
}

/** A piece that is a whole JSON object or list. */
function isDocument(piece) {
  try {
    return typeof JSON.parse(piece) === 'object';
  } catch {
    return false;
  }
}

/** Arguments that are sent again are described with a reference to the first, so that they still are the same. */
function describeRepeated(text, parts, describe, cuts) {
  const repeats = parts.flatMap(({ from, to }) => {
    const piece = text.slice(from, to);
    const seen = text.slice(0, from).indexOf(piece);
    return seen >= 0 && isDocument(piece) ? [{ from, to, seen }] : [];
  });
  const tokens = [];
  let at = 0;
  const addOwn = (end) => {
    const own = cuts.map((cut) => cut - at).filter((cut) => cut > 0 && cut < end - at);
    if (end > at) tokens.push(...describe(text.slice(at, end), own));
    at = end;
  };
  for (const { from, to, seen } of repeats) {
    if (from < at) continue;
    addOwn(from);
    tokens.push(`@:${seen}-${seen + to - from}`);
    at = to;
  }
  addOwn(text.length);
  return tokens;
}

const ESCAPES = [
  ['u', /\\u(?:00[89a-f]|0[1-9a-f]|[1-9a-f])/i],
  ['/', /\\\//],
  ['<', /\\u00(?:3c|3e|26)/i],
];

/** Which characters a body escapes although JSON does not ask for it. */
const findEscapes = (body) => ESCAPES.flatMap(([name, pattern]) => (pattern.test(body) ? [name] : [])).join('');

/** A frame as a template with holes, and what is in each hole. */
function writeFrame(pieces, table) {
  let template = '';
  const values = [];
  const hole = (value) => {
    template += '«»';
    values.push(value);
  };
  for (let at = 0; at < pieces.length; at++) {
    const piece = pieces[at];
    const spelled = piece.kind === 'number' ? findSpelled(pieces, at) : undefined;
    if (spelled) {
      hole({ ...table.locate(spelled.token), isSpelled: true });
      at = spelled.last;
    } else if (piece.kind === 'number') hole(`#${writeNumber(piece)}`);
    else if (piece.kind === 'open') hole({ ...table.locate(piece), isPlain: piece.isPlain === true || piece.path === undefined });
    else template += piece.raw;
  }
  return { template, values };
}

const writeNumber = ({ raw, path }) => (SPELLING.has(path.at(-2)) ? raw.replace(/\d/g, '1') : raw);

/** The string whose bytes a list of numbers spells, and the last piece of the list. */
function findSpelled(pieces, at) {
  const { path } = pieces[at];
  if (path.at(-2) !== 'bytes' || path.at(-1) !== 0) return undefined;
  const list = path.slice(0, -1).join('/');
  const token = pieces.find(
    (piece) => piece.kind === 'open' && piece.path?.join('/') === [...path.slice(0, -2), 'token'].join('/'),
  );
  const last = pieces.findLastIndex(({ kind, path: own }) => kind === 'number' && own.slice(0, -1).join('/') === list);
  return token && { token, last };
}

/** Values as the renderer takes them: the next characters of a string are counted, all others are positions. */
function encodeValues(values, cursors) {
  return values.map((value) => {
    if (typeof value === 'string') return value;
    const { index, from, to, length, isSpelled, isPlain } = value;
    if (isSpelled) return `%${index}:${from}-${to}`;
    const mark = isPlain ? '~' : '';
    if (from === 0 && to === length) return `${mark}${index}`;
    if (cursors === undefined || from !== (cursors.get(index) ?? 0)) return `${mark}${index}:${from}-${to}`;
    cursors.set(index, to);
    return `${mark}${index}+${to - from}`;
  });
}

/** Each template once. A hole that holds the same in all its frames is filled. */
function foldFrames(written) {
  const cursors = new Map();
  const frames = written.map(({ template, values }) => ({ template, values: encodeValues(values, cursors) }));
  const templates = [...new Set(frames.map(({ template }) => template))];
  const folded = templates.map((template) =>
    foldTemplate(
      template,
      frames.filter((frame) => frame.template === template),
    ),
  );
  return {
    templates: folded.map(({ text }) => text),
    frames: frames.map(({ template, values }) => {
      const at = templates.indexOf(template);
      return [at, ...values.filter((_, hole) => !folded[at].fixed[hole])].join(' ');
    }),
  };
}

function foldTemplate(template, frames) {
  const [first] = frames;
  const fixed = first.values.map((value, hole) => !value.includes('+') && frames.every(({ values }) => values[hole] === value));
  let hole = -1;
  const text = template.replace(/«»/g, () => {
    hole++;
    return fixed[hole] ? `«${first.values[hole]}»` : '«»';
  });
  // Numbers need no mark inside a template.
  return { text: text.replace(/«#([^»]*)»/g, '$1'), fixed };
}

function inline({ template, values }) {
  const encoded = encodeValues(values);
  let hole = 0;
  return template.replace(/«»/g, () => `«${encoded[hole++]}»`).replace(/«#([^»]*)»/g, '$1');
}
