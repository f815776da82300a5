/** The `models` section: names and patterns, resolved to models of providers. */

import { didYouMean } from '@sluice/lab/text';
import { findFamily } from '../providers/families.ts';
import { findRow, PROVIDER_IDS } from '../providers/lookup.ts';
import { compareLiterals, matches, splitPattern, type WildcardName } from '../providers/wildcard.ts';
import type { ModelOptions, Strategy } from './options.ts';
import type { ConfiguredProvider } from './providers.ts';
import type { ResolveContext } from './world.ts';

/** Reads the `models` section and adds its problems to `world.problems`. */
export function readModels(providers: ReadonlyMap<string, ConfiguredProvider>, world: ResolveContext): ModelTable {
  const reader = new ModelReader(providers, world);
  const names = new Map<string, readonly Goal[]>();
  const patterns: Pattern[] = [];
  for (const name of Object.keys(world.source.options.models)) {
    const goals = reader.read(name);
    const { prefix, suffix } = splitPattern(name);
    if (goals.length === 0) continue;
    if (suffix === undefined) names.set(name, goals);
    else patterns.push({ prefix, suffix, goals });
  }
  return { names, patterns: patterns.sort(compareLiterals) };
}

/** The `models` section: exact names, and patterns with the longest literal part first. */
export interface ModelTable {
  readonly names: ReadonlyMap<string, readonly Goal[]>;
  readonly patterns: readonly Pattern[];
}

/** A name with one `*`. */
interface Pattern extends WildcardName {
  readonly suffix: string;
  readonly goals: readonly Goal[];
}

/** A model of a provider; for a pattern, `model` may contain the `*`. */
export interface Goal {
  readonly provider: string;
  readonly model: string;
  /** Goals of a lower tier are tried first; goals of the same tier share the requests. */
  readonly tier: number;
  /** How the goals of the tier share the requests. */
  readonly sharing: Sharing;
  /** Its share of the requests of its tier. */
  readonly weight: number;
}

/** How the goals of one tier share requests. In order, every goal is a tier of its own. */
export type Sharing = Exclude<Strategy, 'order'>;

/** A goal that shares its tier with no other. */
export const createGoal = (provider: string, model: string): Goal => ({
  provider,
  model,
  tier: 0,
  sharing: 'weighted',
  weight: 1,
});

/** Resolves the entries of `models`, which may refer to each other, to models of providers. */
class ModelReader {
  readonly #providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly #world: ResolveContext;
  readonly #known = new Map<string, readonly Goal[]>();
  /** The chain of entries being resolved, to detect cycles. */
  readonly #open: string[] = [];

  constructor(providers: ReadonlyMap<string, ConfiguredProvider>, world: ResolveContext) {
    this.#providers = providers;
    this.#world = world;
  }

  read(name: string): readonly Goal[] {
    const known = this.#known.get(name);
    if (known) return known;
    this.#open.push(name);
    const { strategy, targets } = this.#find(name);
    const resolved = targets.map(({ weight }, i) => ({ weight, goals: this.#resolveTarget(name, i) }));
    const goals = strategy === 'order' ? stackTiers(resolved) : shareTier(resolved, strategy);
    this.#open.pop();
    if (countStars(name) > 1) this.#problem(name, 'must contain at most one *');
    const distinct = removeDuplicates(goals);
    this.#known.set(name, distinct);
    return distinct;
  }

  #find(name: string): ModelOptions {
    const { models } = this.#world.source.options;
    return (Object.hasOwn(models, name) ? models[name] : undefined) ?? NO_MODEL;
  }

  #resolveTarget(name: string, i: number): readonly Goal[] {
    const target = this.#find(name).targets[i]?.target ?? '';
    if (countStars(target) > Math.min(1, countStars(name)))
      return this.#problem(name, 'contains a * but the name has none to replace it with', i);
    const { provider, model } = splitTarget(target);
    // A target with a provider is final, so "openai/*": [openai/*, azure/*] is not a cycle.
    if (this.#providers.has(provider))
      return model === ''
        ? this.#problem(name, 'has no model after the provider; write provider/model', i)
        : [createGoal(provider, model)];
    if (this.#find(target).targets.length > 0) return this.#readNested(name, target, i);
    return this.#reportUnreachable(name, target, i);
  }

  #readNested(name: string, target: string, i: number): readonly Goal[] {
    const start = this.#open.indexOf(target);
    if (start < 0) return this.read(target);
    return this.#problem(name, `is a cycle: ${[...this.#open.slice(start), target].join(' → ')}`, i);
  }

  /** A known provider without a key is skipped with a warning; an unknown one is an error. */
  #reportUnreachable(name: string, target: string, i: number): readonly Goal[] {
    const { provider, model } = splitTarget(target);
    const settings = this.#world.source.options.providers;
    const row = findRow(provider);
    if (Object.hasOwn(settings, provider)) {
      if (settings[provider] === false) this.#warn(name, `${target} is skipped: provider "${provider}" is disabled`, i);
      return NONE; // problems with its settings are already reported
    }
    if (row) {
      const variables = row.local ? row.base_env : [...row.key_env, ...(row.token_env ?? [])];
      return this.#warn(
        name,
        `${target} is skipped: provider "${provider}" needs ${variables?.join(' or ')} in the environment`,
        i,
      );
    }
    if (model !== '' && provider !== '')
      return this.#problem(name, `unknown provider "${provider}"${didYouMean(provider, this.#listProviderIds())}`, i);
    const family = findFamily(target);
    const hint = family
      ? `; did you mean "${family}/${target}"?`
      : didYouMean(target, Object.keys(this.#world.source.options.models));
    return this.#problem(name, `"${target}" must be provider/model or another name of "models"${hint}`, i);
  }

  #listProviderIds(): Set<string> {
    return new Set([...this.#providers.keys(), ...PROVIDER_IDS]);
  }

  #problem(name: string, message: string, i?: number): readonly Goal[] {
    this.#world.problems.push(this.#createProblem(name, message, i));
    return NONE;
  }

  #warn(name: string, message: string, i: number): readonly Goal[] {
    this.#world.warnings.push(this.#createProblem(name, message, i));
    return NONE;
  }

  #createProblem(name: string, message: string, i?: number) {
    const { form, targets } = this.#find(name);
    const place = i === undefined ? [] : form === 'map' ? ['targets', i] : targets.length > 1 ? [i] : [];
    return this.#world.source.problem(['models', name, ...place], message, i === undefined ? 'key' : 'value');
  }
}

