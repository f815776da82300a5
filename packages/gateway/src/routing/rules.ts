/** Rules that send a request to another model, by its name, its headers, its key and what its body contains. */

import type { CanonicalRequest, ContentBlock, HeaderBag } from '@sluice/core';
import { estimateTokens } from '@sluice/core/engine';
import type { RuleConditions } from '../config/options.ts';
import type { Rule } from '../config/resolve.ts';
import { matches, splitPattern, type WildcardName } from '../providers/wildcard.ts';

/** The rules of a configuration. */
export class RuleTable {
  readonly #rules: readonly CompiledRule[];
  readonly #isProvider: (id: string) => boolean;

  constructor(rules: readonly Rule[], isProvider: (id: string) => boolean) {
    this.#rules = rules.map(compileRule);
    this.#isProvider = isProvider;
  }

  /** The first rule that a request meets. The body is decoded only if a rule depends on it, and only once. */
  find(request: RuleRequest): Rule | undefined {
    if (this.#rules.length === 0) return undefined;
    const facts = new RequestFacts(request);
    const isExplicit = this.#isProvider(request.model.slice(0, Math.max(0, request.model.indexOf('/'))));
    return this.#rules.find((compiled) => isMet(compiled, facts, isExplicit))?.rule;
  }
}

/** A request, as far as rules can see it. */
export interface RuleRequest {
  /** The requested model. */
  readonly model: string;
  readonly headers: HeaderBag;
  /** Tags of the client key. */
  readonly tags: readonly string[];
  /** Decodes the body; undefined when it is invalid. */
  readonly decode: () => CanonicalRequest | undefined;
}

interface CompiledRule {
  readonly rule: Rule;
  readonly models: readonly WildcardName[] | undefined;
  readonly headers: readonly (readonly [string, WildcardName])[];
  /** Conditions on the body, the cheap ones first. */
  readonly body: readonly ((facts: RequestFacts) => boolean)[];
}

function compileRule(rule: Rule): CompiledRule {
  const { model, header = {} } = rule.when;
  return {
    rule,
    models: model?.map(splitPattern),
    headers: Object.entries(header).map(([name, value]) => [name, splitPattern(value)] as const),
    body: listBodyConditions(rule.when),
  };
}

function listBodyConditions(when: RuleConditions): CompiledRule['body'] {
  const { input_tokens_above: tokens } = when;
  const flags = (['tools', 'thinking', 'web_search', 'images'] as const).flatMap((name) => {
    const wanted = when[name];
    return wanted === undefined ? [] : [(facts: RequestFacts) => facts.isReadable && facts[name] === wanted];
  });
  return tokens === undefined ? flags : [...flags, (facts) => facts.inputTokens > tokens];
}

/** A request that names its provider is meant for it, unless a rule is about the name. */
function isMet({ rule, models, headers, body }: CompiledRule, facts: RequestFacts, isExplicit: boolean): boolean {
  const { model, headers: sent, tags } = facts.request;
  const { background, tag } = rule.when;
  if (models ? !models.some((pattern) => matches(pattern, model)) : isExplicit) return false;
  if (background !== undefined && BACKGROUND_NAME.test(model) !== background) return false;
  if (tag && !tag.some((wanted) => tags.includes(wanted))) return false;
  if (!headers.every(([name, pattern]) => matches(pattern, sent[name] ?? ''))) return false;
  return body.every((condition) => condition(facts));
}

/** The model that Claude Code uses for titles and summaries. */
const BACKGROUND_NAME = /haiku/i;

/** What a body contains, computed when it is first needed. */
class RequestFacts {
  readonly request: RuleRequest;
  #decoded: { readonly request: CanonicalRequest | undefined } | undefined;
  #inputTokens: number | undefined;

  constructor(request: RuleRequest) {
    this.request = request;
  }

  get isReadable(): boolean {
    return this.#read() !== undefined;
  }

  get tools(): boolean {
    return (this.#read()?.tools?.length ?? 0) > 0;
  }

  get thinking(): boolean {
    const { thinking } = this.#read() ?? {};
    return thinking !== undefined && thinking.type !== 'disabled';
  }

  get web_search(): boolean {
    return this.#read()?.tools?.some(({ server }) => server?.type === 'web_search') ?? false;
  }

  get images(): boolean {
    return this.#read()?.messages.some(({ content }) => hasImage(content)) ?? false;
  }

  get inputTokens(): number {
    const request = this.#read();
    this.#inputTokens ??= request ? estimateTokens(request).input_tokens : 0;
    return this.#inputTokens;
  }

  #read(): CanonicalRequest | undefined {
    this.#decoded ??= { request: this.request.decode() };
    return this.#decoded.request;
  }
}

const hasImage = (blocks: readonly ContentBlock[]): boolean =>
  blocks.some(
    (block) =>
      block.type === 'image' || (block.type === 'tool_result' && typeof block.content !== 'string' && hasImage(block.content)),
  );
