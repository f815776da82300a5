/** Addresses of the documentation. */

/** A page of the documentation. */
export const findDocUrl = (page: string): string => `https://github.com/sluice-dev/sluice/blob/main/docs/${page}`;

/** The page of a rule. */
export const findRuleUrl = (rule: string): string => findDocUrl(`rules/${encodeURIComponent(rule.replace('/', '-'))}.md`);
