import { toJsonSchemaDefs } from '@valibot/to-json-schema'
import { WORKER_BODIES, WORKER_ROUTES } from '../features/commands/worker-api/routes.ts'
import { inDocument, type Schema } from './open-api.ts'

/** The OpenAPI document of the worker API, from the schemas of its bodies: `npm run openapi` writes it. */

export const WORKER_API_DOCUMENT = new URL(
  '../../docs/reference/worker-api.openapi.json',
  import.meta.url,
)

type Call = {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly body?: keyof typeof WORKER_BODIES
  readonly answer: string
  /** Statuses that only some calls have. */
  readonly more?: readonly ErrorStatus[]
}

const PAGE_AGAIN =
  'The last page again, with the same content, is answered with the same number and counted once.'

const CALLS: Readonly<Record<string, Call>> = {
  'GET /': {
    operationId: 'describe',
    summary: 'The run that this command works on.',
    answer: 'Run',
  },
  'POST /planning': {
    operationId: 'claimPlanning',
    summary: 'Asks whether this command is to add the targets.',
    description: 'True for one worker at a time, until the run is planned or that worker ends.',
    answer: 'Planning',
  },
  'POST /targets': {
    operationId: 'addTargets',
    summary: 'Adds targets. A key that is there already is left as it is.',
    body: 'NewTargets',
    answer: 'Added',
    more: [409],
  },
  'POST /targets/planned': {
    operationId: 'finishPlanning',
    summary: 'All targets are added: from now on the run can end.',
    answer: 'Nothing',
    more: [409],
  },
  'POST /claim': {
    operationId: 'claim',
    summary: 'Claims targets, and waits for one if there is none.',
    body: 'ClaimRequest',
    answer: 'Claimed',
  },
  'POST /checkpoints': {
    operationId: 'checkpoints',
    summary: 'Saves a page of each of several targets. Each has its own outcome.',
    description: `Bodies up to 8 MB. At most one page of each target. ${PAGE_AGAIN}`,
    body: 'Pages',
    answer: 'Outcomes',
  },
  'POST /targets/:id/checkpoint': {
    operationId: 'checkpoint',
    summary: 'Saves a page: its items and the cursor behind it, both or neither.',
    description: `Bodies up to 8 MB. ${PAGE_AGAIN}`,
    body: 'Page',
    answer: 'Saved',
    more: [409, 422],
  },
  'POST /targets/:id/transaction': {
    operationId: 'beginTransaction',
    summary: 'PostgreSQL: returns the statement that saves a page in a transaction of your own.',
    description: 'Bodies up to 8 MB. See worker-transactions.md.',
    body: 'Page',
    answer: 'Transaction',
    more: [409, 422, 501],
  },
  'POST /targets/:id/transaction/end': {
    operationId: 'endTransaction',
    summary: 'Returns what became of the transaction. Repeated, it returns the same.',
    answer: 'TransactionEnd',
    more: [409],
  },
  'POST /targets/:id/finish': {
    operationId: 'finish',
    summary: 'The target is done, without a further page.',
    answer: 'Nothing',
    more: [409],
  },
  'POST /targets/:id/release': {
    operationId: 'release',
    summary: 'Gives the target back: it can be claimed at once, and nothing is counted.',
    answer: 'Nothing',
    more: [409],
  },
  'POST /targets/:id/fail': {
    operationId: 'fail',
    summary: 'The page failed. The policy decides whether it is tried again.',
    body: 'TargetFailure',
    answer: 'Failed',
    more: [409],
  },
  'POST /targets/:id/park': {
    operationId: 'park',
    summary: 'Puts the target aside for an operator.',
    body: 'Park',
    answer: 'Nothing',
    more: [409],
  },
  'POST /heartbeat': {
    operationId: 'heartbeat',
    summary: 'Asks whether to stop, and which claims were lost.',
    description:
      'Answered at once, also while other calls wait. It is no evidence of life: the watchdog gives that.',
    answer: 'Beat',
  },
  'POST /log': {
    operationId: 'log',
    summary: 'Writes a line into the journal of this worker.',
    body: 'LogLine',
    answer: 'Nothing',
  },
}

