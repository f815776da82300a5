import { redactPatterns } from './secret.ts';

/** Where something stands in the file: `providers.local.api_key`, `models.fast[1]`. */
export type Path = readonly (string | number)[];

/** Something that is wrong with the configuration, or doubtful. */
export interface Problem {
  readonly message: string;
  readonly path: Path;
  readonly place?: Place;
}

export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** The line with a caret below it; values that may be secret are blacked out. */
  readonly excerpt: string;
}

/** A configuration that cannot be used, with all that is wrong about it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = [...problems].sort(byPlace);
    super(redactPatterns(sorted.map(describeProblem).join('\n')));
    this.problems = sorted;
  }
}

const byPlace = ({ place: a }: Problem, { place: b }: Problem): number =>
  (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);

/** `sluice.yaml:4:7: providers.grok: …`, and the line it is about. */
function describeProblem({ message, path, place }: Problem): string {
  const subject = path.length === 0 ? message : `${pathText(path)}: ${message}`;
  return place ? `${place.file}:${place.line}:${place.column}: ${subject}\n${place.excerpt}` : subject;
}

const PLAIN = /^[\w$-]+$/;

function pathText(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (PLAIN.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
