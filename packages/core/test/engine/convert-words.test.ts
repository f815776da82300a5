import { describe, expect, test } from 'vitest';
import { convertRequest, type ProtocolId } from '../../src/index.ts';

type Json = Record<string, unknown>;

interface Row {
  name: string;
  from: ProtocolId;
  to: ProtocolId;
  body: Json;
  provider?: string;
  model?: string;
  /** What of the converted request counts. */
  sends: Json;
  /** Code, path, and message of each note. */
  told?: string[];
}

const USER = { role: 'user', content: 'hi' };
const chat = (over: Json): Json => ({ model: 'm', max_tokens: 99, messages: [USER], ...over });
const responses = (over: Json): Json => ({ model: 'm', max_output_tokens: 99, input: 'hi', ...over });
const google = (over: Json): Json => ({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }], ...over });
const claude = (over: Json): Json => ({ model: 'm', max_tokens: 9000, messages: [USER], ...over });

/** OpenAI has no adaptive thinking. */
const leftToModel = (to: ProtocolId): string[] =>
  to === 'gemini' ? [] : ['APPROXIMATED /thinking/type adaptive thinking: left to the model'];

const THINKING: Row[] = [
  ...(['openai-chat', 'openai-responses', 'gemini'] as const).flatMap((to): Row[] => [
    {
      name: 'thinking.display "updates"',
      from: 'anthropic-messages',
      to,
      body: claude({ thinking: { type: 'adaptive', display: 'updates' } }),
      sends: {
        'openai-chat': { thinking: undefined },
        'openai-responses': { reasoning: { summary: 'auto' } },
        gemini: { generationConfig: { maxOutputTokens: 9000, thinkingConfig: { includeThoughts: true, thinkingBudget: -1 } } },
      }[to],
      told: [
        'APPROXIMATED /thinking/display display "updates" is specific to anthropic-messages; treated as "summarized"',
        ...leftToModel(to),
      ],
    },
    {
      name: 'a thinking.display without a canonical form',
      from: 'anthropic-messages',
      to,
      body: claude({ thinking: { type: 'adaptive', display: 'future' } }),
      sends: { thinking: undefined },
      told: ['DROPPED /thinking/display field "display" is specific to anthropic-messages; dropped', ...leftToModel(to)],
    },
    {
      name: 'thinking.type "between_tools"',
      from: 'anthropic-messages',
      to,
      body: claude({ thinking: { type: 'between_tools' } }),
      sends: { thinking: undefined },
      told: [
        'APPROXIMATED /thinking/type type "between_tools" is specific to anthropic-messages; treated as "adaptive"',
        ...leftToModel(to),
      ],
    },
  ]),
  {
    name: 'thinking.display "updates" is kept',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    model: 'claude-sonnet-4-5',
    body: claude({ thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } }),
    sends: { thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } },
  },
  {
    name: 'thinking.display "updates" is kept where a budget becomes an effort',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    model: 'claude-opus-5',
    body: claude({ thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } }),
    sends: { thinking: { type: 'adaptive', display: 'updates' }, output_config: { effort: 'medium' } },
    told: [
      'APPROXIMATED /thinking/budget_tokens a thinking budget is not supported by this model; 2000 tokens sent as effort "medium"',
    ],
  },
  {
    name: 'thinking.type "between_tools" is kept',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    model: 'claude-sonnet-5-5',
    body: claude({ thinking: { type: 'between_tools' } }),
    sends: { thinking: { type: 'between_tools' } },
  },
];

const SCHEMA = { type: 'object', properties: {} };

/** A request with one tool and a choice, in each protocol. */
const CHOOSING: Record<ProtocolId, (choice: unknown) => Json> = {
  'openai-chat': (tool_choice) =>
    chat({ tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA } }], tool_choice }),
  'openai-responses': (tool_choice) =>
    responses({ tools: [{ type: 'function', name: 'f', parameters: SCHEMA, strict: false }], tool_choice }),
  'anthropic-messages': (tool_choice) => claude({ tools: [{ name: 'f', input_schema: SCHEMA }], tool_choice }),
  gemini: (mode) =>
    google({
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      toolConfig: { functionCallingConfig: { mode } },
      generationConfig: { maxOutputTokens: 99 },
    }),
};

/** How each protocol says a choice. */
const CHOSEN: Record<ProtocolId, Record<'auto' | 'any' | 'validated', Json>> = {
  'openai-chat': {
    auto: { tool_choice: 'auto' },
    any: { tool_choice: 'required' },
    validated: { tool_choice: 'auto' },
  },
  'openai-responses': {
    auto: { tool_choice: 'auto' },
    any: { tool_choice: 'required' },
    validated: { tool_choice: 'auto' },
  },
  'anthropic-messages': {
    auto: { tool_choice: { type: 'auto' } },
    any: { tool_choice: { type: 'any' } },
    validated: { tool_choice: { type: 'auto' } },
  },
  gemini: {
    auto: { toolConfig: { functionCallingConfig: { mode: 'AUTO' } } },
    any: { toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
    validated: { toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } },
  },
};

