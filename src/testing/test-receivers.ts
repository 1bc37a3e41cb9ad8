import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

/** What the tests send alerts to: real servers that keep what they get. */

type Received = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body, read as JSON. */
  readonly body: any
}

/** Resolves when so many have come, and answers them all. */
type Inbox<T> = { readonly received: T[]; wait(count: number): Promise<T[]> }

function makeInbox<T>(): Inbox<T> & { add(one: T): void } {
  const all: T[] = []
  let waiting: (() => void)[] = []
  return {
    received: all,
    add(one) {
      all.push(one)
      for (const go of waiting.splice(0)) go()
      waiting = []
    },
    async wait(count) {
      while (all.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
      return all
    },
  }
}

export type HttpSink = AsyncDisposable &
  Inbox<Received> & {
    readonly url: string
    readonly port: number
    /** How the next calls are answered; `hang`: not at all. */
    reply: number | 'hang' | { status: number; headers?: Record<string, string>; body?: string }
  }

export async function httpSink(): Promise<HttpSink> {
  const received = makeInbox<Received>()
  const server: Server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (more: string) => (text += more))
    request.once('end', () => {
      const { reply } = sink
      const { url: path = '', headers } = request
      received.add({ path, headers, text, body: JSON.parse(text) })
      if (reply === 'hang') return
      const how = typeof reply === 'number' ? { status: reply } : reply
      response.writeHead(how.status, how.headers ?? {}).end(how.body ?? 'ok')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sink: HttpSink = {
    ...received,
    port,
    url: `http://127.0.0.1:${port}`,
    reply: 200,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return sink
}

type Mail = { readonly from: string; readonly to: string[]; readonly source: string }
export type MailSink = AsyncDisposable & Inbox<Mail> & { readonly port: number; hangs: boolean }

/** Accepts mail from any user, or from one. `secure`: over TLS, with a self-signed certificate. */
export async function mailSink(
  user?: { name: string; password: string },
  secure = false,
): Promise<MailSink> {
  const received = makeInbox<Mail>()
  const server = new SMTPServer({
    secure,
    disabledCommands: ['STARTTLS'],
    authOptional: user === undefined,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      username === user?.name && password === user?.password
        ? done(null, { user: username })
        : done(new Error(`no: ${password}`)),
    onConnect: (_session, done) => {
      if (!sink.hangs) done()
    },
    onData: (stream, { envelope }, done) => {
      let source = ''
      stream.setEncoding('utf8').on('data', (text: string) => (source += text))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = envelope
        received.add({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          source,
        })
        done()
      })
    },
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const sink: MailSink = {
    ...received,
    port: (server.server.address() as AddressInfo).port,
    hangs: false,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
  return sink
}
