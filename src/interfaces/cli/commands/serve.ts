import { isUnusable, messageOf, UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import type { UnstuckEvent } from '../../../core/model/event.ts'
import { describeEvent } from '../../../presenters/event.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { BackgroundRecovery, startServices } from '../../../app/background-recovery.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import { createApp } from '../../http/app.ts'
import { normalizeBasePath } from '../../http/mount-options.ts'
import type { AuthOptions } from '../../http/auth.ts'
import { makeHostCheck, isLoopback } from '../../../lib/http/host-check.ts'
import { HttpServer } from '../../http/server.ts'
import { TokenFile, readTokens, tokensPath } from '../../../app/tokens.ts'
import type { Store } from '../../../core/store/store.ts'
import { SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import { makeSettings } from '../../../app/config.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const options = {
  port: option.count('N', 'where it listens; 0 for any free one', 4600, { min: 0, max: 65_535 }),
  host: option.text('ADDRESS', 'another one than 127.0.0.1 needs a token: unstuck tokens add'),
  basePath: option.text('PATH', 'below which it is reached, as in /unstuck'),
  allowHost: option.texts('NAME', 'a name that it is called by, as in unstuck.example.com'),
  readOnly: SHARED_OPTIONS.readOnly,
  trustProxy: option.flag('trust the headers of a proxy in front about address and scheme'),
  monitor: option.unless('do not recover dead workers and runs while it serves'),
}
type Serve = CliContext<{}, typeof options>

/** Stops with the server. */
type Service = { stop(): Promise<void> }

const LOOPBACK = '127.0.0.1'
const STOP_DEADLINE_MS = 10_000
const STORE_POLL_MS = 2_000

export const command = defineCommand({
  examples: [
    'unstuck serve                              # http://127.0.0.1:4600, for this machine alone',
    'unstuck tokens add maria --role operator && unstuck serve --host 0.0.0.0',
    'unstuck serve --base-path /unstuck --allow-host ops.example.com --trust-proxy',
  ],
  options,
  ignoresClosedPipe: true,

  async run(context) {
    const { output, database } = context
    const log = (line: string): void => output.note(`[unstuck] ${line}`)
    const stopped = untilStopped(log)
    // Reports a mistake in the config now, not to the first caller.
    const settings = await context.settings()
    const db = await database.address()
    const { host = LOOPBACK, port, monitor, readOnly } = context.options
    const open = () => database.openAll({ readOnly })
    const basePath = normalizeBasePath(context.options.basePath ?? '')
    const app = createApp({
      auth: await makeAuthOptions(context, basePath, log),
      open,
      settings: context.settings,
      dataFolder: async () => dataFolder(db, process.cwd()),
      basePath,
      log,
    })
    const server = new HttpServer(app, { host, port })
    const url = `${await server.start()}${basePath}/`
    const emit = (event: UnstuckEvent): void => logEvent(event, log)
    const lost = Promise.withResolvers<never>()
    const recovery = new BackgroundRecovery(db, settings.overrides, emit, REAL_CLOCK, lost.reject)
    // A read-only server recovers nothing and sends no alerts: both write to the database.
    const services: Service[] = [recovery]
    let watch: NodeJS.Timeout | undefined
    const manager = new SystemdNotifier({
      isHealthy: () => true,
      status: () => `serving ${url}`,
      log,
    })
    try {
      await announce(context, url)
      manager.ready()
      await open().catch((error: unknown) => log(messageOf(error)))
      if (monitor && !readOnly) recovery.start()
      if (!readOnly)
        services.push(
          await startServices({
            process: 'server',
            recovers: monitor,
            settings,
            open,
            worker: () => recovery.worker,
            emit,
            log,
            clock: REAL_CLOCK,
          }),
        )
      watch = watchStore(open, lost.reject)
      await Promise.race([stopped, lost.promise])
      manager.stopping()
    } finally {
      clearInterval(watch)
      await Promise.all([server, ...services].map((service) => service.stop()))
      await manager.close()
    }
    return EXIT.done
  },
})

/** Calls `onLost` when a database that was open cannot be used any more. */
function watchStore(open: () => Promise<Store>, onLost: (error: unknown) => void): NodeJS.Timeout {
  let wasThere = false
  const look = async (): Promise<void> => {
    const store = await open()
    wasThere = true
    await store.sourceLocks('')
  }
  return setInterval(() => {
    void look().catch((error: unknown) => {
      if (wasThere && isUnusable(error)) onLost(error)
    })
  }, STORE_POLL_MS)
}

/** S1: callers from other machines need a token, so there must be one before the server listens for them. */
async function makeAuthOptions(
  context: Serve,
  basePath: string,
  log: (line: string) => void,
): Promise<AuthOptions> {
  const { host = LOOPBACK, allowHost, readOnly, trustProxy } = context.options
  const path = tokensPath(dataFolder(await context.database.address(), process.cwd()))
  const tokens = new TokenFile(path, process.env['UNSTUCK_ADMIN_TOKEN'], log)
  // Reports a file that is invalid, or that other users can read, now.
  readTokens(path)
  const isPrivate = isLoopback(host) && allowHost.every(isLoopback) && !trustProxy
  if (!isPrivate && tokens.isEmpty()) {
    throw new UsageError(
      `Others than this machine could reach it ${tokenReason(context.options)}, and there is no token. ` +
        'Make one first: unstuck tokens add NAME --role operator. In a container, set UNSTUCK_ADMIN_TOKEN.',
    )
  }
  return {
    tokens,
    isPrivate,
    isKnownHost: makeHostCheck(host, allowHost),
    trustProxy,
    readOnly,
    path: basePath || '/',
  }
}

function tokenReason({ host = LOOPBACK, trustProxy }: Serve['options']): string {
  if (!isLoopback(host)) return `at ${host}`
  return trustProxy ? 'through a proxy (--trust-proxy)' : 'by another name (--allow-host)'
}

function logEvent(event: UnstuckEvent, log: (line: string) => void): void {
  const text = describeEvent(event)
  if (text !== null) log(text)
}

async function announce({ json, output, options }: Serve, url: string): Promise<void> {
  if (json) await output.write(`${safeJson({ url })}\n`)
  output.note(`[unstuck] serving ${url}${options.readOnly ? ', read-only' : ''}. Ctrl-C ends it.`)
}

/** Resolves with the first signal; the second ends at once. */
function untilStopped(log: (line: string) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let asked = 0
  const ask = (by: string): void => {
    if (++asked > 1) process.exit(EXIT.done)
    log(`${by}: answering what is under way, then stopping.`)
    setTimeout(() => process.exit(EXIT.done), STOP_DEADLINE_MS).unref()
    resolve()
  }
  process.on('SIGTERM', ask).on('SIGINT', ask)
  // A process manager that held a channel to us is gone: its next copy would find the port taken.
  process.once('disconnect', () => ask('the process manager is gone'))
  return promise
}

/** Serves the dashboard on a free port of this machine. */
export async function openDashboard(
  store: Store,
  dataFolder: string,
): Promise<{ url: string; close(): Promise<void> }> {
  const settings = await makeSettings({}, null)
  const app = createApp({
    auth: {
      tokens: new TokenFile(null, undefined, () => {}),
      isPrivate: true,
      isKnownHost: makeHostCheck(LOOPBACK, []),
      trustProxy: false,
      readOnly: false,
      path: '/',
    },
    open: async () => store,
    settings: async () => settings,
    dataFolder: async () => dataFolder,
  })
  const server = new HttpServer(app, { host: LOOPBACK, port: 0 })
  return { url: await server.start(), close: () => server.stop() }
}
