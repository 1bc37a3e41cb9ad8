import { makeSettings } from '../app/config.ts'
import { createApp, type AppOptions } from '../interfaces/http/app.ts'
import type { AuthOptions } from '../interfaces/http/auth.ts'
import { makeHostCheck } from '../lib/http/host-check.ts'
import type { Role } from '../lib/http/role.ts'
import { HttpServer, type ServerOptions } from '../interfaces/http/server.ts'
import { TokenFile, addToken, tokensPath } from '../app/tokens.ts'
import type { Store } from '../core/store/store.ts'
import { sqliteEngine, temporaryFolder } from './sqlite-engine.ts'
import type { Engine, TestDatabase } from './test-database.ts'

export type HttpTestOptions = {
  readonly engine?: Engine
  /** False: there is none, so every caller is local. */
  readonly tokens?: false
  /** The file of another server's tokens, instead of its own. */
  readonly tokensPath?: string
  readonly auth?: Partial<AuthOptions>
  readonly app?: Partial<AppOptions>
  readonly limits?: ServerOptions['limits']
}

type CallOptions = {
  /** With the token of this role. */
  readonly as?: Role | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}
export type CallResult = { readonly status: number; readonly headers: Headers; readonly body: any }

/** The whole app on a port of its own, over a database of its own. */
export type HttpTestContext = AsyncDisposable & {
  readonly url: string
  readonly database: TestDatabase
  readonly store: Store
  /** Where tokens, journals and the output of commands are. */
  readonly folder: string
  readonly log: readonly string[]
  readonly tokens: Readonly<Record<Role, string>>
  readonly server: HttpServer
  /** A call in JSON, and its answer read to the end. */
  call(method: string, path: string, options?: CallOptions): Promise<CallResult>
}

export async function createHttpTestContext(
  options: HttpTestOptions = {},
): Promise<HttpTestContext> {
  const database = await (options.engine ?? sqliteEngine).fresh()
  const store = await database.open()
  const folder = temporaryFolder()
  const log: string[] = []
  const path = options.tokensPath ?? tokensPath(folder.path)
  const hasOwn = options.tokens !== false && options.tokensPath === undefined
  const make = (role: Role): string => (!hasOwn ? '' : addToken(path, `the-${role}`, role))
  const tokens = { viewer: make('viewer'), operator: make('operator'), admin: make('admin') }
  const app = createApp({
    auth: {
      tokens: new TokenFile(path, undefined, (line) => log.push(line)),
      isPrivate: true,
      isKnownHost: makeHostCheck('127.0.0.1', []),
      trustProxy: false,
      readOnly: false,
      path: options.app?.basePath || '/',
      ...options.auth,
    },
    open: async () => store,
    settings: async () => makeSettings({}, null),
    dataFolder: async () => folder.path,
    log: (line) => log.push(line),
    ...options.app,
  })
  const { limits = {} } = options
  const server = new HttpServer(app, { host: '127.0.0.1', port: 0, limits })
  const url = await server.start()
  return {
    url,
    database,
    store,
    folder: folder.path,
    log,
    tokens,
    server,
    call: (method, at, asked) => call(method, `${url}${at}`, tokens, asked),
    async [Symbol.asyncDispose]() {
      await server.stop()
      await database[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

async function call(
  method: string,
  url: string,
  tokens: HttpTestContext['tokens'],
  { as, body, headers }: CallOptions = {},
): Promise<CallResult> {
  const isChange = method !== 'GET' && method !== 'HEAD'
  const response = await fetch(url, {
    method,
    headers: {
      ...(as && { authorization: `Bearer ${tokens[as]}` }),
      ...(isChange && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(isChange && { body: JSON.stringify(body === undefined ? {} : body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== '' ? JSON.parse(text) : text,
  }
}
