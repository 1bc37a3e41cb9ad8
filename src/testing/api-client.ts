import assert from 'node:assert/strict'
import type { WorkerId } from '../core/model/id.ts'
import { ALL_ROUTES } from './all-routes.ts'
import { thisProcess } from '../core/host/identity.ts'
import { registerWorker } from './fixtures.ts'
import {
  createHttpTestContext,
  type HttpTestContext,
  type HttpTestOptions,
} from './http-test-context.ts'
import { HTTP_API_DOCUMENT, inDocument, OpenApi, type OpenApiResponse } from './open-api.ts'
import { unstuck } from './unstuck-cli.ts'

/** An admin client of the API, with a command line on the same database. */
export type ApiClient = AsyncDisposable & {
  readonly ctx: HttpTestContext
  /** The response with this status. A successful one has exactly the documented fields. */
  get(path: string, status?: number): Promise<any>
  post(path: string, body?: unknown, status?: number): Promise<any>
  del(path: string, body?: unknown, status?: number): Promise<any>
  /** What the command line prints with `--json`, whatever its exit code. */
  cli(...args: string[]): Promise<any>
  /** A worker in this process that will not fall silent while a test lasts. */
  registerLiveWorker(source: string): Promise<WorkerId>
  /** A worker whose process is proven gone. */
  registerDeadWorker(source: string): Promise<WorkerId>
}

export async function createApiClient(options: HttpTestOptions = {}): Promise<ApiClient> {
  const ctx = await createHttpTestContext(options)
  const { store } = ctx
  const me = thisProcess()
  const document = new OpenApi(HTTP_API_DOCUMENT)
  const call = async (
    method: string,
    path: string,
    body: unknown,
    wanted: number | undefined,
  ): Promise<any> => {
    const heard = await ctx.call(method, path, { as: 'admin', body })
    const route = routeOf(method, path)
    const status = wanted ?? route.status ?? 200
    assert.equal(heard.status, status, `${method} ${path}: ${JSON.stringify(heard.body)}`)
    if (status >= 400) assert.match(heard.body.error.code, /^[A-Z_]+$/)
    else if (route.response) {
      const operation = document.paths[inDocument(route.path)]![method.toLowerCase()]!
      const { content } = operation.responses[status] as OpenApiResponse
      const { schema } = content['application/json']!
      assert.deepEqual(document.validationErrors(heard.body, schema, { strict: true }), [], path)
    }
    return heard.body
  }
  return {
    ctx,
    get: (path, status) => call('GET', path, undefined, status),
    post: (path, body = {}, status) => call('POST', path, body, status),
    del: (path, body = {}, status) => call('DELETE', path, body, status),
    async cli(...args) {
      const said = await unstuck([...args, '--json', '--db', ctx.database.url], {
        cwd: ctx.folder,
      })
      assert.equal(said.stderr, '', args.join(' '))
      return JSON.parse(said.stdout)
    },
    registerLiveWorker: (source) => registerWorker(store, { source, leaseMs: 600_000 }),
    registerDeadWorker: (source) =>
      registerWorker(store, {
        source,
        leaseMs: 600_000,
        process: { ...me, pid: 2 ** 22 - 7, startTicks: 1 },
      }),
    [Symbol.asyncDispose]: () => ctx[Symbol.asyncDispose](),
  }
}

function routeOf(method: string, path: string) {
  const parts = path.split('?')[0]!.split('/')
  const fits = (pattern: string): boolean => {
    const wanted = pattern.split('/')
    return (
      wanted.length === parts.length &&
      wanted.every((part, n) => part.startsWith(':') || part === parts[n])
    )
  }
  const found = ALL_ROUTES.find((route) => route.method === method && fits(route.path))
  assert.ok(found, `no route for ${method} ${path}`)
  return found
}

/** The sentences of an answer as one text. */
export function textOf({ sections }: { sections: { sentences: string[] }[] }): string {
  return sections.flatMap(({ sentences }) => sentences).join(' ')
}
