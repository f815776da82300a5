import type { Json, Part } from '../../../../test/sdk/gemini.ts';
import { isObject } from '../../src/json/json.ts';

/** A difference that gemini to canonical to gemini may make. `apply` makes it in a copy of the source. */
export interface Normalisation {
  name: string;
  reason: string;
  apply(body: Json): void;
}

const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const contentsOf = (body: Json): Json[] => objects(body['contents']);
const partsOf = (content: Json): Part[] => objects(content['parts']);

const camel = (key: string): string => key.replace(/(?!^)_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** What holds the user's own keys is not looked into. */
const OPAQUE = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseSchema',
  'responseJsonSchema',
  'toolCall',
  'toolResponse',
  'fileSearch',
  'mcpServers',
  'labels',
]);

const camelDeep = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(camelDeep);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [camel(key), OPAQUE.has(camel(key)) ? inner : camelDeep(inner)]),
  );
};

export const NORMALISATIONS: readonly Normalisation[] = [
  {
    name: 'lower camel case',
    reason: 'P128: proto3 JSON takes both spellings; one is written',
    apply(body) {
      const { contents, generationConfig, tools, ...rest } = body;
      for (const key of Object.keys(rest)) {
        delete body[key];
        body[camel(key)] = rest[key];
      }
      for (const [key, value] of Object.entries({ contents, generationConfig, tools }))
        if (value !== undefined) body[key] = camelDeep(value);
    },
  },
  {
    name: 'the model stands in the path',
    reason: 'the body need not name it again',
    apply(body) {
      delete body['model'];
    },
  },
  {
    name: 'null and empty say nothing',
    reason: 'an empty list or object, like an empty text, is absence',
    apply(body) {
      for (const key of Object.keys(body)) if (body[key] === null) delete body[key];
      for (const key of ['tools', 'toolConfig', 'generationConfig']) {
        const value = body[key];
        if (value === null || (typeof value === 'object' && Object.keys(value as object).length === 0)) delete body[key];
      }
      const config = body['toolConfig'];
      if (
        isObject(config) &&
        isObject(config['functionCallingConfig']) &&
        Object.keys(config['functionCallingConfig']).length === 0
      )
        delete body['toolConfig'];
    },
  },
  {
    name: 'instructions are a list of texts',
    reason: 'one block a text; a part alone is taken for a list of one, and an empty text says nothing',
    apply(body) {
      const { systemInstruction: system } = body;
      if (!isObject(system)) return;
      const parts = [system['parts']].flat().filter(isObject);
      const said = parts.filter(({ text }) => text !== '').map(({ thought: _, ...part }) => part);
      if (said.length > 0) system['parts'] = said;
      else delete body['systemInstruction'];
    },
  },
  {
    name: 'thought: false',
    reason: 'false says as little as absence',
    apply(body) {
      for (const content of contentsOf(body))
        for (const part of partsOf(content)) if (part.thought === false) delete part.thought;
    },
  },
  {
    name: 'empty contents',
    reason: 'empty parts, and contents without parts, are refused',
    apply(body) {
      for (const content of contentsOf(body))
        content['parts'] = partsOf(content).filter((part) => !(part.text === '' && part.thoughtSignature === undefined));
      body['contents'] = contentsOf(body).filter((content) => partsOf(content).length > 0);
    },
  },
  {
    name: 'turns change hands',
    reason: 'contents of one role that follow each other are one turn',
    apply(body) {
      const turns: Json[] = [];
      for (const content of contentsOf(body)) {
        const last = turns.at(-1);
        if (last?.['role'] === content['role'] && last) last['parts'] = [...partsOf(last), ...partsOf(content)];
        else turns.push(content);
      }
      body['contents'] = turns;
    },
  },
  {
    name: 'every call is answered',
    reason: 'P08: as many results as calls; a turn without any is refused',
    apply(body) {
      const contents = contentsOf(body);
      contents.forEach((content, i) => {
        const calls = partsOf(content).filter(({ functionCall }) => functionCall);
        const next = contents[i + 1];
        const isServer = partsOf(content).some(({ functionResponse }) => functionResponse);
        if (calls.length === 0 || isServer || !next || partsOf(next).some(({ functionResponse }) => functionResponse)) return;
        const made = calls.map(({ functionCall }) => ({
          functionResponse: { name: functionCall?.name, response: { error: 'No result was recorded for this call.' } },
        }));
        next['parts'] = [...made, ...partsOf(next)];
      });
    },
  },
  {
    name: 'base64 in the standard alphabet',
    reason: 'proto3 readers take both; everybody else takes the standard one',
    apply(body) {
      const walk = (value: unknown): void => {
        for (const [key, inner] of Object.entries(Object(value)) as [string, unknown][])
          if (key === 'inlineData' && isObject(inner) && typeof inner['data'] === 'string')
            inner['data'] = inner['data'].replaceAll('-', '+').replaceAll('_', '/');
          else if (typeof inner === 'object') walk(inner);
      };
      walk(body['contents']);
    },
  },
  {
    name: 'adjacent thoughts are one',
    reason: 'streaming clients send every piece of a thought back; what Google signed is not touched',
    apply(body) {
      for (const content of contentsOf(body)) {
        const parts: Part[] = [];
        for (const part of partsOf(content)) {
          const last = parts.at(-1);
          const isPiece = ({ text, thought, thoughtSignature }: Part): boolean =>
            text !== undefined && thought === true && thoughtSignature === undefined;
          if (last && isPiece(last) && isPiece(part)) parts[parts.length - 1] = { ...last, text: `${last.text}${part.text}` };
          else parts.push(part);
        }
        content['parts'] = parts;
      }
    },
  },
  {
    name: 'one entry for all functions',
    reason: 'declarations stand in one entry, each tool of Google in one of its own',
    apply(body) {
      const tools = objects(body['tools']);
      if (tools.length === 0) return;
      const declarations = tools.flatMap(({ functionDeclarations }) => objects(functionDeclarations));
      const others = tools.flatMap(({ functionDeclarations: _, ...rest }) =>
        Object.entries(rest).flatMap(([key, value]) => (value === null ? [] : [{ [key]: value }])),
      );
      body['tools'] = [...(declarations.length > 0 ? [{ functionDeclarations: declarations }] : []), ...others];
    },
  },
];
