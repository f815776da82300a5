/** Finds strings in the corpus that neither the vocabulary nor the generator explains: nobody's text may enter it. */
import { render } from '../../fixtures/corpus/render.js';
import { fieldOf, isTime } from './classes.js';
import { decodeString, scanFrame } from './scan.js';

/**
 * What is unexplained in a shape and in what it renders; empty when all is well.
 * @param {import('../../fixtures/corpus/render.d.ts').Shape | import('../../fixtures/corpus/render.d.ts').ClientShape} shape
 * @param {import('./vocabulary.js').Vocabulary} vocabulary
 * @returns {string[]}
 */
export function findUnexplained(shape, vocabulary) {
  const { templates = [], strings = [], request, stream = false } = shape;
  const rendered = render(shape);
  const made = (text) => rendered.strings.some((string) => string.includes(text));
  return [
    ...strings.flatMap((spec) => spec.split(' ').filter((token) => !isExplainedToken(token, vocabulary))),
    ...[...templates.map((template) => [template, stream]), ...(request === undefined ? [] : [[request, false]])].flatMap(
      ([text, isStream]) => listStrings(text.replace(/«[^»]*»/g, '«»'), isStream, vocabulary).filter((string) => string !== '«»'),
    ),
    ...listStrings(rendered.body, stream, vocabulary).filter((text) => !made(text)),
    ...(rendered.request === undefined ? [] : listStrings(rendered.request, false, vocabulary).filter((text) => !made(text))),
    ...listMetadata(shape, vocabulary),
  ];
}

/** Strings, lines and bare words of a text that are not in the vocabulary. */
function listStrings(text, isStream, vocabulary) {
  return scanFrame(text, isStream).flatMap((piece) => {
    if (piece.kind === 'number') return [];
    if (piece.kind === 'line') return vocabulary.hasLine(piece.raw) ? [] : [piece.raw];
    if (piece.kind === 'text') return piece.raw.replace(/true|false|null|«»|[\s{}[\],:"]/g, '') === '' ? [] : [piece.raw];
    const string = piece.isPlain ? piece.raw : decodeString(piece.raw);
    if (string === '') return [];
    const isKnown = piece.isKey
      ? vocabulary.hasKey(string) || vocabulary.hasFreeKey(string)
      : vocabulary.hasValue(fieldOf(piece.path), string);
    return isKnown ? [] : [string];
  });
}

/** Letters that a literal may hold: words of ids, tags, JSON and its escapes, and runs too short to be a word. */
function isExplainedToken(token, { words, tags, hasKey }) {
  if (!token.startsWith("'")) return /^[@A-Za-z_^][\w:^-]*$/.test(token);
  const literal = decodeURIComponent(token.slice(1));
  if (tags.includes(literal) || isTime(literal) || hasKey(literal)) return true;
  return (literal.replace(/\\u00e9/g, '').match(/[A-Za-z0-9\u0080-\uffff]*[A-Za-z\u0080-\uffff][A-Za-z0-9]*/g) ?? []).every(
    (run) => run.length <= 2 || words.has(run) || /^(true|false|null)$/.test(run),
  );
}

function listMetadata({ provider, model, path, headers = {} }, vocabulary) {
  const facts = Object.entries({ provider, model, path, ...headers }).filter(([, text]) => text !== undefined);
  return facts.filter(([field, text]) => !vocabulary.hasFact(field, text)).map(([field, text]) => `${field}: ${text}`);
}
