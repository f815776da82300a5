/** Type declarations of a package, read with oxc: what each module declares and what it imports. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

/** @param {string} file in a package @returns {string} */
const locate = (file) =>
  // Apart from the others, because it asks for a newer node: `npm run test:sdk-next` installs it.
  join(ROOT, file.startsWith('openai-7/') ? 'test/sdk-next/node_modules' : 'node_modules', file);

/**
 * @typedef {{ node: any, module: Module, scope: readonly string[] }} Declaration  `scope`: the namespaces around it
 * @typedef {{ file: string, declarations: Map<string, Declaration[]>, imports: Map<string, Import>, stars: string[] }} Module
 * @typedef {{ file: string, name: string }} Import  name `*`: the whole module
 */

/** @type {Map<string, Module>} */
const loaded = new Map();

/** @param {string} file relative to node_modules */
export function loadModule(file) {
  const known = loaded.get(file);
  if (known) return known;
  /** @type {Module} */
  const module = { file, declarations: new Map(), imports: new Map(), stars: [] };
  loaded.set(file, module);
  const { program } = parseSync(file, readFileSync(locate(file), 'utf8'));
  for (const statement of program.body) readStatement(statement, module, []);
  return module;
}

/** @param {string} name of a package @returns {string} */
export const versionOf = (name) => JSON.parse(readFileSync(locate(`${name}/package.json`), 'utf8')).version;

/** The declarations a reference can mean: an interface may be declared in pieces.
 * @param {readonly string[]} parts @param {Module} module @param {readonly string[]} scope @returns {Declaration[]} */
export function resolve(parts, module, scope) {
  for (let depth = scope.length; depth >= 0; depth--) {
    const found = module.declarations.get([...scope.slice(0, depth), ...parts].join('.'));
    if (found) return found;
  }
  const [head = '', ...rest] = parts;
  const imported = module.imports.get(head);
  if (imported) {
    const target = loadModule(imported.file);
    return resolve(imported.name === '*' ? rest : [imported.name, ...rest], target, []);
  }
  for (const file of module.stars) {
    const found = resolve(parts, loadModule(file), []);
    if (found.length > 0) return found;
  }
  return [];
}

const DECLARATIONS = new Set(['TSInterfaceDeclaration', 'TSTypeAliasDeclaration', 'TSEnumDeclaration', 'ClassDeclaration']);

/** @param {any} statement @param {Module} module @param {readonly string[]} scope */
function readStatement(statement, module, scope) {
  const { type, declaration, source } = statement;
  if (type === 'ImportDeclaration') return readImport(statement, module);
  if (type === 'ExportAllDeclaration') return void module.stars.push(fileOf(source.value, module));
  if (type === 'ExportNamedDeclaration' && !declaration) return source && readReexport(statement, module);
  const node = declaration ?? statement;
  if (node.type === 'TSModuleDeclaration')
    for (const inner of node.body?.body ?? []) readStatement(inner, module, [...scope, node.id.name]);
  if (!DECLARATIONS.has(node.type)) return;
  const name = [...scope, node.id.name].join('.');
  const pieces = module.declarations.get(name) ?? [];
  // A class and a namespace may share a name with an interface; types of requests and answers are never both.
  module.declarations.set(name, [...pieces, { node, module, scope: [...scope, node.id.name] }]);
}

/** @param {any} statement @param {Module} module */
function readImport({ specifiers, source }, module) {
  if (!source.value.startsWith('.')) return;
  const file = fileOf(source.value, module);
  for (const { type, local, imported } of specifiers)
    module.imports.set(local.name, { file, name: type === 'ImportNamespaceSpecifier' ? '*' : (imported?.name ?? 'default') });
}

/** @param {any} statement @param {Module} module */
function readReexport({ specifiers, source }, module) {
  const file = fileOf(source.value, module);
  for (const { local, exported } of specifiers) module.imports.set(exported.name, { file, name: local.name });
}

/** @param {string} specifier @param {Module} module */
const fileOf = (specifier, module) => `${join(dirname(module.file), specifier).replace(/\.m?js$/, '')}.d.ts`;
