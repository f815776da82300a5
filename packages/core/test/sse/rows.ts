import type { RuleId } from '../../src/doctor/rules.ts';
import type { SseFrame } from '../../src/sse/frame.ts';

export interface Row {
  name: string;
  input: string | Uint8Array;
  frames: SseFrame[];
  offsets?: number[];
  reports?: RuleId[];
}

const data = (...texts: string[]): SseFrame[] => texts.map((text) => ({ data: text }));
const bare = (...texts: string[]): SseFrame[] => texts.map((text) => ({ data: text, bare: true }));
const long = 'x'.repeat(2100);

/** After the parsing tests of web-platform-tests/eventsource (format-*.any.js). */
export const STANDARD: Row[] = [
  { name: 'empty body', input: '', frames: [] },
  { name: 'only line ends', input: '\n\r\r\n\n', frames: [] },
  { name: 'bom', input: '\ufeffdata:1\n\n\ufeffdata:2\n\ndata:3\n\n', frames: data('1', '3'), offsets: [3, 22] },
  { name: 'bom-2', input: '\ufeff\ufeffdata:1\n\ndata:2\n\ndata:3\n\n', frames: data('2', '3') },
  {
    name: 'half a bom is the beginning of a line',
    input: Uint8Array.of(0xef, 0xbb, 0x64, 0x61, 0x74, 0x61, 0x0a, 0x0a),
    frames: [],
  },
  { name: 'half a bom is all', input: Uint8Array.of(0xef, 0xbb), frames: [] },
  { name: 'bom in a value is text', input: 'data: \ufeffx\n\n', frames: data('\ufeffx') },
  {
    name: 'comments',
    input: `data:1\r:\0\n:\r\ndata:2\n:${long}\rdata:3\n:data:fail\r:${long}\ndata:4\n\n`,
    frames: data('1\n2\n3\n4'),
    offsets: [0],
  },
  { name: 'comment before the data belongs to the block', input: '\n: ping\ndata: x\n\n', frames: data('x'), offsets: [1] },
  {
    name: 'comment block dispatches nothing',
    input: 'id: 1\ndata: a\n\n: ping\n\ndata: b\n\n',
    frames: [{ data: 'a', id: '1' }, { data: 'b' }],
  },
  {
    name: 'data before final empty line',
    input: 'retry:1000\ndata:test1\n\nid:test\ndata:test2',
    frames: [{ data: 'test1', retry: 1000 }],
    reports: ['sse/truncated-event'],
  },
  { name: 'field data', input: 'data:\n\ndata\ndata\n\ndata:test\n\n', frames: data('', '\n', 'test'), offsets: [0, 7, 18] },
  { name: 'field event', input: 'event:test\ndata:x\n\ndata:y\n\n', frames: [{ event: 'test', data: 'x' }, { data: 'y' }] },
  { name: 'field event twice, the last wins', input: 'event:a\nevent:b\ndata:x\n\n', frames: [{ event: 'b', data: 'x' }] },
  {
    name: 'field event, names of one length',
    input: 'event:aa\ndata:1\n\nevent:ab\ndata:2\n\nevent:ab\ndata:3\n\n',
    frames: [
      { event: 'aa', data: '1' },
      { event: 'ab', data: '2' },
      { event: 'ab', data: '3' },
    ],
  },
  { name: 'field event empty', input: 'event: \ndata:data\n\n', frames: data('data') },
  { name: 'event without data dispatches nothing and is forgotten', input: 'event:ping\nid:7\n\ndata:x\n\n', frames: data('x') },
  {
    name: 'field id',
    input: 'id:1\r\ndata:x\n\ndata:y\n\nid\ndata:z\n\n',
    frames: [{ data: 'x', id: '1' }, { data: 'y' }, { data: 'z', id: '' }],
  },
  { name: 'field id with NUL', input: 'id:a\ndata:x\n\nid:b\0c\ndata:y\n\n', frames: [{ data: 'x', id: 'a' }, { data: 'y' }] },
  {
    name: 'field parsing',
    input: 'data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n',
    frames: data('\0\n 2\n1\n3\n\n4'),
  },
  {
    name: 'field names that only begin like ours',
    input: 'dat:1\ndataa:2\nda\nevents:3\nerrors:4\nide:5\nretryy:6\ndata:x\n\n',
    frames: data('x'),
  },
  { name: 'field retry', input: 'retry: 2000\ndata:x\n\ndata:y\n\n', frames: [{ data: 'x', retry: 2000 }, { data: 'y' }] },
  {
    name: 'field retry bogus',
    input: 'retry:3000\nretry:1000x\nretry:-1\nretry:1.5\ndata:x\n\n',
    frames: [{ data: 'x', retry: 3000 }],
  },
  { name: 'field retry empty', input: 'retry\nretry:\ndata:test\n\n', frames: data('test') },
  { name: 'field retry too big for a number', input: `retry:${'9'.repeat(400)}\ndata:x\n\n`, frames: data('x') },
  {
    name: 'field unknown',
    input: 'data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n',
    frames: data('test\n\ntest'),
  },
  { name: 'leading space', input: 'data:\ttest\rdata: \ndata:test\n\n', frames: data('\ttest\n\ntest') },
  { name: 'one space only', input: 'data:  two \n\n', frames: data(' two ') },
  { name: 'newlines', input: 'data:test\r\ndata\ndata:test\r\n\r', frames: data('test\n\ntest') },
  { name: 'CR only', input: 'data:a\r\rdata:b\rdata:c\r\r', frames: data('a', 'b\nc'), offsets: [0, 8] },
  { name: 'CR LF only', input: 'data:a\r\n\r\ndata:b\r\ndata:c\r\n\r\n', frames: data('a', 'b\nc'), offsets: [0, 10] },
  { name: 'LF CR is two ends', input: 'data:a\n\rdata:b\n\r', frames: data('a', 'b') },
  { name: 'null character', input: 'data:\0\n\n\n\n', frames: data('\0') },
  { name: 'blank line of spaces is a field, not an end', input: 'data:a\n  \t\ndata:b\n\n', frames: data('a\nb') },
  { name: 'utf-8', input: 'data:ok…\n\ndata: Grüße, 世界 👩‍👩‍👧 é\n\n', frames: data('ok…', 'Grüße, 世界 👩‍👩‍👧 é') },
  { name: 'utf-8 in event and id', input: 'event: é\nid: 世\ndata: x\n\n', frames: [{ event: 'é', data: 'x', id: '世' }] },
  {
    name: 'U+2028, U+2029 and U+0085 end no line',
    input: 'data: a\u2028b\u2029c\u0085d\n\n',
    frames: data('a\u2028b\u2029c\u0085d'),
  },
  { name: 'U+FFFD as such is fine', input: 'data: \ufffd\n\n', frames: data('\ufffd') },
  {
    name: 'invalid utf-8',
    input: Uint8Array.of(0x64, 0x61, 0x74, 0x61, 0x3a, 0x61, 0xff, 0xe4, 0xbd, 0x0a, 0x0a),
    frames: data('a\ufffd\ufffd'),
    reports: ['sse/invalid-utf8'],
  },
  { name: 'colon in the value', input: 'data: a: b\n\ndata::x\n\n', frames: data('a: b', ':x') },
  { name: 'keep-alive as data is handed on', input: 'data: : keepalive\n\n', frames: data(': keepalive') },
  {
    name: 'a line that only begins like a document is a field like any other',
    input: 'data\n{data\ndata: b\n[]\n[ \n{ \n\ndata: c\n{\n\n',
    frames: data('\nb', 'c'),
    offsets: [0, 29],
  },
  { name: 'blanks before a field, on the line after a brace', input: '{\n data: a\n\ndata: b\n\n', frames: data('b') },
  { name: 'what stands behind an empty array is no field', input: '[]data: a\n\n[\n]data: b\n\ndata: c\n\n', frames: data('c') },
];

