/** Longer patterns, and longer samples of them, are left alone. */
const MAX_LENGTH = 500;

/**
 * A text that matches a regular expression: the first alternative, the fewest repetitions. Undefined for patterns that look around, refer
 * back, or cannot be read. The pattern is a stranger's and is never run: matching could take for ever, writing is linear.
 */
export function samplePattern(pattern: string): string | undefined {
  if (pattern.length > MAX_LENGTH) return undefined;
  const reader = new PatternReader(pattern);
  const sample = reader.alternatives();
  return reader.isDone && sample.length <= MAX_LENGTH ? sample : undefined;
}

const CLASSES: Readonly<Record<string, string>> = { d: '0', w: 'a', s: ' ', D: 'a', W: '-', S: 'a' };
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
const CANDIDATES = 'a0A-_ ./:@~!';

class PatternReader {
  readonly #pattern: string;
  #at = 0;
  #hasFailed = false;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  get isDone(): boolean {
    return !this.#hasFailed && this.#at === this.#pattern.length;
  }

  alternatives(): string {
    const first = this.#sequence();
    while (this.#take('|')) this.#sequence();
    return first;
  }

  #sequence(): string {
    let text = '';
    while (!this.#hasFailed && this.#at < this.#pattern.length && !'|)'.includes(this.#peek())) {
      const atom = this.#atom();
      const times = this.#repetitions();
      if (text.length + atom.length * times > MAX_LENGTH) this.#hasFailed = true;
      else text += atom.repeat(times);
    }
    return text;
  }

  #atom(): string {
    const character = this.#next();
    switch (character) {
      case '^':
      case '$':
        return '';
      case '.':
        return 'a';
      case '(':
        return this.#group();
      case '[':
        return this.#set();
      case '\\':
        return this.#escape(this.#next());
      case '*':
      case '+':
      case '?':
        this.#hasFailed = true;
        return '';
      default:
        return character;
    }
  }

  #group(): string {
    const opening = /^\?(?::|<[A-Za-z_]\w*>)/.exec(this.#rest())?.[0];
    if (opening !== undefined) this.#at += opening.length;
    else if (this.#peek() === '?') this.#hasFailed = true;
    const text = this.alternatives();
    if (!this.#take(')')) this.#hasFailed = true;
    return text;
  }

  #escape(character: string): string {
    if (character === 'b' || character === 'B') return '';
    const known = CLASSES[character] ?? CONTROLS[character];
    if (known !== undefined) return known;
    // Escaped punctuation stands for itself; letters and digits have meanings that are not known here.
    if (character === '' || /\w/.test(character)) this.#hasFailed = true;
    return character;
  }

  /** A set is one character long, whatever it holds: to run it is safe. */
  #set(): string {
    const body = /^\^?\]?(?:\\.|[^\]\\])*\]/.exec(this.#rest())?.[0];
    const set = body === undefined ? undefined : toSet(body);
    if (body === undefined || !set) {
      this.#hasFailed = true;
      return '';
    }
    this.#at += body.length;
    const literal = /^\^?\\?(.)/.exec(body)?.[1] ?? '';
    return [...CANDIDATES, literal].find((character) => set.test(character)) ?? '';
  }

  /** The fewest times that the quantifier allows. */
  #repetitions(): number {
    const quantifier = /^(?:[*+?]|\{(\d+)(?:,\d*)?\})\??/.exec(this.#rest());
    if (!quantifier) return 1;
    this.#at += quantifier[0].length;
    if (quantifier[1] !== undefined) return Number(quantifier[1]);
    return quantifier[0].startsWith('+') ? 1 : 0;
  }

  #rest(): string {
    return this.#pattern.slice(this.#at);
  }

  #peek(): string {
    return this.#pattern.charAt(this.#at);
  }

  #next(): string {
    return this.#pattern.charAt(this.#at++);
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }
}

function toSet(body: string): RegExp | undefined {
  try {
    return new RegExp(`^[${body}$`);
  } catch {
    return undefined;
  }
}
