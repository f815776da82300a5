/** The table of commands. Running one loads its modules only; help, completion and docs/cli.md need this file alone. */

import type { ProtocolId } from '@sluice/core';
import type { PROTOCOL_ALIASES } from '@sluice/core/engine';
import type { Command, OptionTable } from './command.ts';

/** Infers the options of a row, and checks that the module of the command accepts them. */
const defineCommand = <const O extends OptionTable>(command: Command<O>): Command<O> => command;

/** Ids of the protocols. The core has them too, but loads 150 modules. */
const PROTOCOL_IDS = Object.keys({
  'openai-chat': true,
  'anthropic-messages': true,
  'openai-responses': true,
  gemini: true,
} satisfies Record<ProtocolId, true>);

const ALIASES = Object.keys({ openai: true, anthropic: true, responses: true } satisfies Record<
  keyof typeof PROTOCOL_ALIASES,
  true
>);

/** Every name that an option for a protocol accepts. */
const PROTOCOL_NAMES: readonly string[] = [...PROTOCOL_IDS, ...ALIASES];

const PROTOCOL_LIST = PROTOCOL_IDS.join(', ');

const PROTOCOL_OPTION = {
  type: 'string',
  value: 'P',
  summary: `protocol of the inputs (${PROTOCOL_LIST}); detected from the bytes by default`,
  values: PROTOCOL_NAMES,
} as const;

const JSON_OPTION = {
  type: 'boolean',
  summary: 'print one JSON object per line on stdout; everything else goes to stderr',
} as const;

/** For commands that belong to a gateway, which may not be named after this folder. */
const OWN_CONFIG_OPTION = {
  type: 'string',
  value: 'FILE',
  summary: 'configuration of the gateway; by default sluice.yaml in this folder',
  values: 'files',
} as const;

const CONFIG_OPTION = {
  type: 'string',
  value: 'FILE',
  summary: 'configuration file; by default sluice.yaml in this folder, or else the environment alone',
  values: 'files',
} as const;

const URL_OPTION = {
  type: 'string',
  value: 'URL',
  summary: 'address of the gateway; by default SLUICE_URL, that of the configuration or data folder, or http://127.0.0.1:4141',
} as const;

/** Options of the commands that set up a client. */
const TARGET_OPTIONS = {
  url: URL_OPTION,
  model: {
    type: 'string',
    value: 'M',
    summary: 'model to use; by default the one of the client, or demo/hello if it has none',
  },
  key: { type: 'string', value: 'K', summary: 'key for the gateway (by default SLUICE_KEY, or "any")' },
} as const;

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

/** How every command that reads streams names its inputs. */
const INPUTS_ABOUT =
  'A FILE is a recorded response body (SSE, NDJSON, a JSON array or a whole JSON body), a folder, a tape of "sluice record", or "-" for standard input, which is also read when no FILE is given. Other files in a folder are skipped. One bad input does not stop the others.';

