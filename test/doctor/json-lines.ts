/** A kind of line that a command prints with `--json`. docs/cli.md is written from it, and a test holds the keys. */
export interface LineShape {
  /** When the line is printed: "per input", "with --list, per exchange" … */
  when: string;
  /** Every key, in order, with what it holds. A key that ends in "?" may be absent. */
  keys: Readonly<Record<string, string>>;
}

const FILE = 'the argument; below a folder the path, of a tape `TAPE/EXCHANGE`, `-` for standard input';
const PROTOCOL = 'id of the protocol, or null when it was not recognised';
const ERROR =
  'null, or `{code, message, canonical, …}`: the code of the wire or of the system, or one of `empty_stream`, `not_a_stream`, `stream_error`, `response_failed`, `too_large`; `canonical` is one of the [error codes](canonical.md)';
const VERSION = 'version of the format, 1; `doctor.schema.json` in the package is its schema';
const NOTES = 'losses and repairs: `[{code, path, feature, message}]`, path is a JSON pointer into the input';

const EXAMINATION = {
  protocol: PROTOCOL,
  model: 'name of the model, or null',
  complete: 'whether the response has its end',
  bytes: 'length of the body, or null when nothing was read',
  score: '0 to 100, or null when it is not known',
  findings:
    '`[{rule, severity, title, message, count, offset, excerpt, remedy, breaks}]`, severity is `error`, `warning` or `info`',
  traits: 'how the server frames its stream, or null',
  error: ERROR,
} as const;

/** An exchange of the ledger. */
const EXCHANGE = {
  id: 'id of the exchange',
  created_at: 'when it was admitted, in UTC by RFC 3339',
  settled_at: 'when it ended, or null while it runs',
  state: '`open`, `settled` or `crashed`',
  request_id: 'the id that the client got in `x-sluice-request-id`, or null',
  key_id: 'id of the client key, or null',
  key_name: 'name of the client key, or null',
  tags: 'tags of the request',
  session_id: 'session of the client, or null',
  client_protocol: 'protocol of the client, or null',
  client_name: 'name of the client, or null',
  user_agent: 'user agent of the client, or null',
  endpoint: 'kind of endpoint',
  model_requested: 'model as the client named it, or null',
  is_stream: 'whether a stream was requested',
  provider: 'provider whose response was sent, else that of the last attempt, or null',
  upstream_protocol: 'protocol of the provider, or null',
  model: "the provider's name of the model, or null",
  model_answered: 'model that the response names, or null',
  http_status: 'status that the client got, or null',
  ending: 'how it ended, such as `answered`, or null',
  error_code: 'one of the [error codes](canonical.md), or null',
  input_tokens: 'all prompt tokens, or null when nothing was reported',
  cache_read_tokens: 'part of input_tokens, or null',
  cache_creation_tokens: 'part of input_tokens, or null',
  output_tokens: 'all generated tokens, or null',
  reasoning_tokens: 'part of output_tokens, or null',
  input_audio_tokens: 'part of input_tokens, or null',
  output_audio_tokens: 'part of output_tokens, or null',
  provenance: '`reported`, `derived`, `estimated`, `uncertain`, or null: where the counts come from',
  cost_micros: 'millionths of a US dollar, as far as prices are known, or null',
  assumed_micros: 'what attempts without usage may have cost, which budgets count',
  price_version: 'version of the prices, or null',
  possibly_billed: 'whether the upstream may charge for more than was reported',
  queue_ms: 'time in the queue, or null',
  connect_ms: 'time until the connection to the last upstream, or null',
  first_byte_ms: 'time until its response, or null',
  first_token_ms: 'time until the first content, or null',
  total_ms: 'duration, or null',
  attempts: 'number of attempts',
  notes_count: 'number of notes',
  notes: 'the first ones: `[{code, path?, feature?, message?}]`',
  note_codes: 'codes of all notes',
  rules: 'rules that the upstream broke',
  route_rule: 'rule of the configuration that chose the model, or null',
  affinity: '`hit`, `miss` or `new`: whether the conversation stayed with its target; or null',
  cache_break: 'first block of the prompt that changed since the turn before, such as `tools[3].description changed`, or null',
  node_id: 'host of the gateway',
  boot_id: 'run of the gateway',
} as const;

