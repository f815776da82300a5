import { writeJson } from '../../accumulate/overlay.ts';

const value = (word: string) => (said: unknown) => `${word} ${short(said)}`;
const flag = (words: string) => (said: unknown) => (said === true ? words : undefined);
const nothing = (): undefined => undefined;

/** What a keyword says, for the description that has to say it instead. Keywords that say nothing about the value have no words. */
const HINTS: Readonly<Record<string, (said: unknown) => string | undefined>> = {
  minimum: value('min'),
  maximum: value('max'),
  exclusiveMinimum: value('more than'),
  exclusiveMaximum: value('less than'),
  multipleOf: value('multiple of'),
  minLength: value('min length'),
  maxLength: value('max length'),
  minItems: value('min items'),
  maxItems: value('max items'),
  minProperties: value('min properties'),
  maxProperties: value('max properties'),
  pattern: value('pattern'),
  format: value('format'),
  default: value('default'),
  const: value('always'),
  enum: (said) => `one of ${Array.isArray(said) ? said.map(short).join(', ') : short(said)}`,
  examples: (said) => `for example ${Array.isArray(said) ? said.map(short).join(', ') : short(said)}`,
  example: value('for example'),
  uniqueItems: flag('unique items'),
  deprecated: flag('deprecated'),
  readOnly: flag('read only'),
  writeOnly: flag('write only'),
  additionalProperties: (said) =>
    said === false ? 'no other properties' : said === true ? undefined : `other properties ${short(said)}`,
  required: nothing,
  title: nothing,
  $id: nothing,
  $anchor: nothing,
  $comment: nothing,
  $vocabulary: nothing,
  $dynamicAnchor: nothing,
};

/** Words of schema tools about the schema, not about the value. */
const ABOUT_SCHEMA = /^(\$|x-)/;

export function hintOf(keyword: string, said: unknown): string | undefined {
  const hint = Object.hasOwn(HINTS, keyword) ? HINTS[keyword] : undefined;
  if (hint) return clip(hint(said));
  return ABOUT_SCHEMA.test(keyword) ? undefined : clip(`${keyword} ${short(said)}`);
}

const MAX_HINT = 200;

const short = (said: unknown): string => (typeof said === 'string' ? said : (writeJson(said) ?? '…'));

/** Long ones would only cost tokens. */
function clip(hint: string | undefined): string | undefined {
  if (hint === undefined || hint.length <= MAX_HINT) return hint;
  return `${hint.slice(0, MAX_HINT).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** The description with the hints behind it: `Pages to read. (min 1, max 10)`. */
export function describe(description: unknown, hints: readonly string[]): string | undefined {
  const text = typeof description === 'string' ? description : undefined;
  if (hints.length === 0) return text;
  const told = `(${hints.join(', ')})`;
  return text ? `${text} ${told}` : told;
}
