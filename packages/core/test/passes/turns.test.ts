import { describe, expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest } from '../../src/canonical/request.ts';
import type { Rules } from '../../src/passes/rules.ts';
import { convertMidSystem, dropEmpty, ensureFirstUser, fitTrailingAssistant } from '../../src/passes/turns.ts';
import { type RuleChanges, testRules } from './telling.ts';

const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const said = (role: CanonicalMessage['role'], ...texts: string[]): CanonicalMessage => ({ role, content: texts.map(text) });
const user = (...texts: string[]) => said('user', ...texts);
const assistant = (...texts: string[]) => said('assistant', ...texts);
const system = (...texts: string[]) => said('system', ...texts);
const tool: CanonicalMessage = { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] };
const call: CanonicalMessage = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] };
const request = (messages: CanonicalMessage[]): CanonicalRequest => ({ model: 'm', parameters: {}, messages });

type Row = [name: string, messages: CanonicalMessage[], expected: CanonicalMessage[], told: string[], rules: RuleChanges];
type Run = (request: CanonicalRequest, rules: Rules) => CanonicalRequest;

const holds =
  (pass: Run) => (_: string, messages: CanonicalMessage[], expected: CanonicalMessage[], told: string[], over: RuleChanges) => {
    const rules = testRules(over);
    const once = pass(request(messages), rules);
    expect(once.messages).toEqual(expected);
    expect(rules.told).toEqual(told);
    expect(pass(once, testRules(over)).messages).toEqual(expected);
  };

describe('instructions in the middle', () => {
  const REMINDER: RuleChanges = { midSystem: 'reminder' };
  const AFTER: RuleChanges = { midSystem: 'after_user' };
  const brief = user('<system-reminder>be brief</system-reminder>');
  const told = (at: number) => [`APPROXIMATED messages.system /messages/${at}`];

  test.each<Row>([
    ['P15 where they may stand', [user('a'), system('s'), user('b')], [user('a'), system('s'), user('b')], [], {}],
    [
      'P14 a reminder, in place',
      [user('a'), assistant('b'), system('be brief'), user('c')],
      [user('a'), assistant('b'), brief, user('c')],
      told(2),
      REMINDER,
    ],
    ['P14 after a user’s turn', [user('a'), system('s'), assistant('b')], [user('a'), system('s'), assistant('b')], [], AFTER],
    ['P14 after results, which are one', [call, tool, system('s')], [call, tool, system('s')], [], AFTER],
    [
      'P14 not after an assistant',
      [user('a'), assistant('b'), system('be brief'), user('c')],
      [user('a'), assistant('b'), brief, user('c')],
      told(2),
      AFTER,
    ],
    ['two after one turn are one', [user('a'), system('s'), system('t')], [user('a'), system('s', 't')], [], AFTER],
    ['at the end', [user('a'), assistant('b'), system('be brief')], [user('a'), assistant('b'), brief], told(2), REMINDER],
  ])('%s', holds(convertMidSystem));
});

