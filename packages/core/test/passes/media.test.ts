import { describe, expect, test } from 'vitest';
import type { ContentBlock, ToolResultBlock } from '../../src/canonical/message.ts';
import { convertMedia } from '../../src/passes/content.ts';
import type { MediaRule } from '../../src/passes/rules.ts';
import { Refused, testRules } from './telling.ts';

const OWN = { extensions: { 'openai-chat': {} } };

describe('blocks of a user', () => {
  test.each<[name: string, block: ContentBlock, expected: ContentBlock[], told?: string[]]>([
    [
      'an image of data',
      { type: 'image', source: { data: 'A', media_type: 'image/png' } },
      [{ type: 'image', source: { data: 'A', media_type: 'image/png' } }],
    ],
    ['an image of nothing', { type: 'image', source: {} }, [], ['DROPPED image /messages/0/content/0']],
    [
      'P36 wav by its media type',
      { type: 'audio', source: { data: 'A', media_type: 'audio/x-wav' } },
      [{ type: 'audio', source: { data: 'A', media_type: 'audio/x-wav', format: 'wav' } }],
    ],
    [
      'P36 mp3 by its media type',
      { type: 'audio', source: { data: 'A', media_type: 'audio/mpeg' } },
      [{ type: 'audio', source: { data: 'A', media_type: 'audio/mpeg', format: 'mp3' } }],
    ],
    ['P36 ogg', { type: 'audio', source: { data: 'A', format: 'ogg' } }, [], ['DROPPED audio /messages/0/content/0']],
    ['audio by URL', { type: 'audio', source: { url: 'u', format: 'wav' } }, [], ['DROPPED audio /messages/0/content/0']],
    [
      'a format called __proto__',
      { type: 'audio', source: { data: 'A', format: '__proto__' } },
      [],
      ['DROPPED audio /messages/0/content/0'],
    ],
    ['a document by URL', { type: 'file', source: { file_url: 'u' } }, [], ['DROPPED file /messages/0/content/0']],
    [
      'a document of text',
      { type: 'file', source: { text: 'body' }, title: 'T', context: 'C' },
      [{ type: 'text', text: 'T\nC\n\nbody' }],
      ['APPROXIMATED file.text /messages/0/content/0'],
    ],
    [
      'a document of blocks',
      { type: 'file', source: { content: [{ type: 'text', text: 'x' }] } },
      [{ type: 'text', text: 'x' }],
      ['APPROXIMATED file.text /messages/0/content/0'],
    ],
    [
      'what a search found',
      {
        type: 'file',
        source: { content: [{ type: 'text', text: 'x' }] },
        title: 'T',
        search_result: { source: 'https://e.org' },
      },
      [
        { type: 'text', text: 'T\nhttps://e.org' },
        { type: 'text', text: 'x' },
      ],
      ['APPROXIMATED file.text /messages/0/content/0'],
    ],
    [
      'a file id of our own',
      { type: 'file', source: { file_id: 'file-1' }, ...OWN },
      [{ type: 'file', source: { file_id: 'file-1' }, ...OWN }],
    ],
  ])('%s', (_, block, expected, told = []) => {
    const rules = testRules();
    const request = convertMedia({ model: 'm', parameters: {}, messages: [{ role: 'user', content: [block] }] }, rules);
    expect(request.messages[0]?.content).toEqual(expected);
    expect(rules.told).toEqual(told);
  });

  test.each<[name: string, block: ContentBlock, media: Partial<MediaRule>, expected: 'kept' | 'dropped' | 'refused']>([
    ['P33 an image by URL', { type: 'image', source: { url: 'u' } }, { imageUrls: true }, 'kept'],
    ['an image by URL, where none is fetched', { type: 'image', source: { url: 'u' } }, { imageUrls: false }, 'dropped'],
    ['P34 a document by URL', { type: 'file', source: { file_url: 'u' } }, { fileUrls: true }, 'kept'],
    ['P35 a file id where there are none', { type: 'file', source: { file_id: 'f' }, ...OWN }, { fileIds: false }, 'refused'],
    ['P35 an image id', { type: 'image', source: { file_id: 'f' }, ...OWN }, { imageIds: true }, 'kept'],
    [
      'P35 a file id of the same vendor',
      { type: 'file', source: { file_id: 'f' }, extensions: { 'openai-responses': {} } },
      { idProtocols: ['openai-chat', 'openai-responses'] },
      'kept',
    ],
    ['P35 a file id of another', { type: 'file', source: { file_id: 'f' }, extensions: { gemini: {} } }, {}, 'refused'],
    ['a document of text where it is one', { type: 'file', source: { text: 't' }, title: 'T' }, { textFiles: true }, 'kept'],
  ])('%s', (_, block, over, expected) => {
    const rules = testRules({ media: { ...testRules().target.media, ...over } });
    const run = () => convertMedia({ model: 'm', parameters: {}, messages: [{ role: 'user', content: [block] }] }, rules);
    if (expected === 'refused') expect(run).toThrow(Refused);
    else expect(run().messages[0]?.content).toEqual(expected === 'kept' ? [block] : []);
    expect(rules.told).toHaveLength(expected === 'dropped' ? 1 : 0);
  });

  test.each<[name: string, block: ContentBlock]>([
    ['P35 a file id of others', { type: 'file', source: { file_id: 'file-1' } }],
    ['P35 an image known by an id', { type: 'image', source: { file_id: 'file-1' }, ...OWN }],
  ])('%s is refused', (_, block) => {
    const request = { model: 'm', parameters: {}, messages: [{ role: 'user' as const, content: [block] }] };
    expect(() => convertMedia(request, testRules())).toThrow(Refused);
  });
});

describe('results of tools', () => {
  const shot: ContentBlock = { type: 'image', source: { url: 'u' } };
  const result = (id: string, content: ToolResultBlock['content']): ToolResultBlock => ({
    type: 'tool_result',
    tool_use_id: id,
    content,
  });
  const request = (...content: ToolResultBlock[]) => ({
    model: 'm',
    parameters: {},
    messages: [{ role: 'tool' as const, content }],
  });

  test('P30: media of all results follow in one user message', () => {
    const rules = testRules();
    const source = request(result('a', [{ type: 'text', text: 'shot' }, shot]), result('b', 'plain'), result('c', [shot]));
    expect(convertMedia(source, rules).messages).toEqual([
      {
        role: 'tool',
        content: [result('a', [{ type: 'text', text: 'shot' }]), result('b', 'plain'), result('c', '(see attached image)')],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Attachment of tool call a:' },
          shot,
          { type: 'text', text: 'Attachment of tool call c:' },
          shot,
        ],
      },
    ]);
    expect(rules.told).toEqual([
      'APPROXIMATED tool_result.media /messages/0/content/0',
      'APPROXIMATED tool_result.media /messages/0/content/2',
    ]);
  });

  test('a file', () => {
    const file: ContentBlock = { type: 'file', source: { file_data: 'A' } };
    expect(convertMedia(request(result('a', [file])), testRules()).messages[0]?.content).toEqual([
      result('a', '(see attached file)'),
    ]);
  });

  test('P31: where results may hold media they do', () => {
    const { media: rule } = testRules().target;
    const source = request(result('a', [shot]));
    expect(convertMedia(source, testRules({ media: { ...rule, inToolResults: true } })).messages).toEqual(source.messages);
  });
});
