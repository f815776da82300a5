/** Problems of a configuration: what is wrong, where, and as text. Apart from the parser, so that errors can be shown without it. */

import { redactPatterns } from './secret-patterns.ts';

/** Path of a value in the file: `providers.local.api_key`, `models.fast[1]`. */
export type Path = readonly (string | number)[];

/** An error or warning about the configuration. */
export interface Problem {
  readonly message: string;
  readonly path: Path;
  readonly place?: Place;
}

/** Where a problem is in the file. */
export interface Place {
  readonly file: string;
  /** Starts at 1. */
  readonly line: number;
  readonly column: number;
  /** The line with a caret below it; values that may be secret are masked. */
  readonly excerpt: string;
}

/** A configuration that cannot be used, with all its problems. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = [...problems].sort(comparePlaces);
    const more = sorted.length > MAX_DESCRIBED ? [`… and ${sorted.length - MAX_DESCRIBED} more problems`] : [];
    super(redactPatterns([...sorted.slice(0, MAX_DESCRIBED).map(describeProblem), ...more].join('\n')));
    this.problems = sorted;
  }
}

/** Further problems are rarely useful before the first ones are repaired. */
const MAX_DESCRIBED = 200;

const comparePlaces = ({ place: a }: Problem, { place: b }: Problem): number =>
  (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);

/** Formats `sluice.yaml:4:7: providers.grok: …` and the line that it is about. */
function describeProblem({ message, path, place }: Problem): string {
  const subject = path.length === 0 ? message : `${formatPath(path)}: ${message}`;
  return place ? `${place.file}:${place.line}:${place.column}: ${subject}\n${place.excerpt}` : subject;
}

const PLAIN_KEY = /^[\w$-]+$/;

/** A path as text: `providers.local.api_key`, `models.fast[1]`. */
export function formatPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (PLAIN_KEY.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
