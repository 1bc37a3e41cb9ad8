import { writeFileSync } from 'node:fs'
import { toJsonSchema } from '@valibot/to-json-schema'
import { loginBody } from '../interfaces/http/session-routes.ts'
import type { Route } from '../contracts/route.ts'
import type { Schema } from '../lib/validate/validate.ts'
import { HTTP_API_DOCUMENT, inDocument } from './open-api.ts'
import { readResponseSchemas } from './response-schemas.ts'
import { ALL_ROUTES } from './all-routes.ts'
import { buildWorkerApiDocument, WORKER_API_DOCUMENT } from './worker-api-document.ts'

/** The OpenAPI document of the HTTP API, from the schemas of requests and the types of responses. `npm run openapi` writes it, and that of the worker API. */

type Json = Record<string, unknown>

const SCHEMAS = readResponseSchemas()

const JSON_SCHEMA_OPTIONS = {
  target: 'draft-2020-12',
  // Checks in code have no words there; their descriptions do.
  errorMode: 'ignore',
} as const

/** As it is sent: in a query everything is text, and what has a default may be left out. */
function inputSchema(schema: Schema): Json {
  const options = { ...JSON_SCHEMA_OPTIONS, typeMode: 'input' } as const
  const { $schema: _, ...rest } = toJsonSchema(schema, options) as Json
  return rest
}

const REFUSED = { $ref: '#/components/responses/Refused' }
const FAILED = { $ref: '#/components/responses/Failed' }

export function buildOpenApiDocument(): Json {
  const paths: Record<string, Json> = {}
  for (const route of ALL_ROUTES) {
    const path = inDocument(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'The HTTP API of Unstuck',
      version: '1',
      summary: 'Everything that the command line can look at and do, in the same shapes.',
      description:
        'Fields may be added to answers; none is renamed or taken away. Errors are `{ "error": { "code", "message" } }`. ' +
        'Ids of runs may be given in full or by their last 8 digits, those of targets in full. Lists go on with `after`, which takes the `next` of the page before.',
    },
    servers: [{ url: 'http://127.0.0.1:4600', description: 'unstuck serve' }],
    security: [{ token: [] }, { session: [] }],
    paths: { ...paths, ...PUBLIC_PATHS },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'From `unstuck tokens add`' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'unstuck-4600',
          description:
            'From `POST /api/login`. The port is the one that browsers see; over TLS and without a base path the name begins with `__Host-`.',
        },
      },
      schemas: {
        ...SCHEMAS.definitions,
        Error: {
          type: 'object',
          properties: {
            error: {
              type: 'object',
              properties: { code: { type: 'string' }, message: { type: 'string' } },
              required: ['code', 'message'],
            },
            preview: { description: 'With PLAN_CHANGED: what would be done now' },
          },
          required: ['error'],
        },
      },
      responses: {
        Refused: response('It was not done: the message says why, and what to do.', {
          $ref: '#/components/schemas/Error',
        }),
        Failed: response(
          '503: the database does not answer, try again later. Else something failed inside, and the log has it under the id in the message.',
          { $ref: '#/components/schemas/Error' },
        ),
      },
    },
  }
}

function operation(route: Route): Json {
  const { method, path, summary, role, params, query, body, response, produces = [] } = route
  const content = response
    ? { 'application/json': { schema: SCHEMAS.responses[response]! } }
    : Object.fromEntries(produces.map((type) => [type, { schema: { type: 'string' } }]))
  return {
    operationId: operationId(method, path),
    summary,
    description: `Role: ${role}.`,
    'x-unstuck-role': role,
    parameters: [...parameters('path', params), ...parameters('query', query)],
    ...(method !== 'GET' && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: body ? inputSchema(body) : EMPTY_OBJECT } },
      },
    }),
    responses: {
      [route.status ?? 200]: { description: summary, content },
      '4XX': REFUSED,
      '5XX': FAILED,
    },
  }
}

const EMPTY_OBJECT = { type: 'object', properties: {}, additionalProperties: false }

function parameters(where: 'path' | 'query', schema: Schema | undefined): Json[] {
  if (!schema) return []
  const { properties = {}, required = [] } = inputSchema(schema) as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...shape }]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    ...(description !== undefined && { description }),
    schema: shape,
  }))
}

/** `GET /api/runs/:run/targets` is `getRunsRunTargets`. */
function operationId(method: string, path: string): string {
  const words = path
    .replace(/^\/api\//, '')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
  return (
    method.toLowerCase() +
    words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  )
}

function response(description: string, schema: Json): Json {
  return { description, content: { 'application/json': { schema } } }
}

const OK = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
const PUBLIC = { security: [], parameters: [] }

/** What every caller may call. */
const PUBLIC_PATHS: Record<string, Json> = {
  '/api/login': {
    post: {
      operationId: 'login',
      summary: 'A session for a browser, as a cookie.',
      ...PUBLIC,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: inputSchema(loginBody) } },
      },
      responses: {
        200: response('Who it is.', { $ref: '#/components/schemas/Session' }),
        '4XX': REFUSED,
        '5XX': FAILED,
      },
    },
  },
  '/api/logout': {
    post: {
      operationId: 'logout',
      summary: 'Ends the session.',
      ...PUBLIC,
      requestBody: { required: true, content: { 'application/json': { schema: EMPTY_OBJECT } } },
      responses: { 200: response('It is over.', EMPTY_OBJECT), '4XX': REFUSED },
    },
  },
  '/healthz': {
    get: {
      operationId: 'healthz',
      summary: 'It serves.',
      ...PUBLIC,
      responses: { 200: response('Always, while it does.', OK) },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readyz',
      summary: 'Whether the database can be reached.',
      ...PUBLIC,
      responses: { 200: response('It can.', OK), 503: response('It cannot.', OK) },
    },
  },
}

if (import.meta.main) {
  writeDocument(HTTP_API_DOCUMENT, buildOpenApiDocument())
  writeDocument(WORKER_API_DOCUMENT, buildWorkerApiDocument())
}

function writeDocument(file: URL, document: Json): void {
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`)
}
