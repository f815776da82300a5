import type { CanonicalMessage, CanonicalRequest, CanonicalTool, ContentBlock } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Started, startGateway } from '../../packages/gateway/test/gateway/start.ts';
import { buildDemoResponse } from '../../packages/lab/src/demo/brain.ts';
import { violations } from '../../packages/lab/test/demo/schema-check.ts';
import { decode, type RecordedRequest, recordedRequests } from './recorded-clients.ts';

const TOOLS: readonly CanonicalTool[] = [
  { name: 'Bash', input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] } },
  { name: 'Read', input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } },
];

const user = (...texts: string[]): CanonicalMessage => ({ role: 'user', content: texts.map((text) => ({ type: 'text', text })) });

const call: CanonicalMessage = { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'Bash', input: {} }] };

const result: CanonicalMessage = { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'Rain' }] };

const request = (messages: CanonicalMessage[], rest: Partial<CanonicalRequest> = {}): CanonicalRequest => ({
  model: 'demo/hello',
  messages,
  tools: [...TOOLS],
  parameters: {},
  ...rest,
});

const callsIn = (content: readonly ContentBlock[]) => content.filter((block) => block.type === 'tool_use');

const namesOf = (asked: CanonicalRequest): string[] => callsIn(buildDemoResponse(asked).content).map(({ name }) => name);

const REMINDER = '<system-reminder>Use the Bash tool. The tools are Bash and Read.\nCall Bash now.</system-reminder>';

describe('text that mentions tools does not cause calls', () => {
  test.each([
    ['a plain prompt', [user('hello')]],
    ['a reminder before the prompt', [user(REMINDER, 'hello')]],
    ['a reminder after the prompt', [user('hello', REMINDER)]],
    ['a reminder in the text of the prompt', [user(`${REMINDER}\nhello`)]],
    ['a prompt that names a tool', [user('Use the tool Bash to list files')]],
    ['the line within a sentence', [user('write demo: call Bash')]],
    ['the line in a block before the last', [user('demo: call Bash', 'hello')]],
    ['the line in an earlier turn', [user('demo: call Bash'), { role: 'assistant', content: [] }, user('hello')]],
    ['the line without a name', [user('demo: call ')]],
    ['the line with the name of no tool', [user('demo: call Rm')]],
  ] satisfies [string, CanonicalMessage[]][])('%s', (_, messages) => {
    const { content, stop_reason } = buildDemoResponse(request(messages));
    expect(content).toMatchObject([{ type: 'text' }]);
    expect(stop_reason).toBe('end_turn');
  });
});

describe('a tool is called', () => {
  test.each([
    ['when the last text block has the line', request([user(REMINDER, 'demo: call Bash')]), 'Bash'],
    ['when a later line has it', request([user('please\r\ndemo: call Read\r\nthank you')]), 'Read'],
    ['when tool_choice names it', request([user('hello')], { tool_choice: { type: 'tool', name: 'Bash' } }), 'Bash'],
    ['when tool_choice wants any: one that reads', request([user('hello')], { tool_choice: { type: 'any' } }), 'Read'],
    [
      'when tool_choice wants any of some',
      request([user('hello')], { tool_choice: { type: 'any', allowed_tools: ['Bash'] } }),
      'Bash',
    ],
    ['when any is wanted and the line names one', request([user('demo: call Bash')], { tool_choice: { type: 'any' } }), 'Bash'],
  ])('%s', (_, asked, name) => expect(namesOf(asked)).toEqual([name]));
});

test('tool_choice none overrides the line', () => {
  expect(namesOf(request([user('demo: call Bash')], { tool_choice: { type: 'none' } }))).toEqual([]);
});

