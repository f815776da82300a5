import { didYouMean } from '@sluice/lab/text';
import { familyOf } from '../providers/families.ts';
import { PROVIDER_IDS, rowOf } from '../providers/lookup.ts';
import type { ConfiguredProvider } from './providers.ts';
import type { World } from './world.ts';

/** A model at a provider; where the name it is for is a pattern, `model` may have the `*`, too. */
export interface Goal {
  readonly provider: string;
  readonly model: string;
}

/** What is left of a target that leads nowhere. */
const NONE: readonly Goal[] = [];

/** Reads the entries of `models`, which may name each other, down to models at providers. */
class ModelReader {
  readonly #providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly #world: World;
  readonly #known = new Map<string, readonly Goal[]>();
  /** The entries being read, each because the one before names it. */
  readonly #open: string[] = [];

  constructor(providers: ReadonlyMap<string, ConfiguredProvider>, world: World) {
    this.#providers = providers;
    this.#world = world;
  }

  read(name: string): readonly Goal[] {
    const known = this.#known.get(name);
    if (known) return known;
    this.#open.push(name);
    const goals = this.#targets(name).flatMap((_, i) => this.#goals(name, i));
    this.#open.pop();
    if (countStars(name) > 1) this.#problem(name, 'must not have more than one *');
    const distinct = unique(goals);
    this.#known.set(name, distinct);
    return distinct;
  }

  #targets(name: string): readonly string[] {
    const { models } = this.#world.source.options;
    return Object.hasOwn(models, name) ? (models[name] ?? []) : [];
  }

  #goals(name: string, i: number): readonly Goal[] {
    const target = this.#targets(name)[i] ?? '';
    if (countStars(target) > Math.min(1, countStars(name))) return this.#problem(name, 'has a * that nothing stands for', i);
    const { provider, model } = split(target);
    // What a provider is asked for is final: "openai/*": [openai/*, azure/*] is no circle.
    if (this.#providers.has(provider)) return model === '' ? this.#problem(name, 'names no model', i) : [{ provider, model }];
    if (this.#targets(target).length > 0) return this.#nested(name, target, i);
    return this.#unreachable(name, target, i);
  }

  #nested(name: string, target: string, i: number): readonly Goal[] {
    const start = this.#open.indexOf(target);
    if (start < 0) return this.read(target);
    return this.#problem(name, `leads back to itself: ${[...this.#open.slice(start), target].join(' → ')}`, i);
  }

  /** A provider that is known but not there is left out; one that nobody knows is a slip. */
  #unreachable(name: string, target: string, i: number): readonly Goal[] {
    const { provider, model } = split(target);
    const settings = this.#world.source.options.providers;
    const row = rowOf(provider);
    if (Object.hasOwn(settings, provider)) {
      if (settings[provider] === false) this.#warn(name, `${target} is left out: ${provider} is switched off`, i);
      return NONE; // what is wrong with its settings was told already
    }
    if (row) {
      const variables = row.local ? row.base_env : [...row.key_env, ...(row.token_env ?? [])];
      return this.#warn(name, `${target} is left out: ${provider} needs ${variables?.join(' or ')} in the environment`, i);
    }
    if (model !== '' && provider !== '')
      return this.#problem(name, `there is no provider "${provider}"${didYouMean(provider, this.#everyProvider())}`, i);
    const family = familyOf(target);
    const hint = family
      ? `; did you mean "${family}/${target}"?`
      : didYouMean(target, Object.keys(this.#world.source.options.models));
    return this.#problem(name, `"${target}" is neither provider/model nor another name${hint}`, i);
  }

  #everyProvider(): Set<string> {
    return new Set([...this.#providers.keys(), ...PROVIDER_IDS]);
  }

  #problem(name: string, message: string, i?: number): readonly Goal[] {
    this.#world.problems.push(this.#about(name, message, i));
    return NONE;
  }

  #warn(name: string, message: string, i: number): readonly Goal[] {
    this.#world.warnings.push(this.#about(name, message, i));
    return NONE;
  }

  #about(name: string, message: string, i?: number) {
    const isListed = i !== undefined && this.#targets(name).length > 1;
    return this.#world.source.problem(['models', name, ...(isListed ? [i] : [])], message, i === undefined ? 'key' : 'value');
  }
}

/** `groq/meta/llama` is the model meta/llama at groq. */
function split(target: string): { provider: string; model: string } {
  const slash = target.indexOf('/');
  return { provider: target.slice(0, Math.max(0, slash)), model: target.slice(slash + 1) };
}

const countStars = (text: string): number => text.split('*').length - 1;

function unique(goals: readonly Goal[]): readonly Goal[] {
  const seen = new Map(goals.map((goal) => [`${goal.provider}/${goal.model}`, goal]));
  return [...seen.values()];
}

/** A name with one `*`. */
interface Pattern {
  readonly prefix: string;
  readonly suffix: string;
  readonly goals: readonly Goal[];
}

/** The `models` of the file, read: names, and patterns with the longest literal first. */
export interface ModelTable {
  readonly names: ReadonlyMap<string, readonly Goal[]>;
  readonly patterns: readonly Pattern[];
}

export function readModels(providers: ReadonlyMap<string, ConfiguredProvider>, world: World): ModelTable {
  const reader = new ModelReader(providers, world);
  const names = new Map<string, readonly Goal[]>();
  const patterns: Pattern[] = [];
  for (const name of Object.keys(world.source.options.models)) {
    const goals = reader.read(name);
    const [prefix = '', suffix] = name.split('*');
    if (goals.length === 0) continue;
    if (suffix === undefined) names.set(name, goals);
    else patterns.push({ prefix, suffix, goals });
  }
  return { names, patterns: patterns.sort(byLiteral) };
}

/** The longest literal wins; of two that are equally long, the one that says more of the beginning. */
const byLiteral = (a: Pattern, b: Pattern): number =>
  b.prefix.length + b.suffix.length - (a.prefix.length + a.suffix.length) || b.prefix.length - a.prefix.length;

/** What a name stands for by these patterns, the `*` filled in. */
export function matchPattern(patterns: readonly Pattern[], name: string): readonly Goal[] | undefined {
  for (const pattern of patterns) {
    if (!fits(pattern, name)) continue;
    // "openai/*" stands for no model when nothing follows.
    const goals = pattern.goals
      .map(({ provider, model }) => ({ provider, model: fill(model, pattern, name) }))
      .filter(({ model }) => model !== '');
    if (goals.length > 0) return goals;
  }
  return undefined;
}

const fits = ({ prefix, suffix }: Pattern, name: string): boolean =>
  name.length >= prefix.length + suffix.length && name.startsWith(prefix) && name.endsWith(suffix);

/**
 * A `*` between slashes stands for all that is between slashes in the name: "claude-*" is anthropic/* is anthropic/claude-opus. A `*` that
 * is a part of a word stands for the part that the pattern leaves open: "claude-*" is bedrock/claude-*-v1 is bedrock/claude-opus-v1.
 */
function fill(model: string, { prefix, suffix }: Pattern, name: string): string {
  const isWord = /(^|\/)\*(\/|$)/.test(model);
  const slash = suffix.indexOf('/');
  const start = isWord ? prefix.lastIndexOf('/') + 1 : prefix.length;
  const end = isWord ? name.length - (slash < 0 ? 0 : suffix.length - slash) : name.length - suffix.length;
  return model.replace('*', () => name.slice(start, end));
}