const PROTOCOLS = Object.keys(CHOSEN) as ProtocolId[]; // the keys of a closed table

/** Choices without a canonical form: the word of each, and whether it is Gemini's VALIDATED. */
const WORDS: [from: ProtocolId, choice: unknown, word: string][] = [
  ['openai-chat', 'validated', 'validated'],
  ['openai-chat', 'maybe', 'maybe'],
  ['openai-chat', { type: 'future', x: 1 }, 'future'],
  ['openai-responses', 'validated', 'validated'],
  ['openai-responses', 'maybe', 'maybe'],
  ['anthropic-messages', { type: 'future', x: 1 }, 'future'],
  ['gemini', 'VALIDATED', 'validated'],
  ['gemini', 'FUTURE', 'FUTURE'],
];

const PLACE: Record<ProtocolId, string> = {
  'openai-chat': '/tool_choice',
  'openai-responses': '/tool_choice',
  'anthropic-messages': '/tool_choice',
  gemini: '/toolConfig/functionCallingConfig',
};

const UNKNOWN_CHOICES: Row[] = WORDS.flatMap(([from, choice, word]) =>
  PROTOCOLS.map((to): Row => {
    const body = CHOOSING[from](choice);
    const { tool_choice, toolConfig } = body;
    const row = { name: `tool choice ${JSON.stringify(choice)}`, from, to, body };
    if (from === to) return { ...row, sends: { tool_choice, toolConfig } };
    if (word === 'validated' && to === 'gemini') return { ...row, sends: CHOSEN[to].validated };
    const message = `tool choice "${word}" is not supported by the target; sent as "auto"`;
    return { ...row, sends: CHOSEN[to].auto, told: [`APPROXIMATED ${PLACE[from]} ${message}`] };
  }),
);

/** Objects that name a mode, and not a tool. */
const MODES: Row[] = (
  [
    ['openai-responses', { type: 'auto' }, 'auto'],
    ['openai-responses', { type: 'required' }, 'any'],
    ['openai-responses', { type: 'tool' }, 'any'],
    ['openai-chat', { type: 'tool' }, 'any'],
    ['openai-chat', { type: 'required' }, 'any'],
  ] as const
).flatMap(([from, choice, mode]) =>
  PROTOCOLS.filter((to) => to !== from).map(
    (to): Row => ({
      name: `tool choice ${JSON.stringify(choice)}`,
      from,
      to,
      body: CHOOSING[from](choice),
      sends: CHOSEN[to][mode],
    }),
  ),
);

const CHOICES: Row[] = [
  ...UNKNOWN_CHOICES,
  ...MODES,
  {
    name: 'tool choice {"type":"none"}',
    from: 'openai-responses',
    to: 'openai-chat',
    body: CHOOSING['openai-responses']({ type: 'none' }),
    sends: { tool_choice: 'none' },
  },
  {
    name: 'tool choice {"type":"tool","name":"f"}',
    from: 'openai-responses',
    to: 'openai-chat',
    body: CHOOSING['openai-responses']({ type: 'tool', name: 'f' }),
    sends: { tool_choice: { type: 'function', function: { name: 'f' } } },
  },
  ...(['auto', 'none', 'required', 'tool'] as const).map(
    (type): Row => ({
      name: `tool choice {"type":"${type}"} is kept`,
      from: 'openai-responses',
      to: 'openai-responses',
      body: CHOOSING['openai-responses']({ type }),
      sends: { tool_choice: { type } },
    }),
  ),
  {
    name: 'fields of a tool choice that only its protocol knows are kept',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    body: CHOOSING['anthropic-messages']({ type: 'auto', x: 1 }),
    sends: { tool_choice: { type: 'auto', x: 1 } },
  },
  {
    name: 'fields of a tool choice that only its protocol knows are dropped',
    from: 'anthropic-messages',
    to: 'openai-chat',
    body: CHOOSING['anthropic-messages']({ type: 'auto', x: 1 }),
    sends: { tool_choice: 'auto' },
    told: ['DROPPED /tool_choice/x field "x" is specific to anthropic-messages; dropped'],
  },
];

