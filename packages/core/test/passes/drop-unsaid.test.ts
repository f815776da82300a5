import { describe, expect, test } from 'vitest';
import type { Citation, ContentBlock, FileBlock } from '../../src/canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import type { Capabilities } from '../../src/passes/rules.ts';
import { dropUnsupported } from '../../src/passes/unsupported.ts';
import { testRules } from './telling.ts';

const ALL: Capabilities = {
  names: true,
  titles: 'field',
  contexts: true,
  logprobs: true,
  citable: true,
  clips: true,
  detail: 'everywhere',
  validated: true,
  foreignCallers: /^foreign/,
  tools: ['strict', 'defer_loading', 'allowed_callers', 'output_schema', 'input_examples', 'eager_input_streaming'],
};
const NONE: Capabilities = {
  names: false,
  titles: 'text',
  contexts: false,
  logprobs: false,
  citable: false,
  clips: false,
  detail: 'nowhere',
  validated: false,
  foreignCallers: /^foreign/,
  tools: [],
};
const AT = '/messages/0/content/0';

const asked = (message: CanonicalMessage, over: Partial<CanonicalRequest> = {}): CanonicalRequest => ({
  model: 'm',
  parameters: {},
  messages: [message],
  ...over,
});

function run(request: CanonicalRequest, says: Capabilities) {
  const rules = testRules({ supports: says });
  return { request: dropUnsupported(request, rules), told: rules.told };
}

const cites = (origin: Citation['origin']): Citation => ({ kind: 'url', url: 'u', origin });
const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const pdf: FileBlock = { type: 'file', source: { file_data: 'A', media_type: 'application/pdf' } };

describe('blocks', () => {
  test.each<[name: string, block: ContentBlock, expected: ContentBlock[], told: string[], supports?: Partial<Capabilities>]>([
    [
      'citations in history',
      { type: 'text', text: 'x', citations: [cites('gemini'), cites('openai-chat')] },
      [{ type: 'text', text: 'x', citations: [cites('openai-chat')] }],
      [`DROPPED messages.citations ${AT}/citations`],
    ],
    [
      'image detail',
      { type: 'image', source: { url: 'u', detail: 'high' } },
      [{ type: 'image', source: { url: 'u' } }],
      [`DROPPED image.detail ${AT}/source/detail`],
    ],
    [
      'a detail that says nothing',
      { type: 'image', source: { url: 'u', detail: 'auto' } },
      [{ type: 'image', source: { url: 'u' } }],
      [],
    ],
    [
      'a detail in the words of the target',
      { type: 'image', source: { url: 'u', detail: 'high' }, extensions: { 'openai-chat': {} } },
      [{ type: 'image', source: { url: 'u', detail: 'high' }, extensions: { 'openai-chat': {} } }],
      [],
    ],
    [
      'title, context: a text in front',
      { ...pdf, title: 'T', context: 'C' },
      [text('T\nC'), pdf],
      [`APPROXIMATED file.title ${AT}/title`, `APPROXIMATED file.context ${AT}/context`],
    ],
    [
      'a title is the name of a file without one',
      { ...pdf, title: 'T' },
      [{ ...pdf, source: { ...pdf.source, filename: 'T' } }],
      [],
      { titles: 'filename' },
    ],
    [
      'a title beside a name',
      { ...pdf, title: 'T', source: { ...pdf.source, filename: 'f' } },
      [text('T'), { ...pdf, source: { ...pdf.source, filename: 'f' } }],
      [`APPROXIMATED file.title ${AT}/title`],
      { titles: 'filename' },
    ],
    [
      'a title of a document by URL',
      { type: 'file', source: { file_url: 'u' }, title: 'T' },
      [text('T'), { type: 'file', source: { file_url: 'u' } }],
      [`APPROXIMATED file.title ${AT}/title`],
      { titles: 'filename' },
    ],
    [
      'that a document may be cited',
      { ...pdf, citations_enabled: true },
      [pdf],
      [`DROPPED file.citations ${AT}/citations_enabled`],
    ],
    ['that it may not be', { ...pdf, citations_enabled: false }, [pdf], []],
    [
      'which stretch of a film',
      { type: 'file', source: { file_data: 'A', video: { start: '1s' } } },
      [{ type: 'file', source: { file_data: 'A' } }],
      [`DROPPED file.video ${AT}/source/video`],
    ],
  ])('%s', (_, block, expected, told, supports = {}) => {
    const request = asked({ role: 'user', content: [block] });
    const lossy = run(request, { ...NONE, ...supports });
    expect(lossy.request.messages[0]?.content).toEqual(expected);
    expect(lossy.told).toEqual(told);
  });

  test('in the results of tools', () => {
    const image: ContentBlock = { type: 'image', source: { data: 'A', detail: 'low' } };
    const request = asked({ role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'a', content: [image, pdf] }] });
    const at = `${AT}/content/0/source/detail`;
    expect(run(request, { ...ALL, detail: 'messages' }).told).toEqual([`DROPPED image.detail ${at}`]);
    expect(run(request, ALL)).toEqual({ request, told: [] });
  });
});

test.each<[name: string, role: CanonicalMessage['role']]>([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['system', 'system'],
])('participant name: of a %s', (_, role) => {
  const { request, told } = run(asked({ role, content: [text('x')], name: 'Ann' }), NONE);
  expect(request.messages).toEqual([{ role, content: [text('x')] }]);
  expect(told).toEqual(['DROPPED messages.name /messages/0/name']);
});

test('fields of tools, and citations of instructions', () => {
  const tool: CanonicalTool = { name: 'f', strict: true, defer_loading: false, output_schema: {}, input_examples: [] };
  const system = [{ type: 'text' as const, text: 's', citations: [cites('gemini')] }];
  const request = asked({ role: 'user', content: [text('x')] }, { tools: [tool], system });
  const { request: after, told } = run(request, { ...NONE, tools: ['output_schema'] });
  expect(after.tools).toEqual([{ name: 'f', output_schema: {} }]);
  expect(after.system).toEqual([{ type: 'text', text: 's' }]);
  expect(told).toEqual([
    'DROPPED tools.strict /tools/0/strict',
    'DROPPED tools.input_examples /tools/0/input_examples',
    'DROPPED messages.citations /system/0/citations',
  ]);
});

test('who knows all words loses nothing', () => {
  const request = asked(
    { role: 'user', name: 'Ann', content: [{ ...pdf, title: 'T', context: 'C', citations_enabled: true }] },
    { tools: [{ name: 'f', strict: true, output_schema: {} }] },
  );
  expect(run(request, ALL)).toEqual({ request, told: [] });
});
