import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

// Reads the types of the official SDKs: which fields the requests of an endpoint have, and what these are values of.

/** A field of a request that may be a text. */
export interface SdkField {
  name: string;
  /** The field whose value the object is; '' for the request itself. */
  parent: string;
}

/** A call of an SDK. */
export interface SdkCall {
  method: string;
  /** Below the version; `{}` stands for a parameter. */
  path: string;
  fields: readonly SdkField[];
}

interface Node {
  type: string;
  start: number;
  end: number;
  [key: string]: unknown;
}

interface Declaration {
  node: Node;
  file: TypeFile;
  /** The namespaces that it is in. */
  scope: readonly string[];
}

interface TypeFile {
  name: string;
  /** By qualified name. */
  declarations: Map<string, Declaration>;
  /** The methods of its classes: the types of their parameters. */
  methods: Map<string, Node[]>;
}

/** What the table leaves out of a request: fields with JSON of the client, and results of the vendor. */
export interface Skipped {
  opaque: readonly string[];
  results: readonly string[];
}

/** The SDKs export neither their manifest nor their folders. */
const folderOf = (module: string): string =>
  fileURLToPath(new URL(`../../../../${module === 'openai-7' ? 'test/sdk-next/' : ''}node_modules/${module}`, import.meta.url));

const CALL = /_client\s*\.(get|post|put|patch|delete|getAPIList)\(\s*(?:path\s*)?(['`])([^'`]*)\2/;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;

const textOf = (node: unknown): string =>
  !isNode(node)
    ? ''
    : node.type === 'TSQualifiedName'
      ? `${textOf(node['left'])}.${textOf(node['right'])}`
      : String(node['name'] ?? node['value'] ?? '');

/** The types of one or more files. */
export class SdkTypes {
  readonly #files: TypeFile[];
  readonly #skipped: { opaque: ReadonlySet<string>; results: ReadonlySet<string> };

  constructor(files: readonly string[], { opaque, results }: Skipped) {
    this.#files = files.map(readTypes);
    this.#skipped = { opaque: new Set(opaque), results: new Set(results) };
  }

  /** The types of an SDK that Stainless, or a generator like it, wrote, and its calls that change something. */
  static read(module: string, skipped: Skipped): SdkCall[] {
    const folder = join(folderOf(module), 'resources');
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'));
    const types = new SdkTypes(
      names.map((name) => join(folder, name)),
      skipped,
    );
    return names.flatMap((name) => types.#calls(join(folder, name)));
  }

  #calls(name: string): SdkCall[] {
    const file = this.#files.find((one) => one.name === name);
    const source = readFileSync(name.replace(/\.d\.ts$/, '.mjs'), 'utf8');
    const { program } = parseSync('resource.mjs', source);
    return listMethods(program as unknown as Node).flatMap(({ name: method, node }) => {
      const [, verb = '', , written = ''] = CALL.exec(source.slice(node.start, node.end)) ?? [];
      if (verb === '' || verb === 'get' || verb === 'getAPIList' || verb === 'delete') return [];
      const inPath = new Set([...written.matchAll(/\$\{(\w+)\}/g)].map(([, parameter]) => parameter));
      const path = written
        .replace(/\$\{[^}]*\}/g, '{}')
        .replace(/\?.*/, '')
        .replace(/^\/(v1\/)?/, '');
      const found = (file?.methods.get(method) ?? []).flatMap((type) => this.fieldsOf(type, file));
      return [
        { method: verb.toUpperCase(), path, fields: found.filter(({ name: own, parent }) => parent !== '' || !inPath.has(own)) },
      ];
    });
  }

  /** The fields of a type by its name. */
  fieldsOfNamed(name: string): SdkField[] {
    for (const file of this.#files) {
      const found = file.declarations.get(name);
      if (found) return this.#read(found.node, { file, scope: found.scope, parent: '', seen: new Set() });
    }
    throw new Error(`the SDK has no type ${name}`);
  }

  fieldsOf(type: Node, file: TypeFile | undefined): SdkField[] {
    return file ? this.#read(type, { file, scope: [], parent: '', seen: new Set() }) : [];
  }

  #read(node: Node, place: Place): SdkField[] {
    switch (node.type) {
      case 'TSInterfaceDeclaration': {
        const above = (node['extends'] as Node[]).flatMap((one) => this.#readReference(one['expression'], place));
        return [...above, ...this.#readMembers((node['body'] as { body: Node[] }).body, place)];
      }
      case 'TSTypeAliasDeclaration':
        return this.#readValue(node['typeAnnotation'], place);
      case 'ClassDeclaration':
        return this.#readMembers((node['body'] as { body: Node[] }).body, place);
      case 'TSTypeLiteral':
        return this.#readMembers(node['members'] as Node[], place);
      case 'TSUnionType':
      case 'TSIntersectionType':
        return (node['types'] as Node[]).flatMap((one) => this.#read(one, place));
      case 'TSParenthesizedType':
        return this.#readValue(node['typeAnnotation'], place);
      case 'TSArrayType':
        return this.#readValue(node['elementType'], place);
      case 'TSTypeReference':
        return [
          ...this.#readReference(node['typeName'], place),
          ...((node['typeArguments'] as { params?: Node[] } | null)?.params ?? []).flatMap((one) => this.#read(one, place)),
        ];
      default:
        return [];
    }
  }

  #readValue = (node: unknown, place: Place): SdkField[] => (isNode(node) ? this.#read(node, place) : []);

  #readReference(name: unknown, place: Place): SdkField[] {
    const found = this.#find(textOf(name), place);
    if (!found || place.seen.has(found.node)) return [];
    return this.#read(found.node, { ...place, file: found.file, scope: found.scope, seen: new Set([...place.seen, found.node]) });
  }

  #readMembers(members: readonly Node[], place: Place): SdkField[] {
    const properties = members.filter(({ type }) => type === 'TSPropertySignature' || type === 'PropertyDefinition');
    const type = properties.find(({ key }) => textOf(key) === 'type')?.['typeAnnotation'];
    const literals = isNode(type) ? [...this.#literals(type['typeAnnotation'])] : [];
    if (literals.some((literal) => this.#skipped.results.has(literal))) return [];
    return properties.flatMap((property) => {
      const name = textOf(property['key']);
      const value = (property['typeAnnotation'] as Node | null)?.['typeAnnotation'];
      const own = this.#isText(value, place) ? [{ name, parent: place.parent }] : [];
      return this.#skipped.opaque.has(name) ? own : [...own, ...this.#readValue(value, { ...place, parent: name })];
    });
  }

  #literals(node: unknown): string[] {
    if (!isNode(node)) return [];
    if (node.type === 'TSUnionType') return (node['types'] as Node[]).flatMap((one) => this.#literals(one));
    return node.type === 'TSLiteralType' ? [textOf(node['literal'])] : [];
  }

  /** Whether a value may be any text, or a list of texts. */
  #isText(node: unknown, place: Place, depth = 0): boolean {
    if (!isNode(node) || depth > 8) return false;
    const isText = (one: unknown): boolean => this.#isText(one, place, depth + 1);
    if (node.type === 'TSStringKeyword') return true;
    if (node.type === 'TSUnionType' || node.type === 'TSIntersectionType') return (node['types'] as Node[]).some(isText);
    if (node.type === 'TSArrayType') return isText(node['elementType']);
    if (node.type === 'TSParenthesizedType') return isText(node['typeAnnotation']);
    if (node.type !== 'TSTypeReference') return false;
    if (textOf(node['typeName']) === 'Array')
      return ((node['typeArguments'] as { params: Node[] } | null)?.params ?? []).some(isText);
    const found = this.#find(textOf(node['typeName']), place);
    return found?.node.type === 'TSTypeAliasDeclaration'
      ? this.#isText(found.node['typeAnnotation'], { ...place, file: found.file, scope: found.scope }, depth + 1)
      : false;
  }

  /** Looks a name up as TypeScript does: in its namespaces, in its file, then in the file of the namespace that it begins with. */
  #find(name: string, { file, scope }: Pick<Place, 'file' | 'scope'>): Declaration | undefined {
    for (let depth = scope.length; depth >= 0; depth--) {
      const found = file.declarations.get([...scope.slice(0, depth), name].join('.'));
      if (found) return found;
    }
    const [first = '', ...rest] = name.split('.');
    const plain = rest.length > 0 && /API$|Shared$/.test(first) ? rest.join('.') : name;
    const places = this.#files.filter(({ declarations }) => declarations.has(plain));
    const hint = first.replace(/API$/, '').toLowerCase();
    const nearest = places.find((one) => basename(one.name, '.d.ts').replaceAll('-', '') === hint) ?? places[0];
    return nearest?.declarations.get(plain);
  }
}

interface Place {
  file: TypeFile;
  scope: readonly string[];
  parent: string;
  /** The types that this one is inside of. */
  seen: ReadonlySet<Node>;
}

function listMethods(program: Node): { name: string; node: Node }[] {
  const classes = (program['body'] as Node[]).map((one) => (isNode(one['declaration']) ? one['declaration'] : one));
  return classes
    .filter(({ type }) => type === 'ClassDeclaration')
    .flatMap((one) => (one['body'] as { body: Node[] }).body)
    .filter(({ type }) => type === 'MethodDefinition' || type === 'TSAbstractMethodDefinition')
    .map((node) => ({ name: textOf(node['key']), node }));
}

function readTypes(name: string): TypeFile {
  const { program } = parseSync(name, readFileSync(name, 'utf8'));
  const file: TypeFile = { name, declarations: new Map(), methods: new Map() };
  declare(file, (program as unknown as Node)['body'] as Node[], []);
  for (const { name: method, node } of listMethods(program as unknown as Node)) {
    const parameters = ((node['value'] as Node)['params'] as Node[]).flatMap((parameter) => {
      const type = (parameter['typeAnnotation'] as Node | undefined)?.['typeAnnotation'];
      return isNode(type) && !/RequestOptions/.test(textOf(type['typeName'])) ? [type] : [];
    });
    file.methods.set(method, [...(file.methods.get(method) ?? []), ...parameters]);
  }
  return file;
}

function declare(file: TypeFile, body: readonly Node[], scope: readonly string[]): void {
  for (const statement of body) {
    const node = isNode(statement['declaration']) ? statement['declaration'] : statement;
    const name = textOf(node['id']);
    if (node.type === 'TSModuleDeclaration')
      declare(file, (node['body'] as { body: Node[] }).body, [...scope, ...name.split('.')]);
    else if (['TSInterfaceDeclaration', 'TSTypeAliasDeclaration', 'ClassDeclaration'].includes(node.type)) {
      const key = [...scope, name].join('.');
      if (!file.declarations.has(key)) file.declarations.set(key, { node, file, scope: [...scope, name] });
    }
  }
}
