/** A filter as a condition of a query. Selects exactly the rows that `matchesFilter` passes. */
import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import type { Condition, Filter, Pattern, Quantity, StatusTest } from './filter.ts';
import { floorId, MAX_ID_LEAD_MS } from './ids.ts';
import { ABORTED_ENDINGS, ANSWERED_ENDING, type Outcome } from './rows.ts';
import type { Tables } from './schema.ts';

type Builder = ExpressionBuilder<Tables, 'exchanges'>;

/** The filter as one expression. */
export const compileFilter = (filter: Filter, eb: Builder): Expression<SqlBool> =>
  eb.and(filter.map((condition) => (condition.negated ? eb.not(compile(condition, eb)) : compile(condition, eb))));

/** Every expression is true or false and never null, so that its negation is the opposite. */
function compile(condition: Condition, eb: Builder): Expression<SqlBool> {
  switch (condition.kind) {
    case 'status':
      return eb.or(condition.anyOf.map((test) => compileStatus(test, eb)));
    case 'text':
      return eb.or(
        condition.columns.flatMap((column) =>
          condition.anyOf.map((pattern) => compileText(sql`coalesce(${sql.ref(column)}, '')`, pattern)),
        ),
      );
    case 'list':
      return eb.or(condition.anyOf.map((pattern) => compileElement(sql.ref(condition.column), pattern)));
    case 'number':
      return compileRange(compileQuantity(condition.quantity), condition.from, condition.to, eb);
    case 'time':
      return eb.and([
        ...(condition.from === null ? [] : [eb('ts', '>=', condition.from)]),
        ...(condition.to === null ? [] : [eb('ts', '<', condition.to)]),
      ]);
  }
}

function compileStatus(test: StatusTest, eb: Builder): Expression<SqlBool> {
  return 'outcome' in test ? compileOutcome(test.outcome, eb) : compileRange(sql.ref('http_status'), test.from, test.to, eb);
}

/** The same as `classify`. */
function compileOutcome(outcome: Outcome, eb: Builder): Expression<SqlBool> {
  const isLive = eb('state', '=', 'open');
  const isAborted = sql<SqlBool>`coalesce(ending, '') in (${sql.join(ABORTED_ENDINGS)})`;
  const isOk = sql<SqlBool>`(coalesce(ending, '') = ${ANSWERED_ENDING} and coalesce(http_status, 0) < 400)`;
  switch (outcome) {
    case 'live':
      return isLive;
    case 'aborted':
      return eb.and([eb.not(isLive), isAborted]);
    case 'ok':
      return eb.and([eb.not(isLive), isOk]);
    case 'error':
      return eb.and([eb.not(isLive), eb.not(isAborted), eb.not(isOk)]);
  }
}

const compileQuantity = (quantity: Quantity): Expression<unknown> =>
  quantity === 'tokens' ? sql`(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))` : sql.ref(quantity);

const compileRange = (value: Expression<unknown>, from: number | null, to: number | null, eb: Builder): Expression<SqlBool> =>
  eb.and([
    sql<SqlBool>`${value} is not null`,
    ...(from === null ? [] : [sql<SqlBool>`${value} >= ${from}`]),
    ...(to === null ? [] : [sql<SqlBool>`${value} <= ${to}`]),
  ]);

function compileText(value: Expression<unknown>, pattern: Pattern): Expression<SqlBool> {
  return pattern.length === 1
    ? sql<SqlBool>`lower(${value}) = ${pattern[0]}`
    : sql<SqlBool>`lower(${value}) like ${pattern.map(escapeLike).join('%')} escape '\\'`;
}

/** An element stands between quotes in the JSON text of its list; elements contain neither quotes nor commas. */
function compileElement(list: Expression<unknown>, pattern: Pattern): Expression<SqlBool> {
  const [first = '', ...rest] = pattern.map(escapeLike);
  if (rest.length === 0) return sql<SqlBool>`lower(${list}) like ${`%"${first}"%`} escape '\\'`;
  const middle = rest.length === 2 ? rest[0] : undefined;
  if (middle === '' || (first === '' && rest.join('') === '')) return sql<SqlBool>`${list} <> '[]'`;
  const text = middle !== undefined ? `%${middle}%` : first === '' ? `%${rest[0]}"%` : `%"${first}%`;
  return sql<SqlBool>`lower(${list}) like ${text} escape '\\'`;
}

const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&');

/**
 * The range of ids that can pass the filter's times. Ids rise with time, so the primary key finds the range; without it a query for
 * last year would read this year's rows first.
 */
export function findIdRange(filter: Filter): { from: string | null; to: string | null } {
  let from = Number.NEGATIVE_INFINITY;
  let to = Number.POSITIVE_INFINITY;
  for (const condition of filter) {
    if (condition.kind !== 'time' || condition.negated) continue;
    from = Math.max(from, condition.from ?? from);
    to = Math.min(to, condition.to ?? to);
  }
  return {
    from: Number.isFinite(from) ? floorId(from) : null,
    to: Number.isFinite(to) ? floorId(to + MAX_ID_LEAD_MS) : null,
  };
}