export const LENIENT: Row[] = [
  { name: 'last event, one line end', input: 'data: {"a":1}\n', frames: data('{"a":1}'), reports: ['sse/unterminated-event'] },
  { name: 'last event, one CR', input: 'data: {"a":1}\r', frames: data('{"a":1}'), reports: ['sse/unterminated-event'] },
  {
    name: 'last event, no line end',
    input: 'data: a\n\ndata: {"a":1}',
    frames: data('a', '{"a":1}'),
    offsets: [0, 9],
    reports: ['sse/unterminated-event'],
  },
  {
    name: 'last event over two lines',
    input: 'data: {"a":\ndata: 1}',
    frames: data('{"a":\n1}'),
    reports: ['sse/unterminated-event'],
  },
  { name: 'last event is the sentinel', input: 'data: [DONE] ', frames: data('[DONE] '), reports: ['sse/unterminated-event'] },
  {
    name: 'last event keeps its name',
    input: 'event: e\nid: 1\ndata: {}',
    frames: [{ event: 'e', data: '{}', id: '1' }],
    reports: ['sse/unterminated-event'],
  },
  { name: 'last event cut', input: 'data: {"a":"b', frames: [], reports: ['sse/truncated-event'] },
  { name: 'last event cut between lines', input: 'data: {"a":\ndata:', frames: [], reports: ['sse/truncated-event'] },
  { name: 'last event cut after its name', input: 'event: delta\nda', frames: [], reports: ['sse/truncated-event'] },
  {
    name: 'last event cut in a character',
    input: Uint8Array.of(0x64, 0x61, 0x74, 0x61, 0x3a, 0xe4),
    frames: [],
    reports: ['sse/invalid-utf8', 'sse/truncated-event'],
  },
  { name: 'comment at the end', input: 'data: a\n\n: bye', frames: data('a') },
  {
    name: 'error field',
    input: 'data: a\n\nerror: {"m":1}\n\n',
    frames: [{ data: 'a' }, { event: 'error', data: '{"m":1}' }],
    offsets: [0, 9],
    reports: ['sse/error-field'],
  },
  {
    name: 'error field inside a block',
    input: 'data: a\nerror: {"m":1}\ndata: b\n\n',
    frames: [{ data: 'a' }, { event: 'error', data: '{"m":1}' }, { data: 'b' }],
    offsets: [0, 8, 23],
    reports: ['sse/error-field'],
  },
  {
    name: 'error field in an error event',
    input: 'event: error\nerror: no\n\n',
    frames: [{ event: 'error', data: 'no' }],
    reports: ['sse/error-field'],
  },
  {
    name: 'error field unterminated',
    input: 'error: {"m":1}',
    frames: [{ event: 'error', data: '{"m":1}' }],
    reports: ['sse/error-field', 'sse/unterminated-event'],
  },
  { name: 'error field cut', input: 'error: {"m":', frames: [], reports: ['sse/error-field', 'sse/truncated-event'] },
  {
    name: 'error event without data',
    input: 'data: a\n\nevent: error\nid: 1\n\n',
    frames: [{ data: 'a' }, { event: 'error', data: '', id: '1' }],
    offsets: [0, 9],
    reports: ['sse/error-event-without-data'],
  },
  {
    name: 'error event without data, unterminated',
    input: 'event: error\n',
    frames: [{ event: 'error', data: '' }],
    reports: ['sse/unterminated-event', 'sse/error-event-without-data'],
  },
  {
    name: 'error event with empty data is no departure',
    input: 'event: error\ndata\n\n',
    frames: [{ event: 'error', data: '' }],
  },
];