/** A client key. */
const KEY = {
  id: 'public id, as in key_id of an exchange',
  name: 'name of the key',
  state: '`active`, `expired` or `revoked`',
  models: 'models that it allows; empty for all',
  budget: 'budgets such as `20usd/month`',
  rpm: 'requests per minute, or null',
  tpm: 'tokens per minute, or null',
  concurrency: 'requests at the same time, or null',
  expires: 'when it ends in UTC by RFC 3339, or null',
  ip: 'addresses and ranges that it may be used from; empty for all',
  tags: 'tags of its requests',
  created_at: 'when it was created',
  rotated_at: 'when it was rotated, or null',
  previous_valid_until: 'until when the previous secret is valid, or null',
  revoked_at: 'when it was revoked, or null',
  last_used_at: 'when it was last used, or null',
} as const;

const CONFIG_VERSION = {
  version: 'a number; the highest is in force',
  at: 'when it was stored, as ISO 8601 in UTC',
  author: 'user and host of the command',
  comment: 'text of `--comment`, or empty',
  digest: 'SHA-256 of its text, in hex',
  rollback_of: 'the version whose text it repeats, or null',
} as const;

/** The lines of all commands that have `--json`. */
export const LINES: Readonly<Record<string, readonly LineShape[]>> = {
  serve: [
    {
      when: 'once, when the gateway listens',
      keys: {
        url: 'address of the gateway',
        console: 'link that opens the console once',
        config: 'path of the configuration, or null',
        providers: 'ids of the providers, without the demo',
        models: 'names of the configuration',
        warnings: 'warnings about the configuration',
      },
    },
  ],
  env: [
    {
      when: 'once',
      keys: {
        client: 'id of the client',
        url: 'address of the gateway',
        key: 'key for the gateway',
        model: 'name of the model, or null for that of the client',
        env: 'variables to set: `{NAME: value}`',
        unset: 'variables to remove',
        args: 'arguments of the client',
        file: 'settings file, `{path, text}`, or null',
        snippet: 'code, or null',
        steps: 'what to enter in the settings of the client, line by line',
        notes: 'what to know before it works, and what the client cannot do',
      },
    },
  ],
  init: [
    {
      when: 'once',
      keys: { file: 'path of the written file', providers: '`[{id, variable}]`, variable is null for a local server' },
    },
  ],
  import: [
    {
      when: 'once',
      keys: {
        format: '`litellm`, `portkey` or `claude-code-router`',
        file: 'the imported file',
        out: 'the written file, or null',
        config: 'the text of the configuration',
        notes: '`[{path, kind, message}]`, path is that of the setting in the source, kind is `dropped`, `changed` or `secret`',
      },
    },
  ],
  config: [
    {
      when: 'per file',
      keys: {
        file: 'path of the configuration',
        valid: 'whether the gateway can use it',
        problems:
          '`[{severity, path, line, column, message}]`, severity is `error` or `warning`, path is a list of keys and positions, line and column start at 1 and may be null',
        providers: 'ids of the providers, without the demo; empty when it is not valid',
        models: 'names of the configuration; empty when it is not valid',
      },
    },
    {
      when: 'once, by push and rollback',
      keys: {
        version: 'the version in force',
        replaced: 'the version before, or null',
        digest: 'SHA-256 of its text, in hex',
        changed: 'false when the text was in force already',
      },
    },
    { when: 'per version, by history', keys: CONFIG_VERSION },
    { when: 'once, by show', keys: { ...CONFIG_VERSION, text: 'the document' } },
  ],
  prices: [
    {
      when: 'once, for a model or a provider',
      keys: {
        version: 'version of the prices',
        models:
          '`[{provider, model, source, listed_as, context_window, prices, tiers}]`, prices are US dollars per million tokens as text, or null when they are unknown',
      },
    },
    {
      when: 'once, without both',
      keys: { version: 'version of the prices', providers: '`[{id, models, source}]`, models is the number of priced ones' },
    },
  ],
  route: [
    {
      when: 'once',
      keys: {
        requested: 'requested model',
        rule: 'rule that matches, or null',
        model: 'model that is used',
        affinity_ms: 'how long a conversation stays with its target, or null',
        has_session: 'whether the request names its session',
        candidates:
          '`[{target, provider, model, protocol, tier, strategy, share, price, health, paused_ms, reason}]` in the order in which they are tried; health is `up`, `paused` or `unknown`',
      },
    },
  ],
  usage: [
    {
      when: 'per group, and per bucket with `--bucket`',
      keys: {
        by: 'what the rows are grouped by',
        group: 'the key, model, provider or tag; "" for requests without one, null by day',
        'key_name?': 'name of the key, with `--by key`',
        bucket_at: 'start of the bucket in UTC by RFC 3339, or null',
        requests: 'completed requests',
        errors: 'requests that failed; those that the client aborted are not errors',
        aborted: 'requests that the client aborted',
        attempts: 'requests to upstreams',
        unpriced: 'requests whose cost is not known, or only in part; cost_micros has what is known',
        uncertain: 'requests whose token counts are estimated or uncertain',
        input_tokens: 'all prompt tokens; the next two are part of it',
        cache_read_tokens: 'read from a cache',
        cache_creation_tokens: 'written to a cache',
        output_tokens: 'all generated tokens; reasoning is part of it',
        reasoning_tokens: 'reasoning',
        input_audio_tokens: 'part of input_tokens',
        output_audio_tokens: 'part of output_tokens',
        cost_micros: 'millionths of a US dollar',
        assumed_micros: 'what attempts without usage may have cost, which budgets count',
        total_ms: 'sum of the durations',
      },
    },
  ],
  keys: [
    { when: '`list`, `show`, `edit` and `revoke`: per key', keys: KEY },
    {
      when: '`create` and `rotate`: once',
      keys: {
        key: 'the key, with the keys above',
        secret: 'the secret, which is shown only here',
        is_persistent: 'whether the key survives a restart of the gateway; false for data in memory',
      },
    },
  ],
  audit: [
    {
      when: 'per entry',
      keys: {
        id: 'id of the entry, which rises with time',
        at: 'when, in UTC by RFC 3339',
        actor: '`key` (the admin key), `session` (the console), `local`, `cli`, `config` or `none`',
        action: 'what was done, such as `key.create`',
        object: 'id of the key, or ""',
        details: 'what was changed, without secrets',
      },
    },
  ],
  log: [
    { when: 'per exchange', keys: EXCHANGE },
    {
      when: 'once, for an ID',
      keys: {
        exchange: 'the exchange, with the keys above',
        attempts: 'its attempts: `[{number, created_at, state, provider, model, http_status, ending, total_ms, …}]`',
      },
    },
  ],
  assemble: [
    {
      when: 'per input',
      keys: {
        file: FILE,
        protocol: PROTOCOL,
        id: 'id of the response',
        model: 'name of the model',
        role: '`assistant`',
        text: 'text, "" when there is none',
        reasoning: 'reasoning, "" when there is none',
        refusal: 'refusal, or null',
        tool_calls: '`[{id, name, arguments, type, …}]`, arguments is text, type is `function` or `custom`',
        finish_reason: 'finish reason, or null when the stream ended early',
        wire_finish_reason: 'finish reason as the wire has it, or null',
        usage: 'token counts, or null',
        wire_usage: 'token counts as the wire has them, or null',
        complete: 'whether a finish reason or an end marker was read',
        invalid_arguments: 'positions in tool_calls whose arguments are not JSON',
        error: ERROR,
        extras: 'what else the response has, by name',
        diagnostics: 'violations: `[{rule, severity, message, offset, count}]`, severity is `error`, `warning` or `info`',
        notes: NOTES,
        message: 'the message in the [canonical model](canonical.md)',
        'completion?': 'openai-chat only: the whole `chat.completion`',
      },
    },
  ],
  convert: [
    {
      when: 'per input',
      keys: {
        file: FILE,
        body: 'the converted JSON body, a stream as text, or null',
        notes: NOTES,
        status: 'HTTP status of a converted error, or null',
        error: ERROR,
      },
    },
  ],
  inspect: [
    {
      when: 'once',
      keys: {
        name: 'name of the file or exchange',
        protocol: 'protocol of the upstream',
        client_protocol: 'protocol of the client',
        bytes: "bytes of the upstream's body",
        has_times: 'whether the times were recorded',
        end_ms: 'when the stream ended, in milliseconds',
        comparison:
          '`{is}` and more: whether the derived bytes are `equal` to those that the client received, `different` or `unknown`',
        reads: "network reads of the upstream's body: `[{at, ms}]`",
        frames: 'frames of the upstream with their byte ranges and `text`',
        events: '`[{frame, event}]`: events of the [canonical model](canonical.md), and the frame that each came from',
        client_frames: 'frames of the client with their byte ranges, events and `text`',
        heartbeats: '`[{ms, bytes}]`: heartbeats that the client received',
        findings: 'rules and notes, each with its frame',
        message: 'the message in the [canonical model](canonical.md)',
        complete: 'whether the message is complete',
        error: ERROR,
      },
    },
  ],
  doctor: [
    { when: 'per input', keys: { version: VERSION, file: FILE, ...EXAMINATION } },
    {
      when: 'with --url, per probe',
      keys: {
        version: VERSION,
        probe: 'name of the probe',
        title: 'what it requests',
        status: 'HTTP status, or null',
        outcome: '`shown`, `not-shown`, `refused` or `failed`',
        note: 'why, or ""',
        ...EXAMINATION,
      },
    },
    {
      when: 'of `doctor rules`, per rule',
      keys: {
        rule: 'id of the rule',
        title: 'the violation in a few words',
        explanation: 'what the wire does',
        remedy: 'what Sluice does about it',
        severity: '`error`, `warning` or `info`',
        providers: 'providers that are known for it',
        breaks: '`[{client, effect}]`',
      },
    },
  ],
  repair: [
    {
      when: 'per input',
      keys: {
        file: FILE,
        protocol: PROTOCOL,
        body: 'the repaired stream, or null when the input is not a stream',
        encoding: 'of body: `utf8`, or `base64` for a conforming stream with bytes that are not UTF-8',
        repaired: 'the findings that were repaired, as of `sluice doctor`',
        notes: NOTES,
        error: ERROR,
      },
    },
  ],
  prove: [
    {
      when: 'per input',
      keys: {
        file: FILE,
        protocol: PROTOCOL,
        bytes: 'length of the body',
        properties: '`[{property, tried, failed}]`',
        failures: '`[{property, id, message, case}]`, case is the path of the written case or null',
        notes: 'how often a conversion noted something: `{"CODE feature": count}`',
        error: ERROR,
      },
    },
  ],
  diff: [
    {
      when: 'per pair',
      keys: {
        a: 'name of the first, or null when it has no partner',
        b: 'name of the second, or null when it has no partner',
        same: 'whether the contents are equal',
        differences: '`[{path, a, b}]`, without the side that has nothing there',
      },
    },
  ],
  shrink: [
    {
      when: 'once',
      keys: {
        file: 'name of the response that was shrunk',
        until: '`{rule}` or `{command}`',
        bytes_before: 'length of the response',
        bytes_after: 'length of the result',
        tries: 'number of smaller streams that were tried',
        done: 'false when the time limit was reached',
        case: 'path of the case, or null for bytes that are not UTF-8',
        stream: 'path of the stream',
        report: 'path of the report',
      },
    },
  ],
  record: [
    {
      when: 'per exchange',
      keys: {
        exchange: 'name of the exchange, or null when it could not be saved',
        protocol: 'id of the protocol, or null for other endpoints',
        model: 'name of the model, or null',
        stream: 'whether a stream was requested',
        method: 'HTTP method',
        path: 'path of the request, without keys',
        status: 'HTTP status, or null without a response',
        bytes: 'length of the response',
        reads: 'number of network reads',
        end: '`complete`, `upstream_cut`, `client_gone`, `too_large` or `unreachable`',
        ms: 'duration in milliseconds',
        error: 'why it could not be saved, or null',
      },
    },
  ],
  replay: [
    {
      when: 'per request',
      keys: {
        method: 'HTTP method',
        path: 'path of the request',
        model: 'name of the model, or ""',
        status: 'HTTP status; 0 for a closed connection',
        exchange: 'name of the exchange, or null',
        why: 'why this exchange was chosen, or none was',
        faults: 'the faults as requested, or ""',
        skipped: 'faults that do not apply to the response',
      },
    },
    {
      when: 'with --list, per exchange',
      keys: {
        exchange: 'name of the exchange',
        protocol: 'id of the protocol, or null',
        model: 'name of the model',
        stream: 'whether it is a stream',
        method: 'HTTP method',
        path: 'path of the request',
        status: 'HTTP status, or null without a response',
        end: 'as of `sluice record`',
      },
    },
    {
      when: 'with --faults, per fault',
      keys: {
        fault: 'how to request it',
        title: 'what it does',
        short: 'a shorter name, or null',
        protocols: 'protocols that it applies to, or null for all',
      },
    },
  ],
};
