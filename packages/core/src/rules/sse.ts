import type { Rule } from './rule.ts';

/** Violations of the framing of event streams. */
export const SSE_RULES = {
  'sse/unterminated-event': {
    title: 'The last event has no blank line after it',
    explanation:
      'The body ends directly after the last field, or within its line. The EventSource standard discards such an event, and with it the finish reason or the sentinel.',
    remedy: 'Sluice keeps it when its data is complete JSON or [DONE].',
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
    title: 'The body ends in the middle of an event',
    explanation: 'The last event, or a JSON document outside SSE, is truncated: the connection dropped.',
    remedy:
      'Sluice discards the piece, so that a parse error does not hide the cause, and marks the stream as incomplete unless it had finished before.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'sse/error-field': {
    title: 'An error is sent as a separate SSE field',
    explanation:
      'The line is `error: {json}`. The standard ignores unknown fields, so clients see a stream that ends without an error.',
    remedy: 'Sluice reads it as an event named error with that data.',
    severity: 'error',
    providers: ['gpustack', 'llama.cpp'],
  },
  'sse/error-event-without-data': {
    title: 'An event named error has no data',
    explanation:
      'The event has `event: error` and no data line. The standard dispatches no event for it, so clients see a stream that ends without an error.',
    remedy: 'Sluice reads it as an error without details.',
    severity: 'error',
    providers: ['NestJS backends'],
  },
  'sse/bare-json': {
    title: 'JSON outside SSE framing',
    explanation:
      'A line begins with a JSON object or array instead of a field: a whole body, one object per line (NDJSON), the JSON array that Gemini streams without alt=sse, or an error written directly into the stream. The standard ignores such lines. Severity info for the JSON array of Gemini in a file; with --url the doctor requests alt=sse.',
    remedy: 'Sluice extracts the documents by their nesting and reads each as an event.',
    severity: 'error',
    providers: ['Gemini', 'LM Studio', 'lemonade', 'openrouter', 'servers that ignore stream:true'],
  },
  'sse/invalid-utf8': {
    title: 'Bytes that are not UTF-8',
    explanation:
      'An event contains bytes that are not UTF-8, often because a proxy split or decoded each network chunk separately.',
    remedy: 'Sluice replaces each with U+FFFD, as the standard requires, and continues.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'sse/missing-done': {
    title: 'The stream ends without [DONE]',
    explanation:
      'OpenAI Chat streams end with `data: [DONE]`; this one ends with its last chunk. Clients that wait for the sentinel report a dropped connection.',
    remedy: 'Sluice treats the stream as complete if it has a finish reason.',
    severity: 'info',
    providers: ['azure', 'openrouter', 'gpustack', 'groq'],
  },
  'sse/keepalive-as-data': {
    title: 'A keep-alive is sent as data',
    explanation:
      'The event is `data: : keepalive`, a comment wrapped in a data line. Most clients pass it to JSON.parse and fail.',
    remedy: 'Sluice skips it, since no JSON value begins with a colon.',
    severity: 'error',
    providers: ['Vertex AI partner models (grok-4.6)', 'Manifest gateway'],
  },
  'sse/empty-data': {
    title: 'An event with empty data',
    explanation:
      'The event has an empty or blank data line as a keep-alive. Clients that parse it fail with an unexpected end of JSON.',
    remedy: 'Sluice skips it.',
    severity: 'error',
    providers: ['proxies', 'copilot-api'],
  },
  'sse/malformed-json': {
    title: 'The data of an event is not JSON',
    explanation: 'The data of a finished event does not parse. Most clients throw and lose the rest of the stream.',
    remedy: 'Sluice skips the event, reports it and continues.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/trailing-garbage': {
    title: 'Extra characters follow the JSON of an event',
    explanation:
      'The data has a complete JSON object and more characters after it, such as a stray quote. Most clients throw and lose the rest of the stream.',
    remedy: 'Sluice reads the object and ignores the rest.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/json-body-instead-of-stream': {
    title: 'A JSON body instead of a stream',
    explanation:
      'The request was for a stream, but the response is one JSON document: a complete response or an error. Clients that only read events see an empty stream.',
    remedy: 'Sluice reads the document as a complete response or an error.',
    severity: 'error',
    providers: ['LM Studio', 'lemonade', 'proxies', 'servers that ignore stream:true'],
  },
  'sse/several-payloads': {
    title: 'Several payloads in one event',
    explanation: 'The server omits the blank lines between payloads, so that they form one event with several data lines.',
    remedy: 'Sluice reads each JSON line as a separate payload.',
    severity: 'error',
    providers: ['hand-rolled proxies'],
  },
  'sse/done-repeated': {
    title: '[DONE] is sent more than once',
    explanation: 'The sentinel ends the stream; a second one has no meaning.',
    remedy: 'Sluice ignores it.',
    severity: 'info',
    providers: ['compatibles'],
  },
  'sse/after-end': {
    title: 'Frames after the end of the message',
    explanation: 'The terminal event, the sentinel or an error is final; official clients stop reading there.',
    remedy: 'Sluice ignores what follows, including usage, so that all clients see the same message.',
    severity: 'warning',
    providers: ['odd proxies'],
  },
} as const;

SSE_RULES satisfies Record<`sse/${string}`, Rule>;
