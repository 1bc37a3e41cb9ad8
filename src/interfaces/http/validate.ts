import * as v from 'valibot'
import { closest } from '../../core/model/closest.ts'
import { badRequest, notJson, notFound, tooLarge } from './http-error.ts'
import type { Route, Schema } from './route.ts'
import { isJsonType, parseJson } from '../../lib/http/json-bytes.ts'

const BODY_MAX = 256 * 1_024
const MISTAKES_MAX = 10

/** What stands in the path cannot be there at all when it is not even a name for it. */
export function readParams(route: Route, params: Readonly<Record<string, string>>): unknown {
  const read = checkSchema(route.params ?? EMPTY, params, '')
  if (read.mistakes.length > 0) throw notFound(read.mistakes)
  return read.value
}

/** Given once it is text, given several times a list. */
export function readQuery(route: Route, search: URLSearchParams): unknown {
  const given: Record<string, unknown> = {}
  for (const name of new Set(search.keys())) {
    const values = search.getAll(name)
    // Nothing that is searched for holds one, and PostgreSQL takes it for a mistake of ours.
    if (values.some((value) => value.includes('\0')))
      throw badRequest([`${quoteName(name)} has a NUL`])
    Object.defineProperty(given, name, {
      value: values.length === 1 ? values[0] : values,
      enumerable: true,
    })
  }
  return orThrow(checkSchema(route.query ?? EMPTY, given, ''))
}

/** Every mistake is named at once. */
export function readBody(schema: Schema | undefined, json: unknown): unknown {
  return orThrow(checkSchema(schema ?? EMPTY, json === undefined ? {} : json, 'the body'))
}

/** The body of a change: JSON and nothing else, so that no form and no script of another site can send it. */
export async function readJson(request: Request): Promise<unknown> {
  const { headers, body } = request
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (!isJsonType(headers.get('content-type')) || encoding !== 'identity') throw notJson()
  if (Number(headers.get('content-length') ?? 0) > BODY_MAX) throw tooLarge(BODY_MAX)
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > BODY_MAX) throw tooLarge(BODY_MAX)
    chunks.push(chunk)
  }
  if (size === 0) return undefined
  return parseJson(Buffer.concat(chunks), (reason) =>
    badRequest([`the body cannot be read as JSON: ${reason}`]),
  )
}

const EMPTY = v.strictObject({})

type CheckResult = { readonly value: unknown; readonly mistakes: readonly string[] }

function checkSchema(schema: Schema, value: unknown, rootName: string): CheckResult {
  // To valibot a list is an object too.
  if (Array.isArray(value)) return { value, mistakes: [`${rootName} must be an object`] }
  const unknown = unknownKeys(schema, value)
  const read = v.safeParse(schema, value)
  const issues = (read.issues ?? []).filter(
    // The strict ones say it too, in fewer words.
    (issue) => !(issue.expected === 'never' && issue.path?.length === 1),
  )
  return {
    value: read.output,
    mistakes: [...unknown, ...issues.map((issue) => describeIssue(issue, rootName))],
  }
}

function orThrow({ value, mistakes }: CheckResult): unknown {
  if (mistakes.length === 0) return value
  const more = mistakes.length - MISTAKES_MAX
  throw badRequest(
    more > 0 ? [...mistakes.slice(0, MISTAKES_MAX), `${more} more mistakes`] : mistakes,
  )
}

/** A name that is not known is a mistake, not something to pass over. */
function unknownKeys(schema: Schema, value: unknown): string[] {
  if (!('entries' in schema) || typeof value !== 'object' || value === null) return []
  const names = Object.keys(schema.entries as object)
  return Object.keys(value)
    .filter((name) => !names.includes(name))
    .map((name) => {
      const meant = closest(name, names)
      const hint = meant ? `did you mean ${meant}?` : `there are ${names.join(', ') || 'none'}`
      return `there is no ${quoteName(name)}; ${hint}`
    })
}

/** The schemas' own words go on from the name; valibot's are put so that they do. Never what was sent. */
function describeIssue(issue: v.BaseIssue<unknown>, rootName: string): string {
  const name = v.getDotPath(issue) ?? rootName
  const isOwn = !issue.message.startsWith('Invalid ')
  return `${name} ${isOwn ? issue.message : `must be ${issue.expected ?? 'something else'}`}`.trim()
}

function quoteName(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
}