const PAGE_FIELDS = {
  page: 'The page that is complete now. Higher than the last one; numbers may be left out.',
  items: 'What was found on it.',
  next: {
    description:
      'The address to go on with, relative to that of this page; null: the target is done. Either this or `done`. At most 8 KB.',
    maxLength: 8_192,
  },
  done: 'For a crawl without addresses: true after the last page.',
  lastItemId: {
    description: 'Null or left out: stays as it was. At most 1 KB.',
    maxLength: 1_024,
  },
  cursor: 'Any JSON, at most 256 KB. Left out: stays as it was.',
  skipped: 'Items that were seen and not saved. Left out: 0.',
  pageTarget: 'How many pages there will be. Null or left out: stays as it was.',
}

/** Every field of every body: its description, with what the schema of the code cannot say. */
export const BODY_FIELDS: Record<
  keyof typeof WORKER_BODIES,
  Record<string, string | (Schema & { readonly description: string })>
> = {
  NewTargets: { targets: 'At most 10,000 in one call.' },
  NewTarget: {
    key: 'What the target is known by. Left out: the canonical form of `url`. At most 1,000 bytes.',
    group: 'Targets of a group are counted and filtered together. At most 1,000 bytes.',
    url: 'The address of its first page. At most 8 KB.',
    data: 'Any JSON, at most 64 KB. It comes with each claim.',
  },
  ClaimRequest: {
    max: 'How many targets at most.',
    waitMs: 'How long to wait while there is none.',
    single: 'This program never holds more than one target: a crash counts against that target.',
  },
  Item: {
    url: 'Relative addresses are resolved against that of the page. An item needs this or `key`.',
    key: 'A key of your own; else the canonical address is the key.',
    data: 'Any JSON.',
  },
  Page: PAGE_FIELDS,
  Pages: { pages: { description: 'At most 1,000, one of each target.', 'x-unique': 'target' } },
  PageOfTarget: { target: 'The id of the target.', ...PAGE_FIELDS },
  TargetFailure: {
    error: 'What went wrong.',
    retry: 'False: the target fails at once.',
    retryAfter: 'Not before: `30s`, or the value of a Retry-After header (seconds or a date).',
  },
  Park: { error: 'Why it needs an operator.' },
  LogLine: {
    message: 'Cut after 16 KB.',
    level: 'How grave it is.',
    target: 'The id of the target that it is about.',
    fields: 'Anything else, by name.',
  },
}

/** What the schema of the code cannot say. */
const RULES: Readonly<Record<string, Schema>> = {
  NewTarget: {
    anyOf: [{ required: ['key'] }, { required: ['url'], properties: { url: { type: 'string' } } }],
  },
  Page: { oneOf: [{ required: ['next'] }, { required: ['done'] }] },
  PageOfTarget: { oneOf: [{ required: ['next'] }, { required: ['done'] }] },
}

const id = { type: 'string', description: 'The id of the target.' }
const seq = { type: 'integer', minimum: 1, description: 'The number of the checkpoint.' }
const done = {
  type: 'boolean',
  description: 'The target is done: this process no longer holds it.',
}
const stop = {
  type: 'boolean',
  description: 'True: finish the pages in progress, release the targets, exit.',
}
const text = (description: string): Schema => ({ type: 'string', description })
const nullable = (type: string, description: string): Schema => ({
  type: [type, 'null'],
  description,
})
const flag = (description: string): Schema => ({ type: 'boolean', description })

