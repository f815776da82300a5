/** The commands of the gateway: start it, point clients at it, and configure it. */

import { CONFIG_OPTION, defineIn, JSON_OPTION, OWN_CONFIG_OPTION, PROTOCOL_IDS, PROTOCOL_LIST, URL_OPTION } from './options.ts';

const defineCommand = defineIn('gateway');

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

/** By name, in the order of the help. */
export const GATEWAY_COMMANDS = {
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
    load: () => import('../commands/serve.ts'),
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
    load: () => import('../commands/run.ts'),
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
    load: () => import('../commands/env.ts'),
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
    load: () => import('../commands/init.ts'),
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
    load: () => import('../commands/import.ts'),
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
    load: () => import('../commands/config.ts'),
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
    load: () => import('../commands/route.ts'),
  }),
} as const;
