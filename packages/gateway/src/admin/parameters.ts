/** Query parameters of the admin API: what they accept, for the document and for requests. */

import { didYouMean } from '@sluice/lab/text';
import { type Filter, type ParsedSearch, parseFilter, parseSearch } from '../store/index.ts';
import { type FieldError, Problem } from './problem.ts';

/** One query parameter. */
export interface Parameter<Value> {
  readonly about: string;
  /** As JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** Throws a `ParameterError` when the text is not valid. */
  read(text: string, now: number): Value;
}

/** The parameters of a route. */
export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The values of parameters; those that are absent are undefined. */
export type Values<P extends Parameters> = { readonly [K in keyof P]: ReturnType<P[K]['read']> | undefined };

class ParameterError extends Error {
  readonly at: { start?: number; end?: number };

  constructor(message: string, at: { start?: number; end?: number } = {}) {
    super(message);
    this.at = at;
  }
}

/** Reads the query of a request. Unknown, repeated and invalid parameters are errors, all reported at once. */
export function readQuery<P extends Parameters>(parameters: P, query: string, now: number): Values<P> {
  const errors: FieldError[] = [];
  const values = new Map<string, unknown>();
  const fail = (field: string, detail: string, at = {}): void =>
    void errors.push({ field: field.slice(0, MAX_SHOWN), detail, ...at });
  const given = [...new URLSearchParams(query)];
  if (given.length > MAX_PARAMETERS) throw new Problem(400, `at most ${MAX_PARAMETERS} query parameters are allowed`);
  for (const [name, text] of given) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (!parameter) fail(name, describeUnknown(name, Object.keys(parameters)));
    else if (values.has(name)) fail(name, 'given more than once');
    else
      try {
        values.set(name, parameter.read(text, now));
      } catch (error) {
        if (!(error instanceof ParameterError)) throw error;
        values.set(name, undefined);
        fail(name, error.message, error.at);
      }
  }
  const [first] = errors;
  if (first) throw new Problem(400, `query parameter ${JSON.stringify(first.field)}: ${first.detail}`, { errors });
  return Object.fromEntries(values) as Values<P>; // each was read by the parameter of its name
}

function describeUnknown(name: string, known: readonly string[]): string {
  const list = known.length > 0 ? `; known: ${known.join(', ')}` : '; this endpoint has none';
  return `unknown${didYouMean(name.slice(0, MAX_SHOWN), known)}${list}`;
}

const MAX_SHOWN = 60;

const MAX_PARAMETERS = 32;

/** An integer within bounds. */
export const integer = (about: string, minimum: number, maximum: number, preset: number): Parameter<number> => ({
  about,
  schema: { type: 'integer', minimum, maximum, default: preset },
  read(text) {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return value;
    throw new ParameterError(`must be an integer from ${minimum} to ${maximum}`);
  },
});

/** One of several words. */
export const choice = <const Word extends string>(about: string, words: readonly Word[]): Parameter<Word> => ({
  about,
  schema: { type: 'string', enum: words },
  read(text) {
    const found = words.find((word) => word === text);
    if (found !== undefined) return found;
    throw new ParameterError(`must be one of ${words.join(', ')}${didYouMean(text.slice(0, MAX_SHOWN), words)}`);
  },
});

/** Text of a limited length without control characters. */
export const text = (about: string, maxLength = 200): Parameter<string> => ({
  about,
  schema: { type: 'string', minLength: 1, maxLength },
  read(value) {
    if (value === '') throw new ParameterError('must not be empty');
    if (value.length > maxLength) throw new ParameterError(`must have at most ${maxLength} characters`);
    if (/\p{Cc}/u.test(value)) throw new ParameterError('must not contain control characters');
    return value;
  },
});

/** The cursor of a page. */
export const cursor: Parameter<string> = {
  about: '`next` of the page before.',
  schema: { type: 'string', pattern: '^[0-9a-f-]{13,36}$' },
  read(value) {
    if (/^[0-9a-f-]{13,36}$/.test(value)) return value;
    throw new ParameterError('must be `next` of the page before');
  },
};

/** A filter of exchanges. */
export const filter: Parameter<Filter> = {
  about: 'Which exchanges, such as `status:error model:gpt* since:2h`.',
  schema: { type: 'string', maxLength: 2000 },
  read(value, now) {
    const { filter: parsed, problems } = parseFilter(value, now);
    const [problem] = problems;
    if (problem) throw new ParameterError(problem.message, { start: problem.start, end: problem.end });
    return parsed;
  },
};

/** A filter of exchanges that may have texts to search for in captured bodies. */
export const search: Parameter<Pick<ParsedSearch, 'filter' | 'texts'>> = {
  about:
    'Which exchanges, such as `status:error model:gpt* since:2h`; terms without a field are searched for in captured bodies.',
  schema: filter.schema,
  read(value, now) {
    const { problems, ...parsed } = parseSearch(value, now);
    const [problem] = problems;
    if (problem) throw new ParameterError(problem.message, { start: problem.start, end: problem.end });
    return parsed;
  },
};

/** A time: RFC 3339, a date, or an age such as `2h`. The same grammar as `since:` of filters. */
export const time = (about: string): Parameter<number> => ({
  about: `${about} \`2026-11-17T08:00Z\`, \`2026-11-17\`, or an age such as \`2h\` or \`7d\`.`,
  schema: { type: 'string', maxLength: 40 },
  read(value, now) {
    // Quotes and spaces would end the term.
    const { filter: parsed, problems } = parseFilter(`since:${value.replace(/[\s"]/g, '?').slice(0, MAX_SHOWN)}`, now);
    const [condition] = parsed;
    if (condition?.kind === 'time' && condition.from !== null) return condition.from;
    throw new ParameterError(problems[0]?.message.replace(/^since: /, '') ?? 'is not a time');
  },
});

/** A list of names, separated by commas. */
export const names = (about: string, known: readonly string[]): Parameter<ReadonlySet<string>> => ({
  about,
  schema: { type: 'string', maxLength: 2000, examples: [known.slice(0, 3).join(',')] },
  read(value) {
    const listed = value.slice(0, 2000).split(',');
    const unknown = listed.find((name) => !known.includes(name));
    if (unknown === undefined) return new Set(listed);
    const shown = unknown.slice(0, MAX_SHOWN);
    throw new ParameterError(`unknown field ${JSON.stringify(shown)}${didYouMean(shown, known)}; known: ${known.join(', ')}`);
  },
});
