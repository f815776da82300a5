import type { Rule } from './rule.ts';

/** Violations of the Gemini protocol. */
export const GEMINI_RULES = {
  'gemini/response-wrapper': {
    title: 'Every response is wrapped in {"response": …}',
    explanation:
      'Cloud Code wraps each GenerateContentResponse in an object with a trace id. A client that expects candidates at the top level finds none and shows an empty response.',
    remedy: 'Sluice reads the inner object and keeps the fields of the outer object.',
    severity: 'error',
    providers: ['Gemini Cloud Code', 'Antigravity'],
  },
  'gemini/snake-case': {
    title: 'Keys are spelled with underscores',
    explanation: 'proto3 JSON allows finish_reason and finishReason. Google sends the latter, and its SDKs read only that.',
    remedy: 'Sluice reads both.',
    severity: 'error',
    providers: ['proxies that print protobuf messages'],
  },
  'gemini/done-sentinel': {
    title: '[DONE] in a Gemini stream',
    explanation:
      'The sentinel belongs to OpenAI Chat; a Gemini stream ends with its body. The JavaScript and Java SDKs fail to parse the sentinel.',
    remedy: 'Sluice ignores it.',
    severity: 'error',
    providers: ['OpenAI-compatible proxies'],
  },
  'gemini/unknown-payload': {
    title: 'A payload is not a GenerateContentResponse',
    explanation:
      'The payload has no candidates, no promptFeedback, no model and no response id. It belongs to another endpoint or protocol.',
    remedy: 'Sluice skips the payload.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/malformed-part': {
    title: 'A candidate or part is not an object',
    explanation: 'parts is not a list, or one of its elements, or a candidate, is not a JSON object.',
    remedy: 'Sluice skips the element.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/unknown-part': {
    title: 'A part of an undocumented kind',
    explanation: 'The part has none of the known fields.',
    remedy: 'Sluice keeps it unchanged in an opaque block, which only Gemini clients receive.',
    severity: 'info',
    providers: [],
  },
  'gemini/parts-after-finish': {
    title: 'Parts follow a finishReason',
    explanation:
      'Older models send STOP in every chunk, and a turn in which Google runs tools has one after each round. Clients that stop at the first one lose the rest.',
    remedy: 'Sluice reads to the end of the body and uses the last reason.',
    severity: 'info',
    providers: ['Gemini 1.5', 'Gemini with mcpServers'],
  },
  'gemini/finish-missing': {
    title: 'The stream ends without a finishReason',
    explanation: 'At least one candidate has no finishReason, and the prompt was not blocked: the connection dropped.',
    remedy: 'Sluice returns what was read and marks the message as incomplete; it never invents a reason.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'gemini/finish-reason-number': {
    title: 'finishReason is a number',
    explanation:
      'The number of the protobuf enum is sent instead of its name. Google sends both forms; clients that compare names treat a filtered response as complete.',
    remedy: 'Sluice maps the number as Vertex AI does.',
    severity: 'info',
    providers: ['Vertex AI through protobuf clients'],
  },
  'gemini/unknown-finish-reason': {
    title: 'An undocumented finishReason',
    explanation: 'The value is not one that Google documents.',
    remedy: 'Sluice treats it as a normal end (with calls, as tool_use) and keeps the value in stop_details.',
    severity: 'info',
    providers: [],
  },
  'gemini/duplicate-call-id': {
    title: 'Two calls share one id',
    explanation: 'A second functionCall repeats the id of an earlier one, so results cannot be matched.',
    remedy: 'The later call gets a derived id.',
    severity: 'error',
    providers: ['bridges that derive ids from the tool name'],
  },
  'gemini/nameless-call': {
    title: 'A functionCall has no name',
    explanation: 'A client cannot run it.',
    remedy: 'Sluice keeps the part unchanged in an opaque block.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/stray-call-end': {
    title: 'An empty functionCall without a call to end',
    explanation: 'The marker that ends streamed arguments arrived while no call was open. Clients see a call without a name.',
    remedy: 'Sluice ignores it.',
    severity: 'error',
    providers: ['Vertex AI (streamFunctionCallArguments)'],
  },
  'gemini/args-not-object': {
    title: 'The args of a functionCall are not an object',
    explanation: 'args is a string, a list or a number.',
    remedy: 'Sluice uses a string verbatim as the arguments and writes anything else as JSON.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/nested-signature': {
    title: 'thoughtSignature is inside the functionCall',
    explanation:
      'It belongs on the part, next to the functionCall. Clients that read it there lose it, and Gemini 3 rejects the next turn.',
    remedy: 'Sluice reads both places.',
    severity: 'error',
    providers: ['proxies'],
  },
  'gemini/call-not-ended': {
    title: 'Streamed arguments have no end marker',
    explanation: 'Another call or the end of the turn arrived while willContinue was still true.',
    remedy: 'Sluice treats the arguments as complete when no string was open; otherwise it marks the call as incomplete.',
    severity: 'warning',
    providers: ['Vertex AI (streamFunctionCallArguments)'],
  },
  'gemini/bad-json-path': {
    title: 'A piece of streamed arguments has an invalid jsonPath',
    explanation:
      'The jsonPath cannot be parsed, passes through a value that is not an object or list, or would create a list with a huge gap.',
    remedy: 'Sluice marks the arguments as incomplete, so that clients do not run the call.',
    severity: 'error',
    providers: [],
  },
  'gemini/late-function-response': {
    title: 'A functionResponse without an open call',
    explanation: 'The model content has the result of a call that Google ran, but the call does not directly precede it.',
    remedy: 'Sluice keeps the result. A call that was already emitted keeps its kind and does not affect the stop reason.',
    severity: 'warning',
    providers: ['Gemini with mcpServers'],
  },
} as const;

GEMINI_RULES satisfies Record<`gemini/${string}`, Rule>;
