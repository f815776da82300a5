/** The commands about what the gateway has recorded: usage, exchanges, keys, prices, and copies of the data. */

import { CONFIG_OPTION, defineIn, JSON_OPTION, OWN_CONFIG_OPTION, URL_OPTION } from './options.ts';

const defineCommand = defineIn('usage');

/** Options of the commands that show usage: where to read it. */
const SOURCE_OPTIONS = {
  data: {
    type: 'string',
    value: 'DIR',
    summary: 'read this data folder instead of asking a gateway',
    values: 'folders',
  },
  url: URL_OPTION,
  config: OWN_CONFIG_OPTION,
  key: { type: 'string', value: 'K', summary: 'key for the admin API (by default SLUICE_ADMIN_KEY)' },
} as const;

const FIND_ABOUT =
  'The gateway is that of --url, or else of SLUICE_URL, of sluice.yaml in this folder, of the data folder, or the one at the default address. Unless it is named with --url or SLUICE_URL, it must be the gateway of this configuration.';

const SOURCE_ABOUT = `${FIND_ABOUT} Without it, or when its admin API cannot be used, the data itself is read; stderr names the source. A gateway that is named is never replaced by a folder.`;

const DATA_OPTION = {
  type: 'string',
  value: 'DIR',
  summary: 'data folder; by default SLUICE_DATA, that of sluice.yaml in this folder, or else a folder of the user',
  values: 'folders',
} as const;

