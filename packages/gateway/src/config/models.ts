import { type Goal, ModelReader } from './model-reader.ts';
import type { ConfiguredProvider } from './provider.ts';
import type { World } from './world.ts';

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