const ANSWERS: Readonly<Record<string, Schema>> = {
  Nothing: fields({}),
  Run: fields({
    run: text("The run's id."),
    source: text('The source that is worked on.'),
    planned: flag('All targets are added.'),
    input: { description: 'The JSON that the run was queued with; null without any.' },
    stop,
  }),
  Planning: fields({ planner: flag('True: add the targets, then call /targets/planned.') }),
  Added: fields({ planned: { type: 'integer', minimum: 0, description: 'How many were new.' } }),
  Claimed: fields({
    targets: { type: 'array', items: { $ref: '#/components/schemas/Target' } },
    ended: flag('True: the run has ended. Exit with 0.'),
    stop,
  }),
  Target: fields({
    id,
    key: text('As it was added.'),
    group: nullable('string', 'As it was added.'),
    url: nullable('string', 'As it was added.'),
    data: { description: 'As it was added; null without any.' },
    page: {
      type: 'integer',
      minimum: 0,
      description: 'The last saved page; 0 before the first. Go on with the next one.',
    },
    next: nullable(
      'string',
      'The address of the next page; null before the first: begin at `url`.',
    ),
    lastItemId: nullable('string', 'As last saved.'),
    cursor: { description: 'As last saved: any JSON, null when nothing was.' },
    pageTarget: nullable('integer', 'As last saved.'),
    attempt: {
      type: 'integer',
      minimum: 1,
      description: '1, and one more for each error of this page.',
    },
  }),
  Saved: fields({ seq, done }),
  Outcomes: fields({
    outcomes: {
      type: 'array',
      description: 'In the order of the pages.',
      items: {
        anyOf: [
          fields({ target: id, seq, done }),
          fields({ target: id, error: { $ref: '#/components/schemas/Reason' } }),
        ],
      },
    },
  }),
  Transaction: fields({
    statement: text('The first statement of the transaction.'),
    parameter: text('Its parameter: JSON text, to be passed on as it is.'),
    seq,
  }),
  TransactionEnd: fields({ saved: flag('The transaction was committed.'), seq, done }),
  Failed: fields({
    status: {
      enum: ['planned', 'failed', 'parked', 'done'],
      description: 'That of the target now.',
    },
    retryInMs: nullable('integer', 'When it can be claimed again; null: it will not be.'),
  }),
  Beat: fields({
    stop,
    lost: {
      type: 'array',
      items: { type: 'string' },
      description: 'Targets whose claim was lost since the last call: stop working on them.',
    },
  }),
}

function fields(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), properties }
}

/** Every code by its status, with what it means. */
export const ERROR_CODES = {
  400: {
    BAD_BODY: 'a field is wrong, missing or unknown',
    BAD_JSON: 'the body is no JSON',
    BAD_REQUEST: 'this is no HTTP/1.1 request',
  },
  401: { UNAUTHORIZED: 'no token, a wrong one, or one of an earlier process' },
  404: { NOT_FOUND: 'no such path' },
  405: { METHOD_NOT_ALLOWED: 'another method' },
  408: { TIMEOUT: 'the request came too slowly' },
  409: {
    LEASE_LOST: 'this process does not hold the target: stop working on it',
    PAGE_BEHIND: 'the page is saved already, with other content, or a later one is',
    RUN_ENDED: 'the run takes no more targets',
    NOT_PLANNER: 'another worker plans the run',
    TRANSACTION_OPEN: 'end the transaction of this target first',
    NO_TRANSACTION: 'no transaction was begun',
  },
  413: { BODY_TOO_LARGE: '8 MB for pages and targets, 256 KB for the others' },
  415: { NOT_JSON: 'the body must have Content-Type: application/json' },
  421: { MISDIRECTED: 'the Host header is not that of UNSTUCK_URL' },
  422: { PAGE_REJECTED: 'the content cannot be stored' },
  429: { TOO_MANY_CALLS: 'wait for answers before the next call' },
  431: { HEADERS_TOO_LARGE: 'at most 16 KB' },
  500: { UNEXPECTED: 'the log of Unstuck has the reason; the call may be sent again' },
  501: { NEEDS_POSTGRES: 'only with PostgreSQL' },
  503: { STOPPING: 'Unstuck no longer serves this process' },
} as const
type ErrorStatus = keyof typeof ERROR_CODES

/** Every call can have these. */
const COMMON: readonly ErrorStatus[] = [400, 401, 408, 413, 415, 421, 431, 500]
/** These too, if it waits for its turn. */
const QUEUED: readonly ErrorStatus[] = [429, 503]
/** These stand for no call. */
const NO_CALL: readonly ErrorStatus[] = [404, 405]
const HEADERS: Partial<Record<ErrorStatus, string>> = {
  401: 'WWW-Authenticate',
  405: 'Allow',
  429: 'Retry-After',
}

const ALL_CODES = Object.values(ERROR_CODES).flatMap((codes) => Object.keys(codes))