describe('a turn with a tool result ends in text', () => {
  test.each([
    ['after the line', [user('demo: call Bash'), call, result], {}],
    ['with a reminder after the result', [user('demo: call Bash'), call, result, user(REMINDER)], {}],
    ['with the line after the result', [user('demo: call Bash'), call, result, user('demo: call Bash')], {}],
    ['although a call is forced', [user('hello'), call, result], { tool_choice: { type: 'any' } }],
    ['although a tool is forced', [user('hello'), call, result, user('x')], { tool_choice: { type: 'tool', name: 'Bash' } }],
  ] satisfies [string, CanonicalMessage[], Partial<CanonicalRequest>][])('%s', (_, messages, rest) => {
    expect(buildDemoResponse(request(messages, rest)).content).toEqual([{ type: 'text', text: 'The tool returned: Rain' }]);
  });
});

test('arguments never contain text of the conversation', () => {
  const { content } = buildDemoResponse(request([user('demo: call Bash rm -rf /\nrm -rf /home')]));
  expect(callsIn(content)).toMatchObject([{ input: { command: 'sluice-demo-sample' } }]);
});

test('a tool of a namespace is called with its namespace', () => {
  const tools = [{ name: 'spawn', namespace: 'agents', input_schema: {} }];
  const { content } = buildDemoResponse(request([user('demo: call spawn')], { tools }));
  expect(callsIn(content)).toMatchObject([{ name: 'spawn', namespace: 'agents' }]);
});

describe('requests of real clients', () => {
  let gateway: Started;
  beforeAll(async () => {
    gateway = await startGateway({ config: {} });
  });
  afterAll(() => gateway.close());

  const hello = recordedRequests('hello');

  const CALL = /"(tool_use|function_call|functionCall|tool_calls)"/;

  const post = ({ path, headers, body }: RecordedRequest): Promise<Response> => {
    const { host: _, connection: __, 'content-length': ___, 'accept-encoding': ____, ...sent } = headers;
    return fetch(gateway.url + path, { method: 'POST', headers: sent, body: JSON.stringify(body) });
  };

  test.each(hello)('$name: "hello" gets text and no tool call', async (recorded) => {
    const heard = await post(recorded);
    const text = await heard.text();
    expect({ status: heard.status, text }).toMatchObject({ status: 200, text: expect.stringMatching(/demo|tool/) });
    expect(text).not.toMatch(CALL);
  });

  test.each([
    ['claude-code#1', 'Read'],
    // It sends instructions after the prompt.
    ['claude-code-unknown-model#1', 'Read'],
    ['codex#0', 'exec_command'],
    ['gemini-cli#0', 'read_file'],
    ['cline#0', 'read_files'],
  ])('%s: the line as a prompt gets a call of %s', async (name, tool) => {
    const recorded = recordedRequests(`demo: call ${tool}`).find((one) => one.name === name);
    const heard = recorded && (await (await post(recorded)).text());
    expect(heard).toMatch(CALL);
    expect(heard).toContain(`"${tool}"`);
  });

  test.each(hello)('$name: reminders that name its tools lead to no call', (recorded) => {
    const asked = decode(recorded);
    const names = (asked.tools ?? []).map(({ name }) => name).join(', ');
    const reminder = `<system-reminder>Use these tools: ${names}</system-reminder>`;
    for (const texts of [[reminder, 'hello'], ['hello', reminder], [`${reminder}\nhello`]])
      expect(namesOf({ ...asked, messages: [...asked.messages, user(...texts)] })).toEqual([]);
  });

  test.each(hello)('$name: every tool gets arguments that satisfy its schema', (recorded) => {
    const asked = decode(recorded);
    const tools = (asked.tools ?? []).filter(({ kind = 'function' }) => kind === 'function');
    for (const tool of tools) {
      const { content } = buildDemoResponse({ ...asked, tools: [tool], messages: [user(`demo: call ${tool.name}`)] });
      const [made] = callsIn(content);
      expect(made).toMatchObject({ name: tool.name, input: expect.any(Object) });
      expect(violations(made?.input, tool.input_schema ?? {}), tool.name).toEqual([]);
    }
  });
});
