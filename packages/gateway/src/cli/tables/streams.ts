/** The commands about streams: examine, convert, repair, record and replay them. */

import type { PROTOCOL_ALIASES } from '@sluice/core/engine';
import { defineIn, JSON_OPTION, PROTOCOL_IDS, PROTOCOL_LIST } from './options.ts';

const defineCommand = defineIn('streams');

const ALIASES = Object.keys({ openai: true, anthropic: true, responses: true } satisfies Record<
  keyof typeof PROTOCOL_ALIASES,
  true
>);

/** Every name that an option for a protocol accepts. */
const PROTOCOL_NAMES: readonly string[] = [...PROTOCOL_IDS, ...ALIASES];

const PROTOCOL_OPTION = {
  type: 'string',
  value: 'P',
  summary: `protocol of the inputs (${PROTOCOL_LIST}); detected from the bytes by default`,
  values: PROTOCOL_NAMES,
} as const;

/** How every command that reads streams names its inputs. */
const INPUTS_ABOUT =
  'A FILE is a recorded response body (SSE, NDJSON, a JSON array or a whole JSON body), a folder, a tape of "sluice record", or "-" for standard input, which is also read when no FILE is given. Other files in a folder are skipped. One bad input does not stop the others.';

/** By name, in the order of the help. */
export const STREAM_COMMANDS = {
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
    load: () => import('../commands/assemble.ts'),
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
    load: () => import('../commands/convert.ts'),
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
    load: () => import('../commands/doctor.ts'),
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
    load: () => import('../commands/repair.ts'),
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
    load: () => import('../commands/inspect.ts'),
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
    load: () => import('../commands/diff.ts'),
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
    load: () => import('../commands/shrink.ts'),
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
    load: () => import('../commands/prove.ts'),
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
    load: () => import('../commands/record.ts'),
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
    load: () => import('../commands/replay.ts'),
  }),
} as const;