/** The test of the official SDK sends a developer message alone. */
const INSTRUCTIONS: Row[] = (['system', 'developer'] as const).flatMap((role) => {
  const row = {
    name: `a chat of one ${role} message`,
    from: 'openai-chat',
    body: chat({ messages: [{ role, content: 's' }] }),
  } as const;
  const told = ['APPROXIMATED /messages/0/content the conversation must start with a user message; inserted "(continued)"'];
  return [
    { ...row, to: 'openai-chat', sends: { messages: [{ role: 'system', content: 's' }] } },
    {
      ...row,
      to: 'openai-responses',
      sends: { instructions: undefined, input: [{ type: 'message', role, content: [{ type: 'input_text', text: 's' }] }] },
    },
    {
      ...row,
      to: 'anthropic-messages',
      sends: { system: 's', messages: [{ role: 'user', content: [{ type: 'text', text: '(continued)' }] }] },
      told,
    },
    {
      ...row,
      to: 'gemini',
      sends: {
        systemInstruction: { parts: [{ text: 's' }] },
        contents: [{ role: 'user', parts: [{ text: '(continued)' }] }],
      },
      told,
    },
  ];
});

const ALONE: Row[] = [
  ...INSTRUCTIONS,
  {
    name: 'instructions alone are kept',
    from: 'openai-responses',
    to: 'openai-responses',
    body: { model: 'm', instructions: 's', input: [] },
    sends: { instructions: 's', input: [] },
  },
  {
    name: 'instructions alone',
    from: 'openai-responses',
    to: 'gemini',
    body: { model: 'm', instructions: 's', input: [] },
    sends: { contents: [{ role: 'user', parts: [{ text: '(continued)' }] }] },
    told: ['APPROXIMATED /instructions the conversation must start with a user message; inserted "(continued)"'],
  },
];

const MARK = { type: 'ephemeral', ttl: '1h' };
const OPENROUTER = { provider: 'openrouter', model: 'anthropic/claude-opus-4.5' };
const MARKED = claude({
  cache_control: { type: 'ephemeral' },
  system: [{ type: 'text', text: 's', cache_control: MARK }],
  tools: [{ name: 'f', input_schema: SCHEMA, cache_control: MARK }],
  messages: [
    USER,
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'c', content: 'done', cache_control: { type: 'ephemeral' } }],
    },
  ],
});

const MARKS: Row[] = [
  {
    name: 'cache_control for Claude at OpenRouter',
    from: 'anthropic-messages',
    to: 'openai-chat',
    ...OPENROUTER,
    body: MARKED,
    sends: {
      cache_control: { type: 'ephemeral' },
      messages: [
        { role: 'system', content: [{ type: 'text', text: 's', cache_control: MARK }] },
        USER,
        {
          role: 'assistant',
          content: null,
          reasoning: '',
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 'done', cache_control: { type: 'ephemeral' } }] },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: SCHEMA }, cache_control: MARK }],
    },
  },
  {
    name: 'cache_control for other models at OpenRouter',
    from: 'anthropic-messages',
    to: 'openai-chat',
    provider: 'openrouter',
    model: 'openai/gpt-5',
    body: claude({ system: [{ type: 'text', text: 's', cache_control: MARK }] }),
    sends: { messages: [{ role: 'system', content: 's' }, USER] },
    told: ['DROPPED /system/0/cache_control cache breakpoints are not supported by the target; dropped'],
  },
  {
    name: 'cache_control on messages is kept where it stands',
    from: 'openai-chat',
    to: 'openai-chat',
    ...OPENROUTER,
    body: chat({ messages: [{ role: 'user', content: 'hi', cache_control: { type: 'ephemeral' } }] }),
    sends: { messages: [{ role: 'user', content: 'hi', cache_control: { type: 'ephemeral' } }] },
  },
];

const AUDIO = { type: 'input_audio', input_audio: { data: 'QUJD', format: 'wav' } };

