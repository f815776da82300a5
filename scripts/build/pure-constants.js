/**
 * Lets bundlers drop constants that nothing uses. The packages say `sideEffects: false`, but that holds for whole files, and a
 * chunk has many modules: one constant that a bundler must keep brings everything it mentions (`accumulate` alone had 180 kB
 * instead of 46). By the letter of the language a spread, a call or the reading of a property may have effects. Here none has,
 * so such initializers are put into a call that is marked as pure.
 */
export function pureConstants() {
  return {
    name: 'pure-constants',
    transform(code, id) {
      if (!id.endsWith('.js') || id.startsWith('\0')) return null;
      const marks = this.parse(code).body.flatMap((statement) => markStatement(statement, code, id));
      return marks.length === 0 ? null : insert(code, marks);
    },
  };
}

const OPEN = '/* @__PURE__ */ (() => (';
const CLOSE = '))()';

function markStatement(statement, code, id) {
  const declaration = statement.type === 'ExportNamedDeclaration' ? (statement.declaration ?? statement) : statement;
  const refuse = (what) => {
    throw new Error(
      `${id}: ${what} keeps what it mentions in every bundle: ${code.slice(statement.start, statement.start + 80)}`,
    );
  };
  if (declaration.type === 'ClassDeclaration' && declaration.body.body.some(isStaticValue)) return refuse('a static field');
  if (declaration.type === 'ExpressionStatement' && declaration.expression.type !== 'Identifier') return refuse('a statement');
  if (declaration.type !== 'VariableDeclaration') return [];
  return declaration.declarations.flatMap(({ id: target, init }) => {
    if (init === null || isPlain(init)) return [];
    if (target.type !== 'Identifier') return refuse('destructuring');
    return [
      { at: init.start, text: OPEN },
      { at: init.end, text: CLOSE },
    ];
  });
}

const isStaticValue = ({ type, static: isStatic, value }) =>
  type === 'StaticBlock' || (type === 'PropertyDefinition' && isStatic && value !== null && !isPlain(value));

/** Expressions that every bundler knows to have no effect. */
const PLAIN = {
  Literal: () => true,
  Identifier: () => true,
  FunctionExpression: () => true,
  ArrowFunctionExpression: () => true,
  TemplateLiteral: ({ expressions }) => expressions.length === 0,
  UnaryExpression: ({ argument }) => isArithmetic(argument),
  BinaryExpression: ({ left, right }) => isArithmetic(left) && isArithmetic(right),
  ArrayExpression: ({ elements }) => elements.every((element) => element === null || isPlain(element)),
  ObjectExpression: ({ properties }) =>
    properties.every(({ type, computed, value }) => type === 'Property' && !computed && isPlain(value)),
};

const isPlain = (node) => PLAIN[node.type]?.(node) ?? false;

/** `64 * 1024 * 1024`. A name could be an object that computes. */
const isArithmetic = (node) => ['Literal', 'UnaryExpression', 'BinaryExpression'].includes(node.type) && isPlain(node);

function insert(code, marks) {
  let result = '';
  let from = 0;
  for (const { at, text } of marks) {
    result += code.slice(from, at) + text;
    from = at;
  }
  return result + code.slice(from);
}