export function buildWorkerApiDocument(): Schema {
  const paths: Record<string, Record<string, Schema>> = {}
  for (const { method, path, skipsQueue } of WORKER_ROUTES) {
    const documented = inDocument(path)
    const methods = (paths[documented] ??= {})
    methods[method.toLowerCase()] = operation(
      CALLS[`${method} ${path}`]!,
      path,
      skipsQueue === true,
    )
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'The HTTP API of a worker',
      version: '1',
      summary:
        'How a command that `unstuck work --exec --targets` started claims targets and saves their pages.',
      description:
        'The command finds the base address in UNSTUCK_URL and the token in UNSTUCK_TOKEN. Every answer is JSON. Fields may be added to answers; none is renamed or given another meaning. A path that is not listed here is answered with 404, another method than the listed one with 405.',
    },
    servers: [
      {
        url: 'http://127.0.0.1:{port}/{worker}',
        description: 'UNSTUCK_URL, as it is.',
        variables: {
          port: { default: '0' },
          worker: { default: '00000000-0000-0000-0000-000000000000' },
        },
      },
    ],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'UNSTUCK_TOKEN. Good for one process, until it has ended.',
        },
      },
      schemas: {
        ...bodySchemas(),
        ...ANSWERS,
        Reason: fields({
          code: {
            type: 'string',
            enum: ALL_CODES.toSorted(),
            description: 'Stable, for programs.',
          },
          message: text('What happened, why, and what to do.'),
        }),
        Error: fields({ error: { $ref: '#/components/schemas/Reason' } }),
      },
      responses: Object.fromEntries(
        Object.entries(ERROR_CODES).map(([status, codes]) => [
          `Error${status}`,
          errorResponse(Number(status) as ErrorStatus, codes),
        ]),
      ),
    },
  }
}

function operation(
  { operationId, summary, description, body, answer, more = [] }: Call,
  path: string,
  skipsQueue: boolean,
): Schema {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const waits = skipsQueue ? [] : QUEUED
  const statuses = [...COMMON, ...waits, ...more].toSorted((a, b) => a - b)
  return {
    operationId,
    summary,
    ...(description !== undefined && { description }),
    ...(names.length > 0 && {
      parameters: names.map((name) => ({ name, in: 'path', required: true, schema: id })),
    }),
    ...(path !== '/' && {
      requestBody: { required: body !== undefined, ...contentOf(body ?? 'NoBody') },
    }),
    responses: {
      200: { description: 'It is done.', ...contentOf(answer) },
      ...Object.fromEntries(
        statuses.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]),
      ),
    },
  }
}

function errorResponse(status: ErrorStatus, codes: Readonly<Record<string, string>>): Schema {
  const header = HEADERS[status]
  const meanings = Object.entries(codes).map(([code, meaning]) => `${code}: ${meaning}.`)
  return {
    ...(NO_CALL.includes(status) && { 'x-status': status }),
    description: meanings.join(' '),
    ...(header !== undefined && { headers: { [header]: { schema: { type: 'string' } } } }),
    ...contentOf('Error'),
  }
}

/** The schemas of the code, with their descriptions. */
function bodySchemas(): Record<string, Schema> {
  const made = toJsonSchemaDefs(WORKER_BODIES, {
    target: 'draft-2020-12',
    // Checks in code have no words there; `RULES` has them.
    errorMode: 'ignore',
    typeMode: 'input',
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
  })
  const described = Object.entries(made).map(([name, schema]) => {
    const about = BODY_FIELDS[name as keyof typeof WORKER_BODIES]
    const properties = Object.entries(schema.properties ?? {}).map(([field, one]) => [
      field,
      { ...(one as Schema), ...describedBy(about[field]!) },
    ])
    return [name, { ...schema, properties: Object.fromEntries(properties), ...RULES[name] }]
  })
  const none = { type: 'object', properties: {}, additionalProperties: false }
  return { ...Object.fromEntries(described), NoBody: none }
}

function describedBy(about: string | Schema): Schema {
  return typeof about === 'string' ? { description: about } : about
}

function contentOf(name: string): Schema {
  return { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } }
}