describe('empty texts and messages', () => {
  const CLAUDE: RuleChanges = { dropWhitespace: true, emptyMessages: 'drop' };
  const EMPTY = (at: number) => [`REPAIRED messages.empty /messages/${at}`];

  test.each<Row>([
    ['P29 an empty text', [user('', 'a')], [user('a')], [], {}],
    ['P29 white space is something', [user(' ')], [user(' ')], [], {}],
    [
      'P29 white space is nothing',
      [user(' \n', 'a')],
      [user('a')],
      ['REPAIRED messages.whitespace /messages/0/content/0'],
      CLAUDE,
    ],
    ['P29 turns are kept', [user(''), assistant('')], [user(), assistant()], [], {}],
    ['P29 turns that say nothing go', [user(''), assistant('a')], [assistant('a')], EMPTY(0), CLAUDE],
    ['instructions without any', [user('a'), system('')], [user('a')], [], {}],
    ['results without any', [user('a'), said('tool')], [user('a')], [], {}],
  ])('%s', holds(dropEmpty));

  test('P83 a signature is something', () => {
    const signed: ContentBlock = {
      type: 'text',
      text: '',
      signature: { origin: 'gemini', form: 'thought_signature', value: 's' },
    };
    const source = request([{ role: 'assistant', content: [signed] }]);
    expect(dropEmpty(source, testRules(CLAUDE)).messages).toEqual(source.messages);
  });

  test('in the results of tools and in the instructions', () => {
    const block = (content: string | ContentBlock[]) => ({ type: 'tool_result', tool_use_id: 'a', content }) as ContentBlock;
    const source: CanonicalRequest = {
      ...request([{ role: 'tool', content: [block([text(''), text('x')]), block([text('')])] }]),
      system: [
        { type: 'text', text: ' ' },
        { type: 'text', text: 's' },
      ],
    };
    const { system: left, messages } = dropEmpty(source, testRules(CLAUDE));
    expect(left).toEqual([{ type: 'text', text: 's' }]);
    expect(messages).toEqual([{ role: 'tool', content: [block([text('x')]), block('')] }]);
  });
});

describe('the first word', () => {
  const FIRST: RuleChanges = { firstUser: true };
  const TOLD = ['APPROXIMATED messages.first_user /messages/0'];

  test.each<Row>([
    ['P12 the assistant’s', [assistant('Hi'), user('yo')], [user('(continued)'), assistant('Hi'), user('yo')], TOLD, FIRST],
    ['P10 a call', [call, tool], [user('(continued)'), call, tool], TOLD, FIRST],
    ['the user’s', [user('a')], [user('a')], [], FIRST],
    ['where anybody may have it', [assistant('Hi')], [assistant('Hi')], [], {}],
    ['nobody’s', [], [], [], FIRST],
  ])('%s', holds(ensureFirstUser));

  test.each<[name: string, messages: CanonicalMessage[]]>([
    ['no messages', []],
    ['empty messages', [said('user')]],
  ])('a user message is inserted behind instructions with %s', (_, messages) => {
    const alone = { ...request(messages), system: [{ type: 'text' as const, text: 's' }] };
    const rules = testRules(FIRST);
    expect(ensureFirstUser(alone, rules)).toEqual({ ...alone, messages: [user('(continued)')] });
    expect(rules.told).toEqual(['APPROXIMATED messages.first_user /system/0']);
    expect(ensureFirstUser(alone, testRules())).toBe(alone);
  });
});

describe('the last word', () => {
  const TRIM: RuleChanges = { trailingAssistant: 'trim' };
  const CONTINUE: RuleChanges = { trailingAssistant: 'continue' };
  const TOLD = ['APPROXIMATED messages.prefill /messages/1'];
  const paused: CanonicalMessage = {
    role: 'assistant',
    content: [{ type: 'tool_use', id: 's', name: 'web_search', input: {}, kind: 'server' }],
  };

  test.each<Row>([
    ['P13 a prefill', [user('q'), assistant('{ ')], [user('q'), assistant('{ ')], [], {}],
    ['P13 without white space at its end', [user('q'), assistant('{ \n')], [user('q'), assistant('{')], TOLD, TRIM],
    ['P13 that has none', [user('q'), assistant('{')], [user('q'), assistant('{')], [], TRIM],
    ['P13 of nothing else', [user('q'), assistant(' ')], [user('q')], TOLD, TRIM],
    ['P13 no prefill', [user('q'), assistant('{')], [user('q'), assistant('{'), user('Continue.')], TOLD, CONTINUE],
    ['the user’s', [user('q')], [user('q')], [], CONTINUE],
    ['an open call', [user('q'), call], [user('q'), call], [], CONTINUE],
    ['a turn that the server paused', [user('q'), paused], [user('q'), paused], [], CONTINUE],
  ])('%s', holds(fitTrailingAssistant));
});
