// What is changed in the code, node by node: the catalogue of Stryker, and in addition numbers, bits and single statements removed.

/** Each operator and what takes its place. */
const OPERATORS = {
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['>>'],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
  '++': ['--'],
  '--': ['++'],
  '+=': ['-='],
  '-=': ['+='],
  '||=': ['&&='],
  '??=': ['&&='],
};

/** Methods that have an opposite; an empty one: the call is removed. */
const METHODS = {
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  trim: '',
  slice: '',
  filter: '',
  toSorted: '',
  toLowerCase: '',
  replaceAll: '',
  padStart: '',
};

const COMPARISONS = new Set(['<', '<=', '>', '>=', '===', '!==']);
const isComparison = (node) => node.type === 'BinaryExpression' && COMPARISONS.has(node.operator);
const isText = (node) => node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string');
const bare = (node) => (node.type === 'ParenthesizedExpression' ? bare(node.expression) : node);

/** Where the operator stands between two operands. */
function operatorAt(source, { operator }, from, to) {
  const start = source.indexOf(operator, from);
  if (start < 0 || start >= to) throw new Error(`no ${operator} in ${source.slice(from, to)}`);
  return { start, end: start + operator.length };
}

const whole = (node, text) => ({ start: node.start, end: node.end, text });

function swapped(source, node, from, to) {
  const place = operatorAt(source, node, from, to);
  return (OPERATORS[node.operator] ?? []).map((text) => ({ ...place, text }));
}

/** `??` may not stand beside `&&` without parentheses. */
const both = (source, node) =>
  whole(node, `(${source.slice(node.left.start, node.left.end)}) && (${source.slice(node.right.start, node.right.end)})`);

/** The value it stands for is one of two, and it is not a condition whose constant forms are made already. */
function constants(node, place) {
  const values = place === 'test' ? [] : place === 'and' ? ['true'] : place === 'or' ? ['false'] : ['true', 'false'];
  return values.map((text) => whole(node, text));
}

function ofCall(node) {
  const callee = node.callee;
  if (callee.type !== 'MemberExpression' || callee.computed || callee.property.type !== 'Identifier') return [];
  const other = Object.hasOwn(METHODS, callee.property.name) ? METHODS[callee.property.name] : undefined;
  if (other === undefined) return [];
  return other === '' ? [{ start: callee.object.end, end: node.end, text: '' }] : [whole(callee.property, other)];
}

function ofPattern({ pattern, flags }, node) {
  const forms = [
    pattern.replace(/^\^/, ''),
    pattern.replace(/\$$/, ''),
    pattern.replace('[', '[^'),
    pattern.replace(/\+|\{[\d,]+\}/, ''),
  ];
  return [...new Set(forms)].filter((form) => form !== pattern && form !== '').map((form) => whole(node, `/${form}/${flags}`));
}

function ofLiteral(node, place) {
  if (node.regex) return ofPattern(node.regex, node);
  if (typeof node.value === 'boolean') return [whole(node, String(!node.value))];
  // Numbers in tables are marks: which one does not matter. Those with a sign lose it.
  if (typeof node.value === 'number')
    return place === 'property' || place === 'signed' ? [] : [whole(node, String(node.value + 1))];
  if (typeof node.value === 'string' && place !== 'typeof') return [whole(node, node.value === '' ? "'mutant'" : "''")];
  return [];
}

const isWordOf = (node) => node.type === 'UnaryExpression' && node.operator === 'typeof';

/** How the value of a child is used, as far as it matters here. */
export function placeOf(parent, key, place) {
  if (key === 'test' && parent.type !== 'SwitchCase') return 'test';
  if (parent.type === 'LogicalExpression' && parent.operator !== '??') return parent.operator === '&&' ? 'and' : 'or';
  if (parent.type === 'BinaryExpression' && (isWordOf(parent.left) || isWordOf(parent.right))) return 'typeof';
  if (parent.type === 'Property') return 'property';
  if (parent.type === 'UnaryExpression' && parent.operator === '-') return 'signed';
  if (parent.type === 'ParenthesizedExpression') return place;
  return 'value';
}

const EXPRESSIONS = {
  BinaryExpression: (node, place, source) => [
    ...(node.operator === '+' && (isText(node.left) || isText(node.right))
      ? []
      : swapped(source, node, node.left.end, node.right.start)),
    ...(isComparison(node) ? constants(node, place) : []),
  ],
  LogicalExpression: (node, place, source) => [
    ...(node.operator === '??' ? [both(source, node)] : swapped(source, node, node.left.end, node.right.start)),
    ...(place === 'and' || place === 'or' ? constants(node, place) : []),
  ],
  AssignmentExpression: (node, _, source) => swapped(source, node, node.left.end, node.right.start),
  UpdateExpression: (node, _, source) => swapped(source, node, node.start, node.end),
  UnaryExpression: (node) =>
    ['!', '-', '~'].includes(node.operator) ? [{ start: node.start, end: node.argument.start, text: '' }] : [],
  Literal: ofLiteral,
  TemplateLiteral: (node) => [whole(node, '``')],
  CallExpression: (node, place) => [...ofCall(node), ...(place === 'and' || place === 'or' ? constants(node, place) : [])],
  ArrayExpression: (node) => [whole(node, node.elements.length > 0 ? '[]' : "['mutant']")],
  ObjectExpression: (node) => (node.properties.length > 0 ? [whole(node, '{}')] : []),
  MemberExpression: (node, place, source) => [
    ...(node.optional
      ? [{ start: node.object.end, end: node.property.start, text: source[node.property.start - 1] === '[' ? '[' : '.' }]
      : []),
    ...(place === 'and' || place === 'or' ? constants(node, place) : []),
  ],
  Identifier: (node, place) => (place === 'and' || place === 'or' ? constants(node, place) : []),
};

/** Conditions are made constant as a whole; one that is always true would keep a loop from ending. */
const CONDITIONS = {
  IfStatement: ['true', 'false'],
  ConditionalExpression: ['true', 'false'],
  WhileStatement: ['false'],
  DoWhileStatement: ['false'],
  ForStatement: ['false'],
};

/** Changes of a child that its parent asks for: conditions, and what an arrow function gives back. */
export function childMutationsOf(node) {
  if (node.type === 'ArrowFunctionExpression')
    return node.body.type === 'BlockStatement' || isComparison(bare(node.body)) ? [] : [whole(node.body, 'undefined')];
  return node.test ? (CONDITIONS[node.type] ?? []).map((text) => whole(node.test, text)) : [];
}

export function mutationsOf(node, place, source) {
  return EXPRESSIONS[node.type]?.(node, place, source) ?? [];
}

const isRemovable = (node, parent) =>
  (node.type === 'ExpressionStatement' && node.expression.type !== 'TSSatisfiesExpression') ||
  node.type === 'ThrowStatement' ||
  (parent.type === 'SwitchCase' && ['ReturnStatement', 'BreakStatement'].includes(node.type) && !node.argument);

/** Whether the statement, or everything in the block, can be removed. A block of one such statement would only say it twice. */
export function isLeftOut(node, parent) {
  if (node.type !== 'BlockStatement') return isRemovable(node, parent);
  if (parent.type === 'ForStatement' && !parent.test) return false;
  return node.body.length > 1 || (node.body.length === 1 && !isRemovable(node.body[0], node));
}