const NO_MODEL: ModelOptions = { form: 'text', strategy: 'order', targets: [] };

/** The goals of one target, and its weight. */
interface ResolvedTarget {
  readonly weight: number;
  readonly goals: readonly Goal[];
}

/** One target after the other: the tiers of the second begin after those of the first. */
function stackTiers(targets: readonly ResolvedTarget[]): Goal[] {
  const goals: Goal[] = [];
  for (const target of targets) {
    const base = (goals.at(-1)?.tier ?? -1) + 1;
    for (const goal of target.goals) goals.push({ ...goal, tier: base + goal.tier });
  }
  return goals;
}

/** All targets in one tier. The goals of another name divide its weight among them. */
function shareTier(targets: readonly ResolvedTarget[], sharing: Sharing): Goal[] {
  return targets.flatMap(({ weight, goals }) => {
    const sum = goals.reduce((total, goal) => total + goal.weight, 0);
    return goals.map((goal) => ({ ...goal, tier: 0, sharing, weight: (weight * goal.weight) / sum }));
  });
}

/** The result for a target that cannot be used. */
const NONE: readonly Goal[] = [];

/** Splits at the first slash: `groq/meta/llama` is the model meta/llama of groq. */
function splitTarget(target: string): { provider: string; model: string } {
  const slash = target.indexOf('/');
  return { provider: target.slice(0, Math.max(0, slash)), model: target.slice(slash + 1) };
}

const countStars = (text: string): number => text.split('*').length - 1;

function removeDuplicates(goals: readonly Goal[]): readonly Goal[] {
  const seen = new Map<string, Goal>();
  for (const goal of goals) {
    const name = `${goal.provider}/${goal.model}`;
    if (!seen.has(name)) seen.set(name, goal);
  }
  return [...seen.values()];
}

/** The models that the first matching pattern stands for, with the `*` filled in. */
export function matchPattern(patterns: readonly Pattern[], name: string): readonly Goal[] | undefined {
  for (const pattern of patterns) {
    if (!matches(pattern, name)) continue;
    // "openai/" matches "openai/*" with an empty model name, which is not a model.
    const goals = pattern.goals
      .map((goal) => ({ ...goal, model: fillPattern(goal.model, pattern, name) }))
      .filter(({ model }) => model !== '');
    if (goals.length > 0) return goals;
  }
  return undefined;
}

/**
 * Fills in the `*` of a target. A `*` that is a whole path segment stands for the whole segment of the name: with
 * "claude-*": "anthropic/*", claude-opus is anthropic/claude-opus. A `*` within a segment stands for the part that the
 * pattern leaves open: with "claude-*": "bedrock/claude-*-v1", claude-opus is bedrock/claude-opus-v1.
 */
function fillPattern(model: string, { prefix, suffix }: Pattern, name: string): string {
  const isWholeSegment = /(^|\/)\*(\/|$)/.test(model);
  const slash = suffix.indexOf('/');
  const start = isWholeSegment ? prefix.lastIndexOf('/') + 1 : prefix.length;
  const end = isWholeSegment ? name.length - (slash < 0 ? 0 : suffix.length - slash) : name.length - suffix.length;
  return model.replace('*', () => name.slice(start, end));
}