/** All commands by name, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  serve: defineCommand({
    summary: 'Start the gateway: any client, any provider, on one port',
    usage: ['serve [--config FILE] [--host H] [--port N] [--data DIR] [--workers N] [--json]'],
    about:
      'Serves clients of all four protocols and forwards to the configured providers. Providers whose keys are in the environment work without a file; without any key, a built-in demo model responds. Reloads the configuration when its file changes, or on SIGHUP. SIGTERM and SIGINT let running streams finish; a second one stops at once. If stdin or stdout is a terminal at start, SIGHUP stops the gateway like SIGTERM. The log goes to stderr: one line per request on a terminal, JSON otherwise.',
    options: {
      config: CONFIG_OPTION,
      host: { type: 'string', value: 'H', summary: 'address to listen on (127.0.0.1); any other requires client keys' },
      port: { type: 'string', value: 'N', summary: 'port to listen on (4141)' },
      data: {
        type: 'string',
        value: 'DIR',
        summary: 'folder for usage data, or "memory"; by default that of the configuration, or else a folder of the user',
        values: 'folders',
      },
      workers: {
        type: 'string',
        value: 'N',
        summary: 'processes that share the port, or "auto" for one per core (1); more than one needs store',
      },
      json: {
        type: 'boolean',
        summary: 'print the address and the providers as one JSON object on stdout; the log on stderr is JSON, too',
      },
    },
    words: 'nothing',
    examples: [
      { line: 'sluice serve', what: 'Use the keys in the environment, or the demo model' },
      { line: 'sluice serve --config sluice.yaml --port 8080', what: 'Use a configuration file' },
      { line: 'sluice serve --workers auto', what: 'Use all cores, with PostgreSQL' },
    ],
    load: () => import('./commands/serve.ts'),
  }),
  run: defineCommand({
    summary: 'Start a client that uses the gateway, for this run only',
    usage: ['run CLIENT [--url URL | --config FILE] [--data DIR] [--model M] [--key K] [--pass-env NAMES] [-- ARGUMENTS…]'],
    about:
      'Starts CLIENT so that it uses the gateway, and passes on what follows "--". Uses the gateway of --url or SLUICE_URL, or else that of sluice.yaml in this folder, of the data folder or at the default address, if it runs and is the gateway of this configuration. Otherwise starts one on a free port that ends with the client. For a library, what follows "--" is the program to start. Signals go to the client, and its exit code is returned (127: no such program). A client with a settings file gets a temporary one. The client inherits the environment without keys: variables with keys of known providers (docs/config.md lists them), SLUICE_KEYS, SLUICE_KEY, and those that api_key, headers and auth.keys of the configuration refer to are removed. --pass-env keeps the named ones.',
    options: {
      ...TARGET_OPTIONS,
      config: { ...CONFIG_OPTION, summary: 'configuration of the gateway that is started for this run' },
      data: {
        type: 'string',
        value: 'DIR',
        summary: 'folder for usage data of the gateway that is started; by default its usage is kept in memory',
        values: 'folders',
      },
      'pass-env': {
        type: 'string',
        value: 'NAMES',
        summary: 'variables with keys to pass on nevertheless, separated by commas',
      },
    },
    words: 'clients',
    examples: [
      { line: 'sluice run claude', what: 'Claude Code with any model of the gateway' },
      { line: 'sluice run codex --model anthropic/claude-sonnet-5 -- exec "print hello"', what: 'Codex with a Claude model' },
      { line: 'sluice run openai -- node program.js', what: 'A program that uses an OpenAI SDK' },
    ],
    load: () => import('./commands/run.ts'),
  }),
  env: defineCommand({
    summary: 'Print the environment variables or settings that point a client at the gateway',
    usage: ['env CLIENT [--shell SHELL] [--url URL | --config FILE] [--model M] [--key K] [--file] [--json]'],
    about:
      'Prints lines for a shell to evaluate, with the content of settings files as comments (--file prints that content alone); for a library without variables, a few lines of code. Without CLIENT, lists all clients; "other" is for those that are not listed. Changes nothing. The address is that of --url or SLUICE_URL, or else that of sluice.yaml in this folder, of the data folder, or the default one. "sluice run CLIENT" does the same for one run.',
    options: {
      shell: {
        type: 'string',
        value: 'SHELL',
        summary: 'bash, zsh, fish or powershell; by default the one in $SHELL, or else bash (on Windows powershell)',
        values: ['bash', 'zsh', 'fish', 'powershell'],
      },
      ...TARGET_OPTIONS,
      config: OWN_CONFIG_OPTION,
      file: { type: 'boolean', summary: 'print the content of the settings file only' },
      json: { ...JSON_OPTION, summary: 'print one JSON object on stdout' },
    },
    words: 'clients',
    examples: [
      { line: 'eval "$(sluice env claude)"', what: 'Point Claude Code of this shell at the gateway' },
      { line: 'sluice env claude --shell fish | source', what: 'The same in fish' },
      { line: 'sluice env claude --shell powershell | Out-String | Invoke-Expression', what: 'The same in PowerShell' },
      { line: 'sluice env codex --model anthropic/claude-sonnet-5', what: 'Variables, and lines for config.toml' },
      { line: 'sluice env pi --model openai/gpt-5 --file > ~/.pi/agent/models.json', what: 'A whole settings file' },
      { line: 'sluice env opencode --url http://10.0.0.7:4141 --key "$KEY" --json', what: 'For a program' },
    ],
    load: () => import('./commands/env.ts'),
  }),
  init: defineCommand({
    summary: 'Write a commented sluice.yaml for the provider keys in the environment',
    usage: ['init [FILE] [--force] [--json]'],
    about:
      'Writes a configuration (sluice.yaml by default) with one provider for each key that it finds in the environment. The file refers to the variables and never contains a key. An existing file is kept unless --force is given.',
    options: {
      force: { type: 'boolean', summary: 'overwrite an existing file' },
      json: { ...JSON_OPTION, summary: 'print one JSON object on stdout' },
    },
    words: 'files',
    examples: [
      { line: 'sluice init', what: 'Write sluice.yaml, then follow the printed steps' },
      { line: 'sluice init gateway.yaml --force', what: 'Overwrite another file' },
    ],
    load: () => import('./commands/init.ts'),
  }),
  import: defineCommand({
    summary: 'Convert a configuration of LiteLLM, Portkey or claude-code-router to sluice.yaml',
    usage: ['import litellm|portkey|claude-code-router FILE [--out FILE] [--force] [--json]'],
    about:
      'Reads config.yaml of the LiteLLM proxy, a config of Portkey (JSON) or config.json of claude-code-router, and prints a configuration for Sluice. The report on stderr lists every setting that was not carried over or has another meaning, with its path and the reason. Keys are never copied: references stay references, and a key in clear text becomes a reference to a variable that you have to set. The result is checked as "sluice config check" does. An existing file is kept unless --force is given. The exit code is 2 when FILE cannot be read or nothing can be carried over.',
    options: {
      out: { type: 'string', value: 'FILE', summary: 'write to this file instead of stdout', values: 'files' },
      force: { type: 'boolean', summary: 'overwrite an existing file' },
      json: { ...JSON_OPTION, summary: 'print one JSON object with the configuration and the report on stdout' },
    },
    words: ['litellm', 'portkey', 'claude-code-router'],
    examples: [
      { line: 'sluice import litellm config.yaml --out sluice.yaml', what: 'Move from LiteLLM' },
      { line: 'sluice import claude-code-router ~/.claude-code-router/config.json', what: 'Print the result and the report' },
      { line: "sluice import portkey config.json --json | jq -r '.notes[].path'", what: 'For a program' },
    ],
    load: () => import('./commands/import.ts'),
  }),
  config: defineCommand({
    summary: 'Check a configuration, or store versions of one that several nodes share',
    usage: [
      'config check [FILE] [--json]',
      'config push FILE [--comment C] [--expect N] [--store URL] [--json]',
      'config history [--limit N] [--store URL] [--json]',
      'config show [VERSION] [--store URL] [--json]',
      'config rollback VERSION [--comment C] [--expect N] [--store URL] [--json]',
    ],
    about:
      '"check" reads the configuration as "sluice serve" does, sluice.yaml in this folder by default, and resolves its references to the environment. Prints problems and warnings with file, line, column and path; values that may be secret are masked. The other actions are for nodes with "config: store" (docs/scale.md): their configuration is in the PostgreSQL database. "push" stores FILE as its next version, which is in force at once; a file with problems or with a literal secret is refused. "rollback" stores the text of an earlier version as the next one. The database is --store, SLUICE_STORE, or that of sluice.yaml in this folder. The exit code is 1 when the configuration has problems, another version is in force than --expect, a version does not exist, or the database cannot be used; 2 when a file cannot be read.',
    options: {
      comment: { type: 'string', value: 'C', summary: 'push, rollback: why, for the history' },
      expect: { type: 'string', value: 'N', summary: 'push, rollback: refuse if another version is in force; 0 for none' },
      limit: { type: 'string', value: 'N', summary: 'history: versions to list (50)' },
      store: {
        type: 'string',
        value: 'URL',
        summary: 'PostgreSQL database; a reference such as env:NAME keeps its password off the command line',
      },
      json: JSON_OPTION,
    },
    words: ['check', 'push', 'history', 'show', 'rollback'],
    examples: [
      { line: 'sluice config check', what: 'Check sluice.yaml in this folder' },
      { line: 'sluice config check deploy/sluice.yaml --json', what: 'For a program' },
      { line: 'sluice config push shared.yaml --expect 3 --comment "add groq"', what: 'Replace version 3 on all nodes' },
      { line: 'sluice config show 2 > shared.yaml', what: 'Read an earlier version' },
      { line: 'sluice config rollback 2', what: 'Return to it' },
    ],
    load: () => import('./commands/config.ts'),
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
    load: () => import('./commands/prices.ts'),
  }),
  route: defineCommand({
    summary: 'Show which targets a model or a request would be sent to',
    usage: ['route [MODEL] [--request FILE] [--explain] [--json] [--config FILE] [--url URL [--key K]]'],
    about:
      'Applies the rules and models of the configuration to MODEL, or to the request in FILE, without sending it. Prints the targets in the order in which they are tried; --explain adds the rule, prices, shares and health. Health comes from the gateway of the configuration, or of --url or SLUICE_URL, if it runs. Prices are US dollars per million tokens, three parts input and one part output. The exit code is 1 when there is no target.',
    options: {
      request: {
        type: 'string',
        value: 'FILE',
        summary: 'body of a request as JSON, for rules about its content',
        values: 'files',
      },
      from: {
        type: 'string',
        value: 'P',
        summary: `protocol of the request (${PROTOCOL_LIST}); guessed from its fields by default`,
        values: PROTOCOL_IDS,
      },
      header: { type: 'string', value: 'H', summary: 'header of the request, "name: value", for rules about headers' },
      tag: { type: 'string', value: 'T', summary: 'tag of the client key, for rules about tags' },
      explain: { type: 'boolean', summary: 'add rule, shares, prices, health and reasons' },
      json: { type: 'boolean', summary: 'print one JSON object on stdout' },
      config: CONFIG_OPTION,
      url: URL_OPTION,
      key: { type: 'string', value: 'K', summary: 'key for the admin API (by default SLUICE_ADMIN_KEY)' },
    },
    words: 'nothing',
    examples: [
      { line: 'sluice route claude-sonnet-4-5 --explain', what: 'Targets of a model, and why' },
      { line: 'sluice route --request request.json --explain', what: 'Which rule a request meets' },
    ],
    load: () => import('./commands/route.ts'),
  }),
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
    load: () => import('./commands/usage.ts'),
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
    load: () => import('./commands/log.ts'),
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
    load: () => import('./commands/keys.ts'),
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
    load: () => import('./commands/audit.ts'),
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
    load: () => import('./commands/backup.ts'),
  }),
  restore: defineCommand({
    summary: 'Replace the usage data by a backup',
    usage: ['restore FILE [--data DIR | --config FILE]'],
    about:
      'Checks FILE, a copy made by "sluice backup", and puts it in the place of the database of the data folder. The replaced database is kept beside it. The exit code is 1 when a gateway uses the folder or FILE is damaged, 2 when FILE cannot be read.',
    options: { data: DATA_OPTION, config: OWN_CONFIG_OPTION },
    words: 'files',
    examples: [{ line: 'sluice restore usage-2026-11-17.db', what: 'After the gateway was stopped' }],
    load: () => import('./commands/restore.ts'),
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
    load: () => import('./commands/migrate.ts'),
  }),
  assemble: defineCommand({
    summary: 'Assemble a recorded stream into the complete message and list protocol violations',
    usage: ['assemble [--protocol P] [--json] [--split-think] FILE…'],
    about: `Prints the message of each recorded response: text, reasoning, tool calls, usage, and each violation of the protocol. ${INPUTS_ABOUT} The exit code is 1 when a response failed or ended early, 2 when an input cannot be read.`,
    options: {
      protocol: PROTOCOL_OPTION,
      json: JSON_OPTION,
      'split-think': { type: 'boolean', summary: 'move <think>…</think> out of the text (extras.think_split)' },
    },
    words: 'files',
    examples: [
      { line: 'sluice assemble response.sse', what: 'Print one message' },
      { line: 'sluice assemble --json *.sse | jq -r .text', what: 'Process many recordings' },
      { line: 'curl -sN https://… | sluice assemble --protocol anthropic', what: 'Read a response from a provider' },
      { line: 'sluice assemble --split-think local.sse', what: 'Separate the thoughts of a local model' },
    ],
    load: () => import('./commands/assemble.ts'),
  }),
  convert: defineCommand({
    summary: 'Convert a request, response, stream or error to another protocol and list what was lost',
    usage: [
      'convert stream|response [--from P] --to Q [--request FILE] [--model M] [--strict] [--json] [--out DIR] FILE…',
      'convert request|error --from P --to Q [--model M] [--strict] [--json] [--out DIR] FILE…',
    ],
    about:
      'Reads each FILE in protocol P and writes it in protocol Q. Losses are printed as notes on stderr, with JSON pointers into the input. Always decodes and encodes: with P = Q, violations are repaired. A FILE may be a folder, a tape of "sluice record", or "-" for standard input, which is also read when no FILE is given. One bad input does not stop the others. The exit code is 1 when an input could not be converted, is or ends in an error, ended early, or lost something under --strict; 2 when an input cannot be read.',
    options: {
      from: {
        type: 'string',
        value: 'P',
        summary: `protocol of the inputs (${PROTOCOL_LIST}); detected from the bytes of streams and responses by default`,
        values: PROTOCOL_NAMES,
      },
      to: { type: 'string', value: 'Q', summary: 'protocol to convert to; the same one repairs', values: PROTOCOL_NAMES },
      request: {
        type: 'string',
        value: 'FILE',
        summary: 'request of the response or stream: drops what the client did not request and restores tool names',
        values: 'files',
      },
      model: {
        type: 'string',
        value: 'M',
        summary: 'model: at the upstream for a request, as the client sees it for a response or stream',
      },
      strict: { type: 'boolean', summary: 'fail if anything would be lost' },
      json: JSON_OPTION,
      out: {
        type: 'string',
        value: 'DIR',
        summary: 'write each result to DIR/<name of FILE>, with <name>.notes.json beside it',
        values: 'folders',
      },
    },
    words: ['stream', 'response', 'request', 'error'],
    examples: [
      {
        line: 'sluice convert request --from openai --to anthropic --model claude-sonnet-5 request.json',
        what: 'See what the gateway would send',
      },
      { line: 'sluice convert stream --to openai recorded.sse', what: 'Read a recorded stream as another client would' },
      { line: 'curl -sN … | sluice convert stream --from openai --to openai -', what: 'Repair a stream' },
      {
        line: 'sluice convert response --from anthropic --to responses --request request.json response.json',
        what: 'Convert the response to a known request',
      },
      {
        line: 'sluice convert request --from anthropic --to openai --strict --json *.json',
        what: 'Find requests that would lose something',
      },
    ],
    load: () => import('./commands/convert.ts'),
  }),
  doctor: defineCommand({
    summary: 'Examine a stream or a live server, and list violations, the clients they break, and repairs',
    usage: [
      'doctor [--protocol P] [--whole] [--json|--html] [--fail-on S] [--junit FILE] [--profile FILE] FILE…',
      'doctor --url URL --model M [--protocol P] [--key-env NAME|--key-stdin] [--json|--html] [--fail-on S] [--junit FILE] [--profile FILE]',
      'doctor rules [RULE…] [--json]',
    ],
    about: `Examines recorded responses, or sends seven small requests to a server and examines its responses. Each finding has a rule, a severity (error: breaks official clients; warning: breaks some clients; info: unusual), a byte offset and an excerpt. The score is 100, minus 20 for each error, 5 for each warning and 1 for each info. ${INPUTS_ABOUT} The exit code is 1 when a response failed, ended early or has a finding of severity error (--fail-on changes the severity); 2 when an input cannot be read. With --url, it is 3 when nothing is wrong but a probe was inconclusive; the score is then an upper bound. With --url, HTTPS_PROXY, HTTP_PROXY and NO_PROXY are used.`,
    options: {
      url: { type: 'string', value: 'URL', summary: 'probe this server instead of reading files: its base URL' },
      model: { type: 'string', value: 'M', summary: 'model to probe' },
      protocol: {
        ...PROTOCOL_OPTION,
        summary: `protocol (${PROTOCOL_LIST}); detected from the bytes by default, with --url by trying each`,
      },
      'key-env': {
        type: 'string',
        value: 'NAME',
        summary: 'environment variable with the key; the key is sent to the URL only and never printed',
      },
      'key-stdin': { type: 'boolean', summary: 'read the key from standard input' },
      profile: {
        type: 'string',
        value: 'FILE',
        summary: 'write what was learned about the provider, for "profile:" in the configuration',
        values: 'files',
      },
      'fail-on': {
        type: 'string',
        value: 'S',
        summary: 'lowest severity that makes the exit code 1: error (default), warning or info',
        values: ['error', 'warning', 'info'],
      },
      junit: { type: 'string', value: 'FILE', summary: 'also write a JUnit report, for CI', values: 'files' },
      whole: { type: 'boolean', summary: 'the request was not for a stream: expect a whole JSON body' },
      json: JSON_OPTION,
      html: { type: 'boolean', summary: 'print one self-contained HTML page on stdout' },
    },
    words: 'files',
    examples: [
      { line: 'sluice doctor response.sse', what: 'Examine a recorded stream' },
      { line: 'curl -sN https://… | sluice doctor', what: 'Examine a response from a provider' },
      { line: 'sluice doctor --url http://127.0.0.1:11434/v1 --model llama3.2', what: 'Probe a local server' },
      {
        line: 'sluice doctor --url https://api.example.com/v1 --model m --key-env EXAMPLE_KEY --profile example.json',
        what: 'Probe a provider, and write a profile for the gateway',
      },
      {
        line: 'sluice doctor --url http://127.0.0.1:8000/v1 --model m --fail-on warning --junit doctor.xml',
        what: 'Test a server in CI',
      },
      { line: 'sluice doctor --html *.sse > report.html', what: 'Write a page for a bug report' },
      { line: 'sluice doctor rules chat/tool-index-reused', what: 'Explain a rule' },
    ],
    load: () => import('./commands/doctor.ts'),
  }),
  repair: defineCommand({
    summary: 'Rewrite a stream so that it conforms to its protocol; keep a conforming one byte for byte',
    usage: [
      'repair [--protocol P] [--all] [--quiet] [FILE]',
      'repair [--protocol P] [--all] [--quiet] [--json] [--out DIR] FILE…',
    ],
    about: `Reads a recorded stream to its end and writes it again in the same protocol, without the violations that break clients: ids and indexes are filled in, arguments joined, frames and envelopes completed. Repairs are listed on stderr. ${INPUTS_ABOUT} Several inputs need --out or --json. What the stream does not contain cannot be repaired: one that failed or ended early ends in an error of its protocol, and the exit code is 1. It is 2 when an input cannot be read.`,
    options: {
      protocol: PROTOCOL_OPTION,
      all: { type: 'boolean', summary: 'also repair what is merely unusual (severity info)' },
      quiet: { type: 'boolean', summary: 'do not list the repairs' },
      json: JSON_OPTION,
      out: { type: 'string', value: 'DIR', summary: 'write each stream to DIR/<name of FILE>', values: 'folders' },
    },
    words: 'files',
    examples: [
      { line: 'sluice repair broken.sse > good.sse', what: 'Make a stream that an SDK can read' },
      { line: 'curl -sN https://… | sluice repair | sluice assemble', what: 'Repair in a pipe' },
      { line: 'sluice repair --out repaired recordings/', what: 'Repair a folder' },
    ],
    load: () => import('./commands/repair.ts'),
  }),
  prove: defineCommand({
    summary: 'Prove that recordings are read and converted correctly, however they are split',
    usage: ['prove [--protocol P] [--json] [--out DIR] FILE…'],
    about: `Checks the properties that must hold for each recorded response: it is read the same in two pieces split anywhere, byte by byte and in pieces of any size; rewritten in its own protocol it has the same content; converted to each other protocol and back it keeps what both can express; everything written conforms to the grammar of its protocol; and the work grows linearly with its length. ${INPUTS_ABOUT} The exit code is 1 when a property does not hold or nothing was checked, 2 when an input cannot be read.`,
    options: {
      protocol: PROTOCOL_OPTION,
      json: JSON_OPTION,
      out: {
        type: 'string',
        value: 'DIR',
        summary: 'shrink each failure and write it to DIR as a case: the stream, and what it should be read as',
        values: 'folders',
      },
    },
    words: 'files',
    examples: [
      { line: 'sluice prove response.sse', what: 'Check one recording' },
      { line: 'sluice prove recordings/', what: 'Check a folder' },
      { line: 'sluice prove --out cases recordings/', what: 'Write the smallest stream that shows each failure' },
      { line: 'sluice prove --json *.sse | jq -c .failures[]', what: 'For a program' },
    ],
    load: () => import('./commands/prove.ts'),
  }),
  diff: defineCommand({
    summary: 'Compare two streams, responses, folders or tapes by content',
    usage: ['diff [--protocol P] [--events] [--all] [--json] A B'],
    about:
      'Compares content, tool calls, stop reason, usage and error. The two may use different protocols and may be split into events differently. Ids, model names and times always differ and are compared with --all only. A and B are files, folders, tapes of "sluice record", or "-" for standard input. Those of two folders or tapes are paired by name, or in order if no name is shared. The exit code is 0 when the contents are equal, 1 when they differ, 2 when an input cannot be read.',
    options: {
      protocol: { ...PROTOCOL_OPTION, summary: `protocol of both (${PROTOCOL_LIST}); detected from the bytes by default` },
      events: { type: 'boolean', summary: 'compare event by event instead of the assembled messages' },
      all: {
        type: 'boolean',
        summary: 'also compare ids, model names, times, signatures and fields that only one protocol has',
      },
      json: JSON_OPTION,
    },
    words: 'files',
    examples: [
      { line: 'sluice diff before.sse after.sse', what: 'Compare two responses' },
      { line: 'sluice convert stream --to anthropic a.sse | sluice diff a.sse -', what: 'Check that a conversion loses nothing' },
      { line: 'sluice diff --json tapes-monday tapes-friday | jq -c "select(.same | not)"', what: 'Compare two tapes' },
      { line: 'sluice diff --events --all a.sse b.sse', what: 'Compare every event and field' },
    ],
    load: () => import('./commands/diff.ts'),
  }),
  inspect: defineCommand({
    summary: 'Show how the bytes of a stream became events and what a client receives',
    usage: ['inspect [--protocol P] [--to P] [--json|--html] FILE'],
    about:
      'Converts a recorded response again and follows every frame to its events and to the frames that a client receives for them. FILE is a captured exchange (a folder, or the JSON of the admin API), an exchange of a tape, a case of "sluice shrink", a response, or "-" for standard input. A capture is also compared: the bytes that are derived must be those that the client received. --html writes one page that works without a network: open it in a browser to move through the stream. It contains the whole exchange. The exit code is 1 when the bytes differ, 2 when the input cannot be read.',
    options: {
      protocol: PROTOCOL_OPTION,
      to: {
        ...PROTOCOL_OPTION,
        summary: `protocol of the client (${PROTOCOL_LIST}); by default that of the response, which shows what is repaired`,
      },
      json: JSON_OPTION,
      html: { type: 'boolean', summary: 'print a page for browsers, with all data in it' },
    },
    words: 'files',
    examples: [
      { line: 'sluice inspect response.sse', what: 'Count frames and events, and list what is wrong and where' },
      { line: 'sluice inspect --html --to anthropic response.sse > stream.html', what: 'Move through a conversion in a browser' },
      { line: 'sluice inspect --json captures/ID | jq ".comparison"', what: 'Check that a captured exchange can be derived' },
    ],
    load: () => import('./commands/inspect.ts'),
  }),
  shrink: defineCommand({
    summary: 'Shrink a stream to the smallest one that still shows a violation or still breaks a program',
    usage: ['shrink --until RULE|"COMMAND" [--protocol P] [--out DIR] [--seconds N] [--json] FILE'],
    about:
      'Removes events, lines, fields and text as long as the rest still shows the problem: a rule of "sluice doctor", or a command that exits with 0 while the problem is present. Text that does not matter is replaced, so that the result can be shared. FILE may be a folder, a tape of "sluice record", or "-" for standard input; the first response that shows the problem is used. Writes the stream (.sse), a case for fixtures/ (.jsonl; none for bytes that are not UTF-8) and a report (.md). With a rule, the result ends like the input and adds no other violations unless that would leave too much. The exit code is 1 when no response shows the problem, 2 when the input cannot be read.',
    options: {
      until: {
        type: 'string',
        value: 'RULE|COMMAND',
        summary: 'what the stream must still show: a rule, or a command that exits with 0 for it ({} is the file)',
      },
      protocol: PROTOCOL_OPTION,
      out: {
        type: 'string',
        value: 'DIR',
        summary: 'folder for the case, the stream and the report (shrunk)',
        values: 'folders',
      },
      seconds: { type: 'string', value: 'N', summary: 'time limit; the smallest stream found so far is the result (25)' },
      json: { ...JSON_OPTION, summary: 'print one JSON object on stdout; everything else goes to stderr' },
    },
    words: 'files',
    examples: [
      { line: 'sluice shrink --until chat/tool-index-missing response.sse', what: 'Find out what causes a finding' },
      { line: 'sluice shrink --until "! node parse.js {}" response.sse', what: 'Find out what breaks a parser' },
      { line: 'sluice shrink --until "python check.py {}" --seconds 120 tapes', what: 'Search a tape, with more time' },
      { line: 'cat shrunk/*.jsonl >> fixtures/cases-own.jsonl', what: 'Afterwards: keep the case as a test' },
    ],
    load: () => import('./commands/shrink.ts'),
  }),
  record: defineCommand({
    summary: 'Record exchanges through a proxy: requests, response bytes, read sizes and timing, without keys',
    usage: ['record --upstream URL [--port N] [--out DIR] [--json]'],
    about:
      'Forwards requests to one provider and passes its responses on byte for byte. Each exchange becomes a readable folder (docs/tapes.md): the request, the response, the sizes and times of the network reads, and how it ended. The client sends its own key; keys, cookies and identities of users are not recorded. HTTPS_PROXY, HTTP_PROXY and NO_PROXY are used for the provider. Listens on 127.0.0.1 only. SIGINT and SIGTERM wait for running exchanges; a second one stops at once.',
    options: {
      upstream: { type: 'string', value: 'URL', summary: 'provider to forward to' },
      port: { type: 'string', value: 'N', summary: 'port to listen on, on 127.0.0.1 (4142)' },
      out: { type: 'string', value: 'DIR', summary: 'tape to create or to add to (tapes)', values: 'folders' },
      json: JSON_OPTION,
    },
    words: 'nothing',
    examples: [
      {
        line: 'sluice record --upstream https://api.openai.com',
        what: 'Record; then point the client at http://127.0.0.1:4142/v1',
      },
      { line: 'sluice record --upstream http://127.0.0.1:11434 --out ollama', what: 'Record a local model server' },
      { line: 'OPENAI_BASE_URL=http://127.0.0.1:4142/v1 node app.js', what: 'Start an app that uses an OpenAI SDK' },
      { line: 'sluice replay tapes', what: 'Afterwards: get the same responses without the provider' },
    ],
    load: () => import('./commands/record.ts'),
  }),
  replay: defineCommand({
    summary: 'Serve recorded exchanges as a mock provider, in any of the four protocols, with faults on request',
    usage: ['replay [--port N] [--speed N] [--fault F] [--repair] [--strict] [--list] [--json] FILE', 'replay --faults [--json]'],
    about:
      'Serves a tape: a folder made by "sluice record", a folder of saved streams (*.sse), one saved stream, or "-" for one on standard input. A client of the recorded protocol gets the recorded bytes in the recorded reads; any other client gets them converted. The response is chosen by equal request, else by equal model, else in order. Faults are set for all requests by --fault, for one by the header "x-sluice-fault", or after the model name ("gpt-5!cut=300"). The header "x-sluice-exchange" chooses an exchange. Listens on 127.0.0.1 only. The exit code is 2 when the tape cannot be read.',
    options: {
      port: { type: 'string', value: 'N', summary: 'port to listen on, on 127.0.0.1 (4143)' },
      speed: { type: 'string', value: 'N', summary: '1 for the recorded timing, 10 for ten times faster; by default no delay' },
      fault: {
        type: 'string',
        value: 'F',
        summary: 'faults to inject: cut=300, status=429,times=2, sse/crlf … (--faults lists them)',
      },
      repair: { type: 'boolean', summary: 'repair responses for clients of the recorded protocol, too' },
      strict: { type: 'boolean', summary: 'respond only to requests or models that were recorded' },
      list: { type: 'boolean', summary: 'list the exchanges of the tape and exit' },
      faults: { type: 'boolean', summary: 'list the faults and exit' },
      json: JSON_OPTION,
    },
    words: 'files',
    examples: [
      { line: 'sluice replay tapes', what: 'Serve a tape; then point the client at http://127.0.0.1:4143' },
      { line: 'sluice replay --list tapes', what: 'List the exchanges' },
      { line: 'sluice replay --speed 1 tapes', what: 'Use the recorded timing' },
      { line: 'sluice replay --fault status=429,times=2 tapes', what: 'Test whether an app retries' },
      {
        line: 'sluice replay --fault chat/ids-blank,slow=20 response.sse',
        what: 'Serve one stream with the violations of another server',
      },
      {
        line: 'curl -H "x-sluice-fault: reset=500" http://127.0.0.1:4143/v1/chat/completions …',
        what: 'Inject a fault into one request',
      },
    ],
    load: () => import('./commands/replay.ts'),
  }),
  completion: defineCommand({
    summary: 'Print a completion script for bash, zsh or fish',
    usage: ['completion bash|zsh|fish'],
    about:
      'Prints a script that completes commands, options, protocols, clients and files. Evaluate it in the startup file of the shell.',
    options: {},
    words: ['bash', 'zsh', 'fish'],
    examples: [
      { line: 'eval "$(sluice completion bash)"', what: 'In ~/.bashrc' },
      { line: 'eval "$(sluice completion zsh)"', what: 'In ~/.zshrc, after compinit' },
      { line: 'sluice completion fish | source', what: 'In ~/.config/fish/config.fish' },
    ],
    load: async () => {
      const { createRun } = await import('./commands/completion.ts');
      return { run: createRun(COMMANDS) };
    },
  }),
};
