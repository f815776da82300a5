import type { RuleFacts, RuleText } from './rule.ts';

/** Violations of the framing of event streams. */
export const SSE_TEXTS = {
  'sse/unterminated-event': {
    title: 'The last event has no blank line after it',
    remedy: 'Sluice keeps it when its data is complete JSON or [DONE].',
  },
  'sse/truncated-event': {
    title: 'The body ends in the middle of an event',
    remedy: 'Sluice discards the piece and marks the stream as incomplete, unless it had finished before.',
  },
  'sse/error-field': {
    title: 'An error is sent as a separate SSE field',
    remedy: 'Sluice reads it as an event named error with that data.',
  },
  'sse/error-event-without-data': {
    title: 'An event named error has no data',
    remedy: 'Sluice reads it as an error without details.',
  },
  'sse/bare-json': {
    title: 'JSON outside SSE framing',
    remedy: 'Sluice extracts the documents by their nesting and reads each as an event.',
  },
  'sse/invalid-utf8': {
    title: 'Bytes that are not UTF-8',
    remedy: 'Sluice replaces each with U+FFFD, as the standard requires, and continues.',
  },
  'sse/missing-done': {
    title: 'The stream ends without [DONE]',
    remedy: 'Sluice treats the stream as complete if it has a finish reason.',
  },
  'sse/keepalive-as-data': {
    title: 'A keep-alive is sent as data',
    remedy: 'Sluice skips it, since no JSON value begins with a colon.',
  },
  'sse/empty-data': {
    title: 'An event with empty data',
    remedy: 'Sluice skips it.',
  },
  'sse/malformed-json': {
    title: 'The data of an event is not JSON',
    remedy: 'Sluice skips the event, reports it and continues.',
  },
  'sse/trailing-garbage': {
    title: 'Extra characters follow the JSON of an event',
    remedy: 'Sluice reads the object and ignores the rest.',
  },
  'sse/json-body-instead-of-stream': {
    title: 'A JSON body instead of a stream',
    remedy: 'Sluice reads the document as a complete response or an error.',
  },
  'sse/several-payloads': {
    title: 'Several payloads in one event',
    remedy: 'Sluice reads each JSON line as a separate payload.',
  },
  'sse/done-repeated': {
    title: '[DONE] is sent more than once',
    remedy: 'Sluice ignores it.',
  },
  'sse/done-padded': {
    title: 'White space around [DONE]',
    remedy: 'Sluice reads it as [DONE].',
  },
  'sse/after-end': {
    title: 'Frames after the end of the message',
    remedy: 'Sluice ignores what follows, including usage, so that all clients see the same message.',
  },
} as const;

SSE_TEXTS satisfies Record<`sse/${string}`, RuleText>;

/** The facts about these rules, for the doctor and the pages. */
export const SSE_FACTS = {
  'sse/unterminated-event': {
    explanation:
      'The body ends directly after the last field, or within its line. The EventSource standard discards such an event, and with it the finish reason or the sentinel.',
    severity: 'error',
    providers: [
      'mistral',
      'anthropic-openai-compat',
      'Gemini alt=sse',
      'Code Assist',
      'gateways that close right after the last field',
    ],
  },
  'sse/truncated-event': {
    explanation: 'The last event, or a JSON document outside SSE, is truncated: the connection dropped.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'sse/error-field': {
    explanation:
      'The line is `error: {json}`. The standard ignores unknown fields, so clients see a stream that ends without an error.',
    severity: 'error',
    providers: ['gpustack', 'llama.cpp'],
  },
  'sse/error-event-without-data': {
    explanation:
      'The event has `event: error` and no data line. The standard dispatches no event for it, so clients see a stream that ends without an error.',
    severity: 'error',
    providers: ['NestJS backends'],
  },
  'sse/bare-json': {
    explanation:
      'A line begins with a JSON object or array instead of a field: a whole body, one object per line (NDJSON), the JSON array that Gemini streams without alt=sse, or an error written directly into the stream. The standard ignores such lines. Severity info for the JSON array of Gemini in a file; with --url the doctor requests alt=sse.',
    severity: 'error',
    providers: ['Gemini', 'LM Studio', 'lemonade', 'openrouter', 'servers that ignore stream:true'],
  },
  'sse/invalid-utf8': {
    explanation:
      'An event contains bytes that are not UTF-8, often because a proxy split or decoded each network chunk separately.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'sse/done-padded': {
    explanation:
      'The data of the last event is `[DONE]` with more white space around it. Clients that compare it exactly parse it as JSON and throw.',
    severity: 'error',
    providers: ['OpenAI-compatible gateways'],
  },
  'sse/missing-done': {
    explanation:
      'OpenAI Chat streams end with `data: [DONE]`; this one ends with its last chunk. Clients that wait for the sentinel report a dropped connection.',
    severity: 'info',
    providers: ['azure', 'openrouter', 'gpustack', 'groq'],
  },
  'sse/keepalive-as-data': {
    explanation:
      'The event is `data: : keepalive`, a comment wrapped in a data line. Most clients pass it to JSON.parse and fail.',
    severity: 'error',
    providers: ['Vertex AI partner models (grok-4.6)', 'Manifest gateway'],
  },
  'sse/empty-data': {
    explanation:
      'The event has an empty or blank data line as a keep-alive. Clients that parse it fail with an unexpected end of JSON.',
    severity: 'error',
    providers: ['proxies', 'copilot-api'],
  },
  'sse/malformed-json': {
    explanation: 'The data of a finished event does not parse. Most clients throw and lose the rest of the stream.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/trailing-garbage': {
    explanation:
      'The data has a complete JSON object and more characters after it, such as a stray quote. Most clients throw and lose the rest of the stream.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/json-body-instead-of-stream': {
    explanation:
      'The request was for a stream, but the response is one JSON document: a complete response or an error. Clients that only read events see an empty stream.',
    severity: 'error',
    providers: ['LM Studio', 'lemonade', 'proxies', 'servers that ignore stream:true'],
  },
  'sse/several-payloads': {
    explanation: 'The server omits the blank lines between payloads, so that they form one event with several data lines.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'sse/done-repeated': {
    explanation: 'The sentinel ends the stream; a second one has no meaning.',
    severity: 'info',
    providers: ['compatibles'],
  },
  'sse/after-end': {
    explanation: 'The terminal event, the sentinel or an error is final; official clients stop reading there.',
    severity: 'warning',
    providers: ['odd proxies'],
  },
} as const;

SSE_FACTS satisfies Record<keyof typeof SSE_TEXTS, RuleFacts>;