const FOREIGN: Row[] = [
  {
    name: 'input_audio',
    from: 'openai-chat',
    to: 'openai-responses',
    body: chat({ messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, AUDIO] }] }),
    sends: { input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }] },
    told: ['DROPPED /messages/0/content/1 audio is not supported by the target; dropped'],
  },
  {
    name: 'input_audio is kept',
    from: 'openai-responses',
    to: 'openai-responses',
    body: responses({ input: [{ type: 'message', role: 'user', content: [AUDIO] }] }),
    sends: { input: [{ type: 'message', role: 'user', content: [AUDIO] }] },
  },
  ...(
    [
      ['anthropic-messages', 'openai-responses', ['direct', 'code_execution_20250825'], ['direct'], 'code_execution_20250825'],
      ['anthropic-messages', 'openai-responses', ['code_execution_20250825'], undefined, 'code_execution_20250825'],
      ['anthropic-messages', 'openai-responses', ['direct'], ['direct'], undefined],
      ['openai-responses', 'anthropic-messages', ['programmatic', 'direct'], ['direct'], 'programmatic'],
      ['openai-responses', 'openai-responses', ['programmatic'], ['programmatic'], undefined],
      ['anthropic-messages', 'anthropic-messages', ['code_execution_20250825'], ['code_execution_20250825'], undefined],
    ] as const
  ).map(([from, to, callers, left, lost]): Row => {
    const tool = { name: 'f', allowed_callers: [...callers] };
    const own = { type: 'function', ...tool, parameters: SCHEMA, strict: false };
    const kept = left && { allowed_callers: [...left] };
    return {
      name: `allowed_callers ${callers.join()}`,
      from,
      to,
      ...(to === 'anthropic-messages' && { provider: 'anthropic', model: 'claude-opus-5' }),
      body: from === 'openai-responses' ? responses({ tools: [own] }) : claude({ tools: [{ ...tool, input_schema: SCHEMA }] }),
      sends: {
        tools: [
          to === 'openai-responses'
            ? { type: 'function', name: 'f', parameters: SCHEMA, strict: false, ...kept }
            : { name: 'f', input_schema: SCHEMA, ...(from === to ? {} : { strict: false }), ...kept },
        ],
      },
      ...(lost && {
        told: [`DROPPED /tools/0/allowed_callers allowed callers ${lost} are not supported by the target; dropped`],
      }),
    };
  }),
];

/** Tiers of each protocol, and what becomes of them elsewhere: the word that is sent, or the note. */
const TIERS: Row[] = (
  [
    ['openai-chat', 'openai-responses', 'flex', 'flex'],
    [
      'openai-chat',
      'openai-responses',
      'on_demand',
      undefined,
      'DROPPED /service_tier field "service_tier" is specific to openai-chat; dropped',
    ],
    ['openai-chat', 'gemini', 'default', 'standard'],
    [
      'openai-chat',
      'gemini',
      'scale',
      undefined,
      'DROPPED /service_tier service tier "scale" is not supported by Gemini; dropped',
    ],
    [
      'openai-chat',
      'gemini',
      'on_demand',
      undefined,
      'DROPPED /service_tier field "service_tier" is specific to openai-chat; dropped',
    ],
    [
      'openai-chat',
      'anthropic-messages',
      'on_demand',
      undefined,
      'DROPPED /service_tier field "service_tier" is specific to openai-chat; dropped',
    ],
    ['openai-chat', 'openai-chat', 'on_demand', 'on_demand'],
    ['openai-chat', 'openai-chat', 'fast', 'fast'],
    ['openai-responses', 'openai-responses', 'future', 'future'],
    ['anthropic-messages', 'openai-responses', 'standard_only', 'default'],
    [
      'anthropic-messages',
      'openai-responses',
      'future',
      undefined,
      'DROPPED /service_tier field "service_tier" is specific to anthropic-messages; dropped',
    ],
    ['anthropic-messages', 'anthropic-messages', 'future', 'future'],
    ['gemini', 'openai-responses', 'FLEX', 'flex'],
    [
      'gemini',
      'openai-responses',
      'future',
      undefined,
      'DROPPED /serviceTier field "serviceTier" is specific to gemini; dropped',
    ],
    ['gemini', 'gemini', 'future', 'future'],
  ] as const
).map(([from, to, tier, sent, note]): Row => {
  const bodies: Record<ProtocolId, Json> = {
    'openai-chat': chat({ service_tier: tier }),
    'openai-responses': responses({ service_tier: tier }),
    'anthropic-messages': claude({ service_tier: tier }),
    gemini: google({ serviceTier: tier }),
  };
  return {
    name: `service tier ${tier}`,
    from,
    to,
    body: bodies[from],
    sends: { [to === 'gemini' ? 'serviceTier' : 'service_tier']: sent },
    ...(note && { told: [note] }),
  };
});

describe('what the target does not know is mapped with a note, and kept where the protocol is the same', () => {
  test.each([...THINKING, ...CHOICES, ...ALONE, ...MARKS, ...FOREIGN, ...TIERS])(
    '$name ($from to $to)',
    ({ from, to, body, provider, model, sends, told = [] }) => {
      const path = from === 'gemini' ? { path: '/v1beta/models/m:generateContent' } : {};
      const { body: sent, notes } = convertRequest(body, { from, to, provider, ...(model && { model }), ...path });
      expect(notes.map(({ code, path: place, message }) => `${code} ${place} ${message}`)).toEqual(told);
      expect(sent).toEqual({ ...(sent as Json), ...sends });
    },
  );
});
