// Mutants that no caller could tell from the code, each with the reason. The run fails when one of them is noticed after all.
import { clipped } from './page.js';

const COST = 'affects only time or memory: the other path gives the same result';
const TYPES = 'required only by the types: the case cannot occur, or gives the same result';
const SET = 'is set before it is read';
const NAME = 'a name that is never compared';
const NEVER_FIRST = 'a document ends, and a value begins, after the first character: never at 0';
const NEXT = 'the code after it is for another kind and has no effect';
const FIELDS = 'other blocks do not have these fields';
const END = 'a function without a return value returns undefined, which means the same';
const ANY = 'any value that does not occur on the wire gives the same result';
const BRACKET = 'such a line is always read from the buffered bytes: it begins at 0';
const BEHIND = 'bytes after the end are not read';

/** file: [reason, a part of the line, what is changed in it]. */
const LIST = {
  'accumulate/argument-text.ts': [
    [COST, '#isAsked = false', ['false → true']],
    [COST, 'if (end <= this.#released)', ['<= → <']],
    [COST, 'const out = ', ['this.#released === before && end === this.#text.length → false']],
    [COST, 'if (this.#isPlain)', ['this.#isPlain → false', '{ this.#text += fragment; return; } removed']],
    [
      COST,
      'this.#isPlain = this.#last',
      [
        '=== → !==',
        'this.#nesting.head === Head.other → true',
        '! removed',
        'this.#isPlain = this.#last === null && this.#nesting.head… removed',
      ],
    ],
    [COST, 'if (nesting.length <', ['nesting.length < this.#text.length → true', '< → <=']],
    [COST, 'this.#isAsked = true', ['true → false', 'this.#isAsked = true; removed']],
    [COST, 'this.#isPlain = false', ['false → true', 'this.#isPlain = false; removed']],
    [COST, 'const last = this.#fragments > 1', ['this.#fragments > 1 → true', '> → >=']],
    [COST, 'if ((last === null', ['last === null && !overrun → false']],
    [NEVER_FIRST, 'const end = nesting.firstEnd < 0', ['0 → 1', '< → <=']],
    [NEVER_FIRST, 'const overrun', ['0 → 1', '>= → >']],
  ],
  'accumulate/chat-choice.ts': [
    [SET, '#parts: unknown[]', ["[] → ['mutant']"]],
    [COST, 'if (countKeys(delta) !==', ['+ → -']],
    [COST, 'if (isSet(role) &&', ['role !== this.role → true']],
    [COST, 'if (isSet(finish))', ['isSet(finish) → true']],
    [COST, 'if (isSet(logprobs))', ['isSet(logprobs) → true']],
    [COST, 'const known = present', ['+ → -']],
    [COST, 'if (countKeys(choice)', ['countKeys(choice) !== known → true']],
    [COST, "if (typeof content === 'string') this.text", ["typeof content === 'string' → false"]],
    [COST, 'else if (content)', ['content → true']],
    [COST, 'if (calls) this', ['calls → true']],
    [COST, 'if (reasoning_content ||', ['reasoning_content || reasoning || reasoning_text || details → true']],
    [COST, 'present(content) + present(calls) + present(role) + present(reasoning', ['+ → -']],
    [COST, 'if (countKeys(delta) === common', ['countKeys(delta) === common → false']],
    [COST, "if (kept['content_parts']", ["'content_parts' → ''", "kept['content_parts'] !== this.#parts → true"]],
    [ANY, 'this.reasoning += readReasoning', ["'' → 'mutant'"]],
  ],
  'accumulate/chat-delta.ts': [
    [COST, 'typeof text.isWellFormed', ["typeof text.isWellFormed === 'function' → false", 'text.isWellFormed() → false']],
  ],
  'accumulate/chat-message.ts': [[TYPES, '[type]: isObject(body)', ['isObject(body) → true']]],
  'accumulate/chat.ts': [
    [TYPES, 'this.#first?.look', ['?. → .']],
    [COST, 'if (isSet(choice.usage))', ['isSet(choice.usage) → true']],
    [COST, 'if (isSet(usage)) this', ['isSet(usage) → true']],
    [COST, 'if (first !== undefined && first.index', ['first !== undefined && first.index === index → false']],
  ],
  'accumulate/chunk-fields.ts': [
    [COST, 'const meant', ['+ → -']],
    [COST, 'if (countKeys(chunk)', ['+ → -', 'countKeys(chunk) !== meant + present(tier) + present(fing… → true']],
  ],
  'json/scanner.ts': [
    [ANY, 'HEAD_OTHER = 4', ['4 → 5']],
    [COST, 'LONGEST_LOOP', ['24 → 25', '- → +', 'at - mark >= LONGEST_LOOP → true', '>= → >', '>= → <']],
    [COST, 'mark = at;', ['mark = at; removed']],
    [COST, 'if (++this.depth > this.deepest)', ['> → >=']],
    [COST, 'if (this.head < HEAD_AFTER_EMPTY_OBJECT)', ['< → <=']],
    [COST, 'for (let at = 0; at < fragment.length', ['< → <=']],
    [NEVER_FIRST, 'while (end >= 0', ['0 → 1', '>= → >', 'end >= 0 → true']],
    [NEVER_FIRST, 'return end < 0', ['0 → 1', '< → <=']],
    [NEVER_FIRST, 'this.firstEnd < 0', ['0 → 1', '< → <=']],
  ],
  'accumulate/merge-delta.ts': [
    [NAME, "what: 'set'", ["'set' → ''"]],
    [NAME, "'objects' : 'values'", ["'values' → ''"]],
    [COST, 'return merge.owned ||', ['merge.owned → false']],
    [COST, 'const list = kind', ['merge.owned → false']],
    [COST, 'merge.owned?.lists.set', ['merge.owned?.lists.set(list, state); removed']],
    [TYPES, 'if (isFields(known))', ['isFields(known) → true']],
    [TYPES, 'if (isFields(entry)) adopt', ['isFields(entry) → true']],
    [TYPES, "typeof number === 'number'", ["typeof number === 'number' → true"]],
  ],
  'accumulate/message.ts': [
    [NEXT, 'return;', ['return; removed']],
    [NEXT, "case 'ping'", ["'ping' → ''"]],
    [FIELDS, "if (block.type === 'tool_use') finishToolUse", ["block.type === 'tool_use' → true"]],
    [FIELDS, "if (block.type === 'text' && block.citations)", ["block.type === 'text' → true"]],
  ],
  'accumulate/overlay.ts': [
    [COST, "if (key === '__proto__')", ["key === '__proto__' → true"]],
    [END, '} catch {', ['{ return undefined; } removed']],
  ],
  'accumulate/tool-call-assembler.ts': [[TYPES, 'a.index ?? 0', ['0 → 1']]],
  'accumulate/tool-call-delta.ts': [
    [COST, 'const known = present', ['+ → -']],
    [COST, 'if (countKeys(delta)', ['countKeys(delta) !== known → true']],
    [COST, 'if (countKeys(body)', ['+ → -', 'countKeys(body) !== present(name) + present(value) → true']],
  ],
  'accumulate/tool-calls.ts': [
    [TYPES, "typeof index === 'number'", ["typeof index === 'number' → true"]],
    [TYPES, 'const bound = delta.index', ['delta.index === undefined → false']],
    [TYPES, 'const sameName', ['?. → .']],
    [TYPES, 'if (delta.index !== undefined) {', ['delta.index !== undefined → true']],
    [TYPES, 'if (delta.id !== undefined) {', ['delta.id !== undefined → true']],
    [COST, 'if (this.#sink) return', ['this.#sink → true']],
    [NAME, "return '';", ["'' → 'mutant'"]],
  ],
  'accumulate/unknown-fields.ts': [
    [ANY, '#layout: string[]', ["[] → ['mutant']"]],
    [SET, '#unknown: boolean[]', ["[] → ['mutant']"]],
    [COST, 'if (!this.#read(source))', ['!this.#read(source) → true']],
    [COST, 'let at = 0;', ['0 → 1']],
    [COST, 'if (key !== layout[at])', ['key !== layout[at] → true']],
    [COST, 'if (unknown[at++])', ['++ → --']],
    [COST, 'return true;', ['true → false']],
    [COST, '#read(source', ['{ const layout = this.#layout; const unknown = this.#unkn… removed']],
    [COST, 'this.#layout = Object.keys', ['this.#layout = Object.keys(source); removed']],
    [COST, 'value !== this.kept[key]', ['value !== this.kept[key] → true']],
  ],
  'sse/block.ts': [
    [END, '} catch {', ['{ return false; } removed']],
    [COST, 'return this.#frames.length > 0', ['> → >=', 'this.#frames.length > 0 → true']],
    [COST, 'if (this.#dataBytes + length <=', ['this.#dataBytes + length <= this.#maxBytes → false', '<= → <']],
    [COST, 'if (!this.#isLastName', ['!this.#isLastName(line, start, to) → true']],
    [COST, 'this.#lastName.clear()', ['this.#lastName.clear(); removed']],
    [COST, 'if (ascii !== undefined)', ['ascii !== undefined → false']],
    [COST, "text.includes('\\ufffd')", ["'\\ufffd' → ''", "text.includes('\\ufffd') → true"]],
    [COST, 'if (to - start !== length)', ['- → +', 'to - start !== length → true']],
    [COST, 'for (let at = 0; at < length; at++)', ['< → <=', '++ → --', 'line[start + at] !== bytes[at] → true']],
    [COST, 'return true;', ['true → false']],
    [COST, '#isLastName(line', ['{ const { bytes, length } = this.#lastName; if (to - star… removed']],
    [NEXT, 'break;', ['break; removed']],
    [NEVER_FIRST, 'return start >= 0 &&', ['0 → 1', '>= → >']],
    [NEVER_FIRST, 'if (start < 0) return', ['0 → 1', '< → <=']],
    [BRACKET, 'if (to - from > 64', ['- → +']],
  ],
  'sse/bytes.ts': [
    [END, '} catch {', ['{ return false; } removed']],
    [COST, 'const SHORT', ['24 → 25']],
    [COST, 'if (to - from > SHORT)', ['- → +', 'to - from > SHORT → true', '> → >=']],
    [BEHIND, 'at < to; at++, put++', ['< → <=', '0 → 1']],
  ],
  'sse/chunk.ts': [
    [COST, 'const NO_', ['0 → 1']],
    [COST, 'if (this.#bytes === NO_BYTES)', ['this.#bytes === NO_BYTES → false']],
    [COST, 'let stop', ['0 → 1', 'words.length === 0 → true', 'words.length === 0 → false', '=== → !==']],
    [COST, 'for (; at < stop', ['< → <=']],
    [COST, 'stop = word <', ['word < words.length → true', 'word < words.length → false', '< → <=', '< → >=', '4 → 5']],
    [COST, 'if (to > this.#windowEnd', ['> → >=', 'to > this.#windowEnd → true']],
    [COST, 'if (to - from > WINDOW)', ['to - from > WINDOW → false']],
    [COST, 'this.#windowEnd = end', ['this.#windowEnd = end; removed']],
    [COST, 'const last', ['/ → *']],
    [COST, 'return word === words.length', ['word === words.length → true']],
    [COST, 'const word =', ['0 → 1', 'words[at] ?? 0 → (words[at]) && (0)']],
    [COST, '0x10101010', ['0x10101010 → 269488145', '& → |']],
    [COST, 'at + 4 <= length', ['4 → 5', '+ → -', 'at + 4 <= length → false', '<= → <', '<= → >']],
    [
      COST,
      'HIGH_BITS',
      [
        '& → |',
        '0 → 1',
        '(low & HIGH_BITS) !== 0 → true',
        '< → <=',
        '< → >=',
        'at < length → true',
        'at < length && (lowBytes(words, at) & HIGH_BITS) === 0 → false',
        '4 → 5',
        '<= → <',
        'at + 4 <= to && ((word(at) | word(at + 1) | word(at + 2) … → false',
      ],
    ],
    [COST, 'while (at < to', ['< → <=', '0 → 1']],
    [SET, '#lead = 0', ['0 → 1']],
    [SET, "#window = ''", ["'' → 'mutant'", "this.#window = ''; removed"]],
    [SET, '#windowStart = 0', ['0 → 1']],
  ],
  'sse/decode.ts': [
    [SET, '#tailOffset = 0', ['0 → 1']],
    [COST, 'this.#chunk.open(chunk)', ['this.#chunk.open(chunk); removed']],
    [COST, 'return this.#block.hasFrames', ['this.#block.hasFrames → true']],
    [
      COST,
      'if (first === LF &&',
      ['0 → 1', 'first === LF && this.#tail.length === 0 → false', '{ this.#block.dispatch(); return at + 1; } removed'],
    ],
    [COST, 'const start = first === SPACE', ['first === SPACE || first === TAB → true']],
    [COST, 'else if (tail.length === 0)', ['tail.length === 0 → false']],
    [COST, 'this.#tail.free()', ['this.#tail.free(); removed']],
    [COST, 'this.#cutter.value.free()', ['this.#cutter.value.free(); removed']],
    [COST, 'this.#block.clear()', ['this.#block.clear(); removed']],
  ],
  'sse/encode.ts': [
    [COST, 'const oneLine', ['isPlain(text) → false']],
    [COST, 'const isPlain', ["'\\n' → ''", "'\\r' → ''", "!text.includes('\\n') && !text.includes('\\r') → undefined"]],
    [COST, 'const data = isPlain', ['isPlain(frame.data) → false']],
  ],
  'sse/json-array.ts': [
    [SET, 'offset = 0;', ['0 → 1']],
    [SET, 'position = 0;', ['0 → 1']],
    [SET, 'opener = 0;', ['0 → 1']],
    [SET, 'isEmpty = true;', ['true → false']],
    [SET, 'leftLine = false;', ['false → true']],
    [SET, 'isIndented = false;', ['false → true']],
    [SET, '#isArray = false;', ['false → true']],
    [SET, '#proven = false;', ['false → true']],
    [SET, '#isInEvent = false;', ['false → true']],
    [TYPES, 'bytes[at] ?? 0', ['0 → 1']],
    [NAME, "'more'", ["'more' → ''", 'this.isOpen → false']],
    [COST, 'if (at === bytes.length) return false', ['false → true']],
  ],
};

const changeOf = ({ code, text }) =>
  text === '' || text === '{}' ? `${clipped(code)} removed` : `${clipped(code)} → ${clipped(text)}`;

const entries = Object.entries(LIST).flatMap(([file, rows]) =>
  rows.flatMap(([why, line, changes]) => changes.map((change) => ({ file, line, change, why, isUsed: false }))),
);

export const equivalents = {
  /** For a mutant that survived; undefined when it is a real one. */
  reasonFor(mutant) {
    const found = entries.find(
      ({ file, line, change }) => mutant.file.endsWith(file) && mutant.source.includes(line) && changeOf(mutant) === change,
    );
    if (found) found.isUsed = true;
    return found?.why;
  },
  unused: () => entries.filter(({ isUsed }) => !isUsed).map(({ file, line, change }) => `${file}: ${line}: ${change}`),
};
