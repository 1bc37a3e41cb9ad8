import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'

export const HTTP_API_DOCUMENT = new URL(
  '../../docs/reference/http-api.openapi.json',
  import.meta.url,
)

/** Holds an OpenAPI document to real calls: as much of JSON Schema as the documents here use, and not a keyword more. */

export type Schema = { readonly [keyword: string]: unknown }

type Operation = {
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Record<string, { readonly schema: Schema }>
  }
  readonly responses: Record<string, Schema>
}

export type OpenApiResponse = {
  readonly 'x-status'?: number
  readonly headers?: Record<string, unknown>
  readonly content: Record<string, { readonly schema: Schema }>
}

export type Exchange = {
  readonly method: string
  /** Without the base address. */
  readonly path: string
  /** What was sent, where it was JSON. */
  readonly sent?: unknown
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: unknown
}

/** Asserts that a value is what the document of the HTTP API has under this name, with every field. */
export function assertDocumented(name: string, value: unknown): void {
  const document = new OpenApi(HTTP_API_DOCUMENT)
  const schema = { $ref: `#/components/schemas/${name}` }
  assert.deepEqual(document.validationErrors(value, schema, { strict: true }), [])
}

export class OpenApi {
  readonly paths: Record<string, Record<string, Operation>>
  readonly schemas: Record<string, Schema>
  readonly responses: Record<string, OpenApiResponse>
  readonly #root: Schema

  constructor(file: string | URL) {
    const root = JSON.parse(readFileSync(file, 'utf8'))
    assert.match(root.openapi, /^3\.1\./)
    this.#root = root
    this.paths = root.paths
    this.schemas = root.components.schemas
    this.responses = root.components.responses
  }