/** By name, in the order of the help. */
export const USAGE_COMMANDS = {
  usage: defineCommand({
    summary: 'Show tokens and costs by model, key, provider, tag or day',
    usage: [
      'usage [--by GROUP] [--since T] [--until T] [--bucket B] [--json|--csv] [--data DIR | --config FILE | --url URL [--key K]]',
    ],
    about: `Sums completed requests: requests, errors, input, cached and output tokens, and cost. A cost without a known price is not counted as 0: "$1.23 + 4 unpriced". "~" marks sums with estimated or uncertain token counts. Hours and days are in UTC; --since is rounded down to the hour, --until up. On a terminal, bars compare the rows. ${SOURCE_ABOUT}`,
    options: {
      by: {
        type: 'string',
        value: 'GROUP',
        summary: 'model (default), key, provider, tag or day',
        values: ['key', 'model', 'provider', 'tag', 'day'],
      },
      since: { type: 'string', value: 'T', summary: 'start: 24h, 7d (default), 2026-11-01 or 2026-11-01T08:00Z' },
      until: { type: 'string', value: 'T', summary: 'end, in the same forms; by default now' },
      bucket: { type: 'string', value: 'B', summary: 'also split by hour or day', values: ['hour', 'day'] },
      json: JSON_OPTION,
      csv: { type: 'boolean', summary: 'print CSV (RFC 4180) on stdout' },
      ...SOURCE_OPTIONS,
    },
    words: 'nothing',
    examples: [
      { line: 'sluice usage', what: 'The last seven days by model' },
      { line: 'sluice usage --by day --since 30d', what: 'A month, day by day' },
      { line: 'sluice usage --by key --since 2026-11-01 --until 2026-12-01 --csv', what: 'A calendar month for a spreadsheet' },
      { line: 'sluice usage --by tag --bucket hour --since 24h --json', what: 'For a program' },
    ],
    load: () => import('../commands/usage.ts'),
  }),
  log: defineCommand({
    summary: 'List recorded exchanges, follow them, or show one with its attempts',
    usage: [
      'log [--follow] [--limit N] [--json] [--data DIR | --config FILE | --url URL [--key K]] [FILTER…]',
      'log [--json] [--data DIR | --config FILE | --url URL [--key K]] ID',
    ],
    about: `Prints one line per exchange, newest first: id, time in UTC, status, protocols of client and upstream (C Chat, A Anthropic, R Responses, G Gemini), model, input and output tokens, cost, duration and ending. Filters are status:error, model:gpt*, provider:, key:, tag:, rule:, note:, cost:>0.01, ms:>2000, since:2h and more (docs/store.md lists them); a leading "-" negates a term and needs "--" before it. An unknown term is an error. With the ID of an exchange or a request, or its last part as it is listed, shows that exchange: attempts with their timing, tokens, notes, and broken rules. The exit code is 1 when no exchange has the ID. ${SOURCE_ABOUT}`,
    options: {
      follow: { type: 'boolean', short: 'f', summary: 'continue with exchanges as they end; the last ones come first' },
      limit: { type: 'string', value: 'N', summary: 'exchanges to list (20; with --follow 10, at most 500)' },
      json: JSON_OPTION,
      ...SOURCE_OPTIONS,
    },
    words: 'nothing',
    examples: [
      { line: 'sluice log', what: 'The newest exchanges' },
      { line: 'sluice log status:error since:1h', what: 'What failed in the last hour' },
      { line: 'sluice log --follow "model:gpt*" "ms:>2000"', what: 'Slow ones as they end' },
      { line: 'sluice log -- -tag:test provider:groq', what: 'Without a tag' },
      { line: 'sluice log b2f5c01d9a37', what: 'One exchange in detail' },
      { line: 'sluice log --json --limit 100000 | jq -r .cost_micros', what: 'For a program' },
    ],
    load: () => import('../commands/log.ts'),
  }),
  keys: defineCommand({
    summary: 'List client keys, create, change and revoke them',
    usage: [
      'keys create NAME [--models M]… [--budget B]… [--rpm N] [--tpm N] [--concurrency N] [--expires T] [--ip CIDR]… [--tag T]…',
      'keys list [--all]',
      'keys show NAME',
      'keys edit NAME [--name NEW] [the options of create; "none" removes a limit]',
      'keys rotate NAME [--overlap D]',
      'keys revoke NAME… [--now]',
    ],
    about: `A client key opens the gateway to one client, with its own limits. "create" and "rotate" print the secret on stdout, once: the gateway keeps only a digest of it. NAME may also be the public id of the key. ${FIND_ABOUT} Uses its admin API, or changes the data itself when it does not run; stderr names which. Where another gateway responds, nothing is changed. The exit code is 1 when no key has the name, 2 when a setting is not valid or the gateway refuses access. docs/keys.md is the guide.`,
    options: {
      models: {
        type: 'string',
        value: 'M',
        summary: 'allow these models only, with at most one *: gpt-*, openai/*',
        isList: true,
      },
      budget: { type: 'string', value: 'B', summary: 'most to spend: 20usd/month; also /day, /week, /total', isList: true },
      rpm: { type: 'string', value: 'N', summary: 'requests per minute' },
      tpm: { type: 'string', value: 'N', summary: 'tokens per minute: 100k' },
      concurrency: { type: 'string', value: 'N', summary: 'requests at the same time' },
      expires: { type: 'string', value: 'T', summary: 'end of the key: 90d from now, 2027-01-31 or 2027-01-31T08:00Z' },
      ip: { type: 'string', value: 'CIDR', summary: 'allow these addresses or ranges only: 10.0.0.0/8', isList: true },
      tag: { type: 'string', value: 'T', summary: 'tag of every request: team=a', isList: true },
      name: { type: 'string', value: 'NEW', summary: 'edit: another name' },
      overlap: {
        type: 'string',
        value: 'D',
        summary: 'rotate: how long the previous secret stays valid (24h); 0 ends it at once',
      },
      now: { type: 'boolean', summary: 'revoke: also end running requests of the key' },
      all: { type: 'boolean', summary: 'list: also revoked keys' },
      json: JSON_OPTION,
      ...SOURCE_OPTIONS,
      data: { ...SOURCE_OPTIONS.data, summary: 'use this data folder instead of a gateway' },
    },
    words: ['create', 'list', 'show', 'edit', 'rotate', 'revoke'],
    examples: [
      { line: 'sluice keys create alice --models "claude-*" --budget 20usd/month', what: 'A key with limits' },
      { line: 'sluice keys create ci --expires 90d --tag team=build --json', what: 'For a program' },
      { line: 'sluice keys rotate alice --overlap 24h', what: 'Another secret; both work for a day' },
      { line: 'sluice keys revoke alice --now', what: 'At once, running requests included' },
    ],
    load: () => import('../commands/keys.ts'),
  }),
  audit: defineCommand({
    summary: 'List changes of keys, logins, backups and reloads',
    usage: ['audit [--limit N] [--json] [--data DIR | --config FILE | --url URL [--key K]]'],
    about: `Prints the audit log, newest first: when, by which access (key, session, cli, config), and what was done. ${SOURCE_ABOUT}`,
    options: {
      limit: { type: 'string', value: 'N', summary: 'lines to list (50)' },
      json: JSON_OPTION,
      ...SOURCE_OPTIONS,
    },
    words: 'nothing',
    examples: [
      { line: 'sluice audit', what: 'The last changes' },
      { line: 'sluice audit --json --limit 1000', what: 'For a program' },
    ],
    load: () => import('../commands/audit.ts'),
  }),
  prices: defineCommand({
    summary: 'Show what models cost',
    usage: ['prices [MODEL] [--provider P] [--config FILE] [--json]'],
    about:
      'Shows prices in US dollars per million tokens: of MODEL at every provider that is known to have it, of provider/MODEL, or of a name in your configuration. Without MODEL, lists the providers. Prices come from a snapshot of genai-prices and from the sections "prices" and "default_price" of the configuration. They are estimates; what is not known is shown as unknown. The exit code is 1 when no price is known.',
    options: {
      provider: { type: 'string', value: 'P', summary: 'only this provider; without MODEL, all its models' },
      config: { ...CONFIG_OPTION, summary: 'configuration with your prices and names; by default sluice.yaml in this folder' },
      json: { type: 'boolean', summary: 'print one JSON object on stdout' },
    },
    words: 'nothing',
    examples: [
      { line: 'sluice prices gpt-5', what: 'One model, wherever it is offered' },
      { line: 'sluice prices groq/llama-3.3-70b-versatile', what: 'One model at one provider' },
      { line: 'sluice prices --provider anthropic', what: 'All models of a provider' },
      { line: 'sluice prices claude-sonnet-4-5 --json', what: 'For a program' },
    ],
    load: () => import('../commands/prices.ts'),
  }),
  backup: defineCommand({
    summary: 'Copy the usage data to a file, also while the gateway runs',
    usage: ['backup FILE [--data DIR | --config FILE]'],
    about:
      'Copies the database of the data folder to FILE, which must not exist. The file appears when it is complete. The exit code is 1 when the copy fails, 2 when FILE exists or the folder has no data.',
    options: { data: DATA_OPTION, config: OWN_CONFIG_OPTION },
    words: 'files',
    examples: [
      { line: 'sluice backup "usage-$(date +%F).db"', what: 'A copy of today' },
      { line: 'sluice backup /backups/usage.db --data /var/lib/sluice', what: 'Of another folder' },
    ],
    load: () => import('../commands/backup.ts'),
  }),
  restore: defineCommand({
    summary: 'Replace the usage data by a backup',
    usage: ['restore FILE [--data DIR | --config FILE]'],
    about:
      'Checks FILE, a copy made by "sluice backup", and puts it in the place of the database of the data folder. The replaced database is kept beside it. The exit code is 1 when a gateway uses the folder or FILE is damaged, 2 when FILE cannot be read.',
    options: { data: DATA_OPTION, config: OWN_CONFIG_OPTION },
    words: 'files',
    examples: [{ line: 'sluice restore usage-2026-11-17.db', what: 'After the gateway was stopped' }],
    load: () => import('../commands/restore.ts'),
  }),
  migrate: defineCommand({
    summary: 'Copy the data folder to a PostgreSQL database',
    usage: ['migrate --to URL [--data DIR | --config FILE]'],
    about:
      'Copies keys with their limits and budgets, the audit log, and the ledger with its roll-ups, and checks that both places have the same number of rows and the same sums. The gateway of the folder must be stopped; gateways of the database may run. Running it again continues, and copies nothing twice. The folder stays as it is. The exit code is 1 when a gateway uses the folder, the database cannot be used, or rows differ.',
    options: {
      to: {
        type: 'string',
        value: 'URL',
        summary:
          'address of the database, or a reference to it such as env:SLUICE_STORE, which keeps the password out of the list of processes',
      },
      data: DATA_OPTION,
      config: OWN_CONFIG_OPTION,
    },
    words: 'nothing',
    examples: [
      { line: 'sluice migrate --to env:SLUICE_STORE', what: 'After the gateway was stopped' },
      { line: 'sluice migrate --to postgres://sluice@db.internal/sluice --data /var/lib/sluice', what: 'Of another folder' },
    ],
    load: () => import('../commands/migrate.ts'),
  }),
} as const;
