import fc from 'fast-check';

/** Text as models write it and as nobody expects it: any characters, pairs of surrogates, line ends, quotes, what looks like syntax. */
export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 20 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }),
  fc.constantFrom('\n\n', ' ', '😀👩‍💻é', '\u2028\u2029\u0085', '"}\\', 'data: [DONE]\n\n', 'null', '<b>&amp;', '{"a":1}', 'ha'),
);

export const name: fc.Arbitrary<string> = fc.stringMatching(/^[a-zA-Z_][a-zA-Z0-9_-]{0,15}$/);

/** Ids as the wires write them; unlike names and words for nothing. */
export const id = (prefix: string): fc.Arbitrary<string> =>
  fc.stringMatching(/^[a-zA-Z0-9]{6,12}$/).map((rest) => `${prefix}${rest}`);

const key = fc.oneof(
  { weight: 8, arbitrary: fc.stringMatching(/^[a-z_]{1,8}$/) },
  { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'toString', 'index', 'type', '', ' ', 'é') },
);

/** A JSON object with an own key for each, whatever the key is called. */
export const jsonObject: fc.Arbitrary<Record<string, unknown>> = fc
  .array(fc.tuple(key, fc.jsonValue({ maxDepth: 2 })), { maxLength: 4 })
  .map((entries) => Object.fromEntries(entries));

/** The arguments of a call as text: written the usual way, spread out, or none at all. */
export const argumentText: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: jsonObject.map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: jsonObject.map((value) => JSON.stringify(value, null, 1)) },
  { weight: 1, arbitrary: fc.constant('{}') },
  { weight: 1, arbitrary: fc.constant('') },
);

const SIZES = { maxLength: 4 };
const leaf = fc.constantFrom(
  { type: 'string' },
  { type: 'integer', minimum: 0 },
  { type: 'boolean' },
  { enum: ['a', 'b'] },
  { type: ['string', 'null'] },
);

/** A schema for the parameters of a tool. */
export const schema: fc.Arbitrary<Record<string, unknown>> = fc
  .array(
    fc.tuple(
      fc.stringMatching(/^[a-z]{1,6}$/),
      fc.oneof(
        leaf,
        leaf.map((items) => ({ type: 'array', items })),
      ),
    ),
    SIZES,
  )
  .map((properties) => ({
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(properties[0] && { required: [properties[0][0]] }),
  }));