  /** Every status of an operation, and those of calls that no operation stands for. */
  statuses(): number[] {
    const ofOperations = Object.values(this.paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ responses }) => Object.keys(responses).map(Number)),
    )
    const others = Object.values(this.responses).flatMap((response) => response['x-status'] ?? [])
    return [...new Set([...ofOperations, ...others])].sort((a, b) => a - b)
  }

  /** What was answered is documented, with every field of it; what was accepted is a body as documented. */
  assertMatches(exchange: Exchange): void {
    const { method, path, status, body, sent } = exchange
    const what = `${method} ${path} → ${status} ${JSON.stringify(body).slice(0, 300)}`
    const operation = this.paths[path]?.[method.toLowerCase()]
    const response = this.#responseTo(exchange, operation)
    assert.ok(response, `${what} is not documented`)
    const [type, content] = Object.entries(response.content)[0]!
    assert.equal(exchange.headers['content-type'], type, what)
    for (const header of Object.keys(response.headers ?? {})) {
      assert.ok(exchange.headers[header.toLowerCase()], `${what} has no ${header}`)
    }
    assert.deepEqual(this.validationErrors(body, content.schema, { strict: true }), [], what)

    const wanted = operation?.requestBody
    if (!wanted) return
    const wrong = sent === undefined ? wanted.required : !this.#isAccepted(wanted, sent)
    if (status === 200) assert.ok(!wrong, `${what}: accepted, against the document`)
    const { code } = (body as { error?: { code: string } }).error ?? {}
    if (code === 'BAD_BODY') assert.ok(wrong, `${what}: refused, against the document`)
  }

  /** Why a value does not fit. `strict`: a field that the schema does not name is a mistake too. */
  validationErrors(value: unknown, schema: Schema, { strict = false } = {}, at = 'it'): string[] {
    const found: string[] = []
    const inner = (part: unknown, schema: Schema, name: string): void => {
      found.push(...this.validationErrors(part, schema, { strict }, `${at}${name}`))
    }
    const says = (isRight: boolean, rule: string): void => {
      if (!isRight) found.push(`${at}: ${rule}`)
    }
    for (const [keyword, rule] of Object.entries(schema)) {
      switch (keyword) {
        case 'description':
        case 'default':
          break
        case 'format':
          says(typeof value !== 'string' || !Number.isNaN(Date.parse(value)), `no ${rule}`)
          break
        case 'propertyNames':
          for (const name of isObject(value) ? Object.keys(value) : []) {
            inner(name, rule as Schema, `.${name} as a name`)
          }
          break
        case '$ref':
          inner(value, this.#resolve(rule as string), '')
          break
        case 'type':
          says(
            [rule].flat().some((type) => isOfType(value, type as string)),
            `is no ${rule}`,
          )
          break
        case 'enum':
          says(
            (rule as unknown[]).some((one) => isDeepStrictEqual(one, value)),
            'is none of the list',
          )
          break
        case 'minimum':
          says(typeof value !== 'number' || value >= (rule as number), `below ${rule}`)
          break
        case 'maximum':
          says(typeof value !== 'number' || value <= (rule as number), `above ${rule}`)
          break
        case 'minLength':
          says(
            typeof value !== 'string' || value.length >= (rule as number),
            `shorter than ${rule}`,
          )
          break
        case 'maxLength':
          says(typeof value !== 'string' || value.length <= (rule as number), `longer than ${rule}`)
          break
        case 'x-unique': {
          const values = Array.isArray(value) ? value.map((one) => one?.[rule as string]) : []
          says(new Set(values).size === values.length, `has a ${rule} twice`)
          break
        }
        case 'maxItems':
          says(
            !Array.isArray(value) || value.length <= (rule as number),
            `has more than ${rule} entries`,
          )
          break
        case 'pattern':
          says(typeof value !== 'string' || new RegExp(rule as string).test(value), `not ${rule}`)
          break
        case 'items':
          if (Array.isArray(value)) value.forEach((one, n) => inner(one, rule as Schema, `[${n}]`))
          break
        case 'required':
          for (const name of rule as string[]) {
            says(!isObject(value) || Object.hasOwn(value, name), `has no ${name}`)
          }
          break
        case 'properties':
          if (!isObject(value)) break
          for (const [name, part] of Object.entries(value)) {
            const own =
              Object.hasOwn(rule as object, name) && (rule as Record<string, Schema>)[name]
            if (own) inner(part, own, `.${name}`)
            else if (!schema['additionalProperties'])
              says(!strict && schema['additionalProperties'] !== false, `has ${name}`)
          }
          break
        case 'additionalProperties':
          if (rule === true) break
          if (rule === false) {
            assert.ok(schema['properties'])
            break
          }
          for (const [name, part] of isObject(value) ? Object.entries(value) : []) {
            if (!Object.hasOwn(schema['properties'] ?? {}, name))
              inner(part, rule as Schema, `.${name}`)
          }
          break
        case 'anyOf':
          says(
            (rule as Schema[]).some(
              (one) => this.validationErrors(value, one, { strict }).length === 0,
            ),
            'fits none of its forms',
          )
          break
        case 'oneOf':
          says(
            (rule as Schema[]).filter((one) => this.validationErrors(value, one).length === 0)
              .length === 1,
            'does not fit exactly one of its forms',
          )
          break
        default:
          assert.fail(`this check does not know ${keyword}`)
      }
    }
    return found
  }

  #responseTo({ status }: Exchange, operation: Operation | undefined): OpenApiResponse | undefined {
    if (status === 404 || status === 405) {
      return Object.values(this.responses).find((response) => response['x-status'] === status)
    }
    // An unreadable request matches no operation: the status must be documented for at least one.
    const operations = operation ? [operation] : Object.values(this.paths).flatMap(Object.values)
    const response = operations.map(({ responses }) => responses[status]).find(Boolean)
    const ref = response?.['$ref']
    return (typeof ref === 'string' ? this.#resolve(ref) : response) as OpenApiResponse | undefined
  }

  #isAccepted({ content }: NonNullable<Operation['requestBody']>, sent: unknown): boolean {
    return this.validationErrors(sent, content['application/json']!.schema).length === 0
  }

  #resolve(ref: string): Schema {
    const found = ref
      .split('/')
      .slice(1)
      .reduce<any>((node, name) => node?.[name], this.#root)
    assert.ok(found, `${ref} leads nowhere`)
    return found
  }
}

/** `/api/runs/:run` as the document has it. */
export function inDocument(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}
