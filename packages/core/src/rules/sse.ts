import type { Rule } from './rule.ts';

/** Departures from the framing of event streams. */
export const SSE_RULES = {
  'sse/unterminated-event': {
    title: 'The last event has no blank line after it',
    explanation:
      'The body ends right after the last field, or in the line itself. The EventSource standard discards such an event, and with it the finish reason or the sentinel.',
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
    explanation: 'The last event, or a JSON document outside SSE, was cut before it was complete: the connection dropped.',
    remedy:
      'Sluice discards the piece, so that a parse error does not hide the real cause, and the stream counts as incomplete unless it had finished before.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'sse/error-field': {
    title: 'An error is sent as an SSE field of its own',
    explanation:
      'The line reads `error: {json}`. The standard knows no such field and ignores it, so clients see a stream that just ends.',
    remedy: 'Sluice reads it as an event named error with that data.',
    severity: 'error',
    providers: ['gpustack', 'llama.cpp'],
  },
  'sse/error-event-without-data': {
    title: 'An event named error has no data',
    explanation:
      'The block has `event: error` and no data line. The standard dispatches nothing for it, so clients see a stream that just ends.',
    remedy: 'Sluice reads it as an error without details.',
    severity: 'error',
    providers: ['NestJS backends'],
  },
  'sse/bare-json': {
    title: 'JSON outside SSE framing',
    explanation:
      'A line begins with a JSON object or array in place of a field: a whole body, one object a line (NDJSON), the JSON array that Gemini streams without alt=sse, or an error written into the stream as it is. The standard ignores such lines. An info for the JSON array of Gemini in a file; with --url the doctor has asked for alt=sse.',
    remedy: 'Sluice cuts the documents out by their nesting and reads each like an event.',
    severity: 'error',
    providers: ['Gemini', 'LM Studio', 'lemonade', 'openrouter', 'servers that ignore stream:true'],
  },
  'sse/invalid-utf8': {
    title: 'Bytes that are not UTF-8',
    explanation: 'An event contains bytes that are no UTF-8, often because a proxy cut or decoded each network chunk by itself.',
    remedy: 'As the standard asks, each becomes U+FFFD, and the event is read on.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'sse/missing-done': {
    title: 'The stream ends without [DONE]',
    explanation:
      'OpenAI Chat streams end with `data: [DONE]`; this one ended with its last chunk. Clients that wait for the sentinel report a dropped connection.',
    remedy: 'Sluice takes the stream as complete when a finish reason was seen.',
    severity: 'info',
    providers: ['azure', 'openrouter', 'gpustack', 'groq'],
  },
  'sse/keepalive-as-data': {
    title: 'A keep-alive is sent as data',
    explanation:
      'The event reads `data: : keepalive`: a comment that was wrapped into a data line. It reaches JSON.parse in most clients and ends the stream there.',
    remedy: 'Sluice skips it, since no JSON value begins with a colon.',
    severity: 'error',
    providers: ['Vertex AI partner models (grok-4.6)', 'Manifest gateway'],
  },
  'sse/empty-data': {
    title: 'An event with empty data',
    explanation:
      'The event has a data line with nothing, or only blanks, in it, as a keep-alive. Clients that parse it fail with an unexpected end of JSON.',
    remedy: 'Sluice skips it.',
    severity: 'error',
    providers: ['proxies', 'copilot-api'],
  },
  'sse/malformed-json': {
    title: 'The data of an event is not JSON',
    explanation: 'The data of a finished event does not parse. Most clients throw and lose the rest of the stream.',
    remedy: 'Sluice skips the event, names it, and reads on.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/trailing-garbage': {
    title: 'Something follows the JSON of an event',
    explanation:
      'The data holds a whole JSON object and more characters behind it, such as a stray quote. Most clients throw and lose the rest of the stream.',
    remedy: 'Sluice reads the object and leaves out what follows it.',
    severity: 'error',
    providers: ['proxies'],
  },
  'sse/json-body-instead-of-stream': {
    title: 'A JSON body in place of a stream',
    explanation:
      'The request asked for a stream and the answer is one JSON document: a whole reply, or an error. Clients that only read events see an empty stream.',
    remedy: 'Sluice reads the document as the reply or error that it is.',
    severity: 'error',
    providers: ['LM Studio', 'lemonade', 'proxies', 'servers that ignore stream:true'],
  },
  'sse/several-payloads': {
    title: 'Several payloads in one event',
    explanation:
      'The server separates its payloads by single line ends and forgets the blank lines, so that they are one event with several data lines.',
    remedy: 'Sluice reads each line that is JSON by itself.',
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
    explanation: 'The terminal event, the sentinel or an error is final, and official clients stop reading there.',
    remedy: 'Sluice ignores what follows, usage included, so that all clients see the same message.',
    severity: 'warning',
    providers: ['odd proxies'],
  },
} as const;

SSE_RULES satisfies Record<`sse/${string}`, Rule>;
