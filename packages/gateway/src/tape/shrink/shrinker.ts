import { withoutFields, withoutTexts, withPlainTexts } from './everywhere.ts';
import { plainest, smallest } from './json.ts';
import { eventsOf, linesOf, type Part, partsOf, render } from './parts.ts';
import { shortest } from './shortest.ts';

export interface ShrinkOptions {
  /** Whether a stream still shows what is looked for. */
  shows(text: string): boolean | Promise<boolean>;
  /** The same with less asked of it, for when that would leave too much. */
  showsLoosely?(text: string): boolean | Promise<boolean>;
  /** Milliseconds, for the time that it may take. */
  now(): number;
  /** What is reached by then is the result. */
  mostMs: number;
  onBetter?(text: string, tries: number): void;
}

export interface Shrunk {
  text: string;
  tries: number;
  /** False when the time was over before everything had been tried. */
  isDone: boolean;
}

/** Rounds after the first find what others have made possible; there is seldom anything left for a third. */
const MAX_ROUNDS = 4;

/** Shorter lines say nothing about anybody. */
const WORTH_CUTTING = 24;

/** More lines than these are not looked at one by one before it is known that each of them counts. */
const MAX_LINES = 64;

/** Thrown when the time is over: whatever is tried then, there is no answer to wait for. */
class OutOfTime extends Error {}

/** A stream of this length fits a report. */
const SMALL = 1000;
/** Of the time, for a result that is about one thing alone, when there is another way. */
const STRICT_SHARE = 0.4;

/** The smallest stream that still shows it: events, then lines, then fields, then texts, as long as something gets smaller. */
export async function shrink(text: string, options: ShrinkOptions): Promise<Shrunk> {
  const { showsLoosely, mostMs } = options;
  if (!showsLoosely) return shrinkBy(text, options);
  const first = await shrinkBy(text, { ...options, mostMs: mostMs * STRICT_SHARE });
  if (first.text.length <= SMALL) return first;
  const second = await shrinkBy(first.text, { ...options, shows: showsLoosely, mostMs: mostMs * (1 - STRICT_SHARE) });
  return { ...second, tries: first.tries + second.tries };
}

async function shrinkBy(text: string, options: ShrinkOptions): Promise<Shrunk> {
  const shrinker = new Shrinker(text, options);
  try {
    for (let round = 0, before = ''; round < MAX_ROUNDS && before !== shrinker.text; round++) {
      before = shrinker.text;
      await shrinker.round();
    }
    return { text: shrinker.text, tries: shrinker.tries, isDone: true };
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
    return { text: shrinker.text, tries: shrinker.tries, isDone: false };
  }
}

class Shrinker {
  readonly #options: ShrinkOptions;
  readonly #deadline: number;
  /** The best so far: whatever is tried and shows it. */
  text: string;
  tries = 0;

  constructor(text: string, options: ShrinkOptions) {
    this.text = text;
    this.#options = options;
    this.#deadline = options.now() + options.mostMs;
  }

  async round(): Promise<void> {
    await this.#changeAll(withoutTexts);
    await this.#leaveOut(eventsOf(this.text));
    await this.#leaveOut(linesOf(this.text));
    await this.#changeAll(withoutFields);
    await this.#changeAll(withPlainTexts);
    await this.#leaveOut(eventsOf(this.text));
    await this.#leaveOut(linesOf(this.text));
    await this.#takeApart();
  }

  async #leaveOut(pieces: readonly string[]): Promise<void> {
    await shortest(pieces, (shorter) => this.#try(shorter.join('')));
  }

  async #changeAll(change: typeof withoutFields): Promise<void> {
    await change(await this.#parts(), (parts) => this.#try(render(parts)));
  }

  /** Document by document; what is none, letter by letter. */
  async #takeApart(): Promise<void> {
    const parts = [...(await this.#parts())];
    for (const [at, part] of parts.entries()) {
      if (typeof part === 'string') {
        const isWorthIt = part.length > WORTH_CUTTING;
        if (isWorthIt) parts[at] = await plainest(part, (tried) => this.#try(render(parts.with(at, tried))));
      } else {
        const value = await smallest(part.value, (tried) => this.#try(render(parts.with(at, { ...part, value: tried }))));
        parts[at] = { ...part, value };
      }
    }
  }

  /** The parts of the best so far. JSON that must be written as it was (its blanks, its numbers) stays as it was. */
  async #parts(): Promise<readonly Part[]> {
    const parts = partsOf(this.text);
    if (render(parts) === this.text || (await this.#try(render(parts), 'anew'))) return parts;
    const lines = linesOf(this.text);
    if (lines.length !== parts.length || lines.length > MAX_LINES) return [this.text];
    const careful: Part[] = [];
    for (const [at, part] of parts.entries()) {
      const anew = render([...careful, part, ...lines.slice(at + 1)]);
      careful.push(anew === this.text || (await this.#try(anew, 'anew')) ? part : (lines[at] ?? ''));
    }
    return careful;
  }

  /** `anew`: not smaller, but easier to make so. */
  async #try(text: string, kind: 'smaller' | 'anew' = 'smaller'): Promise<boolean> {
    const { shows, now, onBetter } = this.#options;
    if (now() > this.#deadline) throw new OutOfTime();
    if (kind === 'smaller' && text === this.text) return false;
    this.tries++;
    if (!(await shows(text))) return false;
    this.text = text;
    onBetter?.(text, this.tries);
    return true;
  }
}