export const BARE: Row[] = [
  { name: 'whole body', input: '{"a":1}', frames: bare('{"a":1}'), offsets: [0], reports: ['sse/bare-json'] },
  { name: 'whole body after a bom', input: '\ufeff{"a":1}', frames: bare('{"a":1}'), offsets: [3], reports: ['sse/bare-json'] },
  {
    name: 'whole body over many lines',
    input: '{\r\n  "a": {"b": [1, {}]},\n\n"c": "}"\n}\n',
    frames: bare('{\r\n  "a": {"b": [1, {}]},\n\n"c": "}"\n}'),
    reports: ['sse/bare-json'],
  },
  {
    name: 'whitespace before the body',
    input: '\n         \n\n  \t{"a":1}\n',
    frames: bare('{"a":1}'),
    offsets: [15],
    reports: ['sse/bare-json'],
  },
  {
    name: 'brackets and quotes in strings',
    input: '{"a":"}\\"]{\\\\"}\n',
    frames: bare('{"a":"}\\"]{\\\\"}'),
    reports: ['sse/bare-json'],
  },
  { name: 'characters of many bytes', input: '{"a":"世👩é"}', frames: bare('{"a":"世👩é"}'), reports: ['sse/bare-json'] },
  {
    name: 'NDJSON',
    input: '{"a":1}\n{"b":2}\r\n\n{}\n',
    frames: bare('{"a":1}', '{"b":2}', '{}'),
    offsets: [0, 8, 18],
    reports: ['sse/bare-json'],
  },
  {
    name: 'documents without a line end',
    input: '{"a":1}{"b":2} {"c":3}',
    frames: bare('{"a":1}', '{"b":2}', '{"c":3}'),
    reports: ['sse/bare-json'],
  },
  {
    name: 'NDJSON with the sentinel',
    input: '{"a":1}\n[DONE]\n',
    frames: bare('{"a":1}', '[DONE]'),
    offsets: [0, 8],
    reports: ['sse/bare-json'],
  },
  {
    name: 'array',
    input: '[{"a":[1]}\n,\r\n{"b":"],"}\n]\n',
    frames: bare('{"a":[1]}', '{"b":"],"}'),
    offsets: [1, 14],
    reports: ['sse/bare-json'],
  },
  {
    name: 'array with spaces before it',
    input: ' [ {"a":1} , {"b":2} ] ',
    frames: bare('{"a":1}', '{"b":2}'),
    offsets: [3, 13],
    reports: ['sse/bare-json'],
  },
  {
    name: 'array of anything',
    input: '[1,"a,]\\"",null ,[{}],-2.5e3]',
    frames: bare('1', '"a,]\\""', 'null', '[{}]', '-2.5e3'),
    offsets: [1, 3, 11, 17, 22],
    reports: ['sse/bare-json'],
  },
  { name: 'empty array', input: '[]\n[ ]\ndata: x\n\n', frames: data('x') },
  {
    name: 'array cut in an element',
    input: '[{"a":1},{"b"',
    frames: bare('{"a":1}'),
    reports: ['sse/bare-json', 'sse/truncated-event'],
  },
  {
    name: 'array cut between elements',
    input: '[{"a":1},',
    frames: bare('{"a":1}'),
    reports: ['sse/bare-json', 'sse/truncated-event'],
  },
  {
    name: 'array closed by a brace',
    input: '[{"a":1}}\ndata: x\n\n',
    frames: [...bare('{"a":1}'), ...data('x')],
    reports: ['sse/bare-json'],
  },
  { name: 'body cut', input: '{"a":{"b":1}', frames: [], reports: ['sse/truncated-event'] },
  { name: 'body cut after the brace', input: '{', frames: [], reports: ['sse/truncated-event'] },
  {
    name: 'document between events',
    input: 'data: a\n\n{"e":1}\n\ndata: b\n\n',
    frames: [{ data: 'a' }, ...bare('{"e":1}'), { data: 'b' }],
    offsets: [0, 9, 18],
    reports: ['sse/bare-json'],
  },
  {
    name: 'document in an open event dispatches it',
    input: 'id: 1\ndata: a\n{"e":1}\ndata: b\n\n',
    frames: [{ data: 'a', id: '1' }, ...bare('{"e":1}'), { data: 'b' }],
    offsets: [0, 14, 22],
    reports: ['sse/bare-json'],
  },
  {
    name: 'document named by an event line',
    input: 'event: error\n{"e":1}\n\n',
    frames: [{ event: 'error', data: '{"e":1}', bare: true }],
    reports: ['sse/bare-json'],
  },
  { name: 'a brace that opens no document', input: '{oops}\ndata: x\n\n', frames: data('x') },
  { name: 'a brace that opens no document, later', input: '{ \n\ndata: x\n\n', frames: data('x') },
  { name: 'a bracket that opens no document', input: '[info] data: no\ndata: x\n[DONE!]\n\n', frames: data('x') },
  {
    name: 'stray quote after the body',
    input: '{"a":1}"\ndata: x\n\n',
    frames: [...bare('{"a":1}'), ...data('x')],
    reports: ['sse/bare-json'],
  },
  { name: 'wrong nesting is handed on', input: '{"a":]}\n', frames: bare('{"a":]'), reports: ['sse/bare-json'] },
];
