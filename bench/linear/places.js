/** Every place of a protocol's messages that can grow, out of the SDKs' type declarations: lists, objects, texts, repeated events. */
import { bodyWith, sampleOf } from '../../scripts/fields/sample.js';
import { readFields, SOURCES } from '../../scripts/fields/sources.js';

/** Marks the payload of a stream that holds the field; object spread keeps symbols, so it survives `complete`. */
const MARK = Symbol('grown');

/** Units of text that regular expressions and scanners stumble over. */
const TEXTS = [
  'a',
  ' ',
  ' \n',
  '"',
  '\\',
  '\\"',
  '{"a":',
  '[',
  '{}',
  ';',
  'data:;',
  ',',
  '/',
  '<',
  '<think>',
  '\u00e9',
  'models/x:',
  '`',
  '#',
  '..',
];

const KINDS = ['request', 'response', 'stream'];

/**
 * @returns {Generator<{ protocol: string, kind: 'request' | 'response' | 'stream', name: string, path: string, size: number, target?: number, grow: (n: number) => unknown }>}
 */
export function* placesOf({ routeOf, withoutHoles }) {
  for (const [protocol, { sections }] of Object.entries(SOURCES)) {
    const seen = new Set();
    for (const section of Object.keys(sections)) {
      const kind = KINDS.find((one) => section.replace(/^beta | beyond the SDK$/g, '') === one);
      if (!kind) continue;
      const route = routeOf(protocol, section);
      for (const field of readFields(protocol, section))
        for (const { how, ...size } of growthsOf(field, route, kind)) {
          // A declared type stands in many places; the codecs read it with one function, so one place of each kind is enough.
          const key = `${kind} ${field.owner}.${field.path.split('.').at(-1)} ${how}`;
          if (seen.has(key)) continue;
          seen.add(key);
          const name = `${section}: ${field.path} ${how}`;
          yield {
            protocol,
            kind,
            path: route.path,
            name,
            size: size.size,
            target: size.target,
            grow: (n) => withoutHoles(size.grow(n)),
          };
        }
    }
  }
}

const ENTRIES = { size: 512 };
const CHARACTERS = { size: 8 * 1024 };

function* growthsOf(field, route, kind) {
  const { shapes, constant } = field;
  const samples = (path) => (path === field.path ? undefined : route.samples(path));
  const kinds = new Set(shapes.flatMap((shape) => (shape.kind === 'met' ? [metKind(shape.holds)] : [shape.kind])));
  const body = (value) => route.complete(bodyWith(field, value, route.samples));
  const isText = kinds.has('string') || kinds.has('any');
  if (isText && !constant)
    // Texts are read alike for all targets: each unit goes to one of them.
    for (const [i, unit] of TEXTS.entries())
      yield {
        how: `x ${JSON.stringify(unit)}`,
        ...CHARACTERS,
        target: i,
        grow: (n) => body(unit.repeat(Math.ceil(n / unit.length))),
      };
  if (kinds.has('object') || kinds.has('any')) {
    const object = kinds.has('object') ? sampleOf({ ...field, shapes: only(shapes, 'object') }, 0, samples) : {};
    yield { how: 'keys', ...ENTRIES, target: 1, grow: (n) => body({ ...object, ...keys(n) }) };
    yield { how: 'nested keys', ...ENTRIES, target: 3, grow: (n) => body({ ...object, alpha: keys(n) }) };
  }
  const isTelling = kinds.has('array') || kinds.has('object') || kinds.has('any') || NAMED.test(field.path);
  for (const [mode, vary] of Object.entries(MODES)) {
    if (kinds.has('array')) {
      const [item] = sampleOf({ ...field, shapes: only(shapes, 'array') }, 0, samples);
      yield { how: `${mode} entries`, ...ENTRIES, grow: (n) => body(Array.from({ length: n }, (_, i) => vary(item, i))) };
    }
    if (mode !== 'equal' && isTelling && field.steps.at(-2)?.list)
      yield { how: `${mode} entries around it`, ...ENTRIES, grow: (n) => route.complete(repeated(field, route, n, vary)) };
    if (isTelling && kind === 'stream') yield { how: `${mode} events`, ...ENTRIES, grow: (n) => events(field, route, n, vary) };
  }
}

const only = (shapes, wanted) => shapes.filter(({ kind }) => kind === wanted || kind === 'met');

const metKind = (holds) =>
  holds === 'list' ? 'array' : ['string', 'number', 'boolean', 'fraction'].includes(holds) ? holds : 'object';

const keys = (n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`key_${i}`, i]));

/** The list entry that holds the field, n times. */
function repeated(field, route, n, vary) {
  const body = bodyWith(field, sampleOf(field, 0, route.samples), route.samples);
  const steps = field.steps.slice(1, -1);
  let around = body;
  for (const { name, list } of steps.slice(0, -1)) {
    around = around[name === '*' ? 'alpha' : name];
    if (list) [around] = around;
  }
  const { name } = steps.at(-1);
  const [item] = around[name];
  around[name] = Array.from({ length: n }, (_, i) => vary(item, i));
  return body;
}

/** The payload that holds the field, n times. */
function events(field, route, n, vary) {
  const payload = bodyWith(field, sampleOf(field, 0, route.samples), route.samples);
  payload[MARK] = true;
  return route.complete(payload).flatMap((one) => (one[MARK] ? Array.from({ length: n }, (_, i) => vary(one, i)) : [one]));
}

const MODES = {
  equal: (value) => value,
  distinct: (value, i) => varied(value, i, (text) => `${text}_${i}`),
  // No protocol takes such names or ids.
  illegal: (value, i) => varied(value, i, (text) => `${text} \u00e9${'x'.repeat(70)}${i}`),
};

const NAMED = /(?:^|_|[a-z](?=[IN]))(?:id|name|Id|Name)$/;
const COUNTED = /index$/i;
const READ = /^(?:text|title|url|uri|content|data|delta|signature)$/;

function varied(value, i, rename, key = '') {
  if (Array.isArray(value)) return value.map((item) => varied(item, i, rename, key));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, varied(inner, i, rename, name)]));
  if (typeof value === 'number') return COUNTED.test(key) ? value + i : value;
  if (typeof value !== 'string') return value;
  return NAMED.test(key) ? rename(value) : READ.test(key) ? `${value} ${i}` : value;
}
