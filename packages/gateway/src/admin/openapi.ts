/** The OpenAPI document of the admin API, built from its routes. */

import { z } from 'zod';
import { PREFIX, type Route } from './route.ts';
import { ROUTES } from './routes.ts';
import { NAMED_SCHEMAS } from './views.ts';

/** Builds the document. Resources are named schemas, which responses refer to. */
export function buildDocument(): object {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(NAMED_SCHEMAS)) registry.add(schema, { id });
  for (const [index, { response, body: read, passedBody }] of ROUTES.entries()) {
    const body = read ?? passedBody;
    if (typeof response !== 'string' && !registry.has(response)) registry.add(response, { id: `response${index}` });
    if (body) registry.add(body, { id: `body${index}` });
  }
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    io: 'input',
    override: shortenTimes,
  });
  const find = (schema: z.ZodType): object => {
    const id = registry.get(schema)?.id ?? '';
    return Object.hasOwn(NAMED_SCHEMAS, id) ? { $ref: `#/components/schemas/${id}` } : strip(schemas[id] ?? {});
  };
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) {
    const path = `${PREFIX}${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: buildOperation(route, find) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin API',
      version: '1',
      description: 'Usage, cost and health of a gateway. Amounts are integer millionths of a US dollar.',
    },
    paths,
    components: {
      schemas: Object.fromEntries(Object.keys(NAMED_SCHEMAS).map((id) => [id, strip(schemas[id] ?? {})])),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'The admin key.' },
        session: { type: 'apiKey', in: 'cookie', name: 'sluice_console' },
      },
    },
    security: [{ key: [] }, { session: [] }],
  };
}

/** The pattern of a time is 500 characters that say the same as its format. */
function shortenTimes({ jsonSchema }: { jsonSchema: { format?: string; pattern?: string } }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
}

/** Ids are for files of their own; in one document, the place identifies a schema. */
function strip({ $schema: _, $id: __, ...schema }: Record<string, unknown>): object {
  return schema;
}

function buildOperation(route: Route, find: (schema: z.ZodType) => object): object {
  const { about, access, query, idAbout, response, hasEtag } = route;
  const body = route.body ?? route.passedBody;
  const parameters = [
    ...(idAbout === undefined
      ? []
      : [{ name: 'id', in: 'path', required: true, description: idAbout, schema: { type: 'string' } }]),
    ...Object.entries(query).map(([name, parameter]) => ({
      name,
      in: 'query',
      description: parameter.about,
      schema: parameter.schema,
    })),
  ];
  const content =
    typeof response === 'string'
      ? { [response]: { schema: { type: 'string' } } }
      : { 'application/json': { schema: find(response) } };
  return {
    operationId: nameOperation(route),
    summary: about,
    ...(access === 'login' && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: find(body) } } } }),
    responses: {
      200: { description: about, content },
      ...(hasEtag && { 304: { description: 'The resource has the ETag of If-None-Match.' } }),
      default: {
        description: 'An error.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

/** `getExchangesById` */
const nameOperation = ({ method, path }: Route): string =>
  method.toLowerCase() +
  path
    .replace('{id}', 'by-id')
    .split(/[^a-z]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');

/** The table of endpoints in docs/admin-api.md. */
export function formatRouteTable(): string {
  const rows = ROUTES.map(({ method, path, about, access, query }) => {
    const parameters = Object.keys(query).map((name) => `\`${name}\``);
    return `| \`${method} ${PREFIX}${path}\` | ${about} | ${parameters.join(', ') || '–'} | ${ACCESS_NAMES[access]} |`;
  });
  return ['| endpoint | what | query | access |', '|---|---|---|---|', ...rows].join('\n');
}

const ACCESS_NAMES = {
  login: 'token or key in the body',
  read: 'admin',
  sensitive: 'admin, always with a key or session',
} as const;
