import { setTimeout as sleep } from 'node:timers/promises'
import type { BackgroundService, ServiceHost } from '../contracts/feature.ts'
import { HeartbeatClient } from '../core/heartbeat/client.ts'
import { heartbeatOptions, threadTransport } from '../core/heartbeat/transport.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { messageOf, isUnusable, type UnstuckError } from '../core/model/errors.ts'
import type { UnstuckEvent, Emit } from '../core/model/event.ts'
import { newId, type WorkerId } from '../core/model/id.ts'
import type { PolicyOverrides } from '../core/model/policy-of.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { FEATURES } from '../features/index.ts'
import { databaseAddress } from '../lib/files/config-file.ts'
import { describeEvent } from '../presenters/event.ts'
import { loadSettings } from './config.ts'
import { openAll } from './open-database.ts'
import { loadOnce } from '../lib/load-once.ts'
import { recoverOnStart, toStdout, type RecoverOnStartOptions } from './recover-on-start.ts'

/** Options of `register`. */
export type BackgroundRecoveryOptions = RecoverOnStartOptions & {
  /** Keep recovering while the process lives; `false`: only at its start. @default true */
  monitor?: boolean | undefined
}

/**
 * For a server without a shutdown hook: recovers what is dead at its start, then recovers workers, runs and tables of your own
 * and sends alerts for as long as the process lives. Never throws, and keeps no process from ending.
 */
export async function startBackgroundRecovery(
  options: BackgroundRecoveryOptions = {},
): Promise<void> {
  const { monitor = true, ...atStart } = options
  const { db, config, dryRun = false, log = toStdout } = atStart
  const { error } = await recoverOnStart({ ...atStart, log })
  if (!monitor || dryRun) return
  const logSafely = (line: string): void => void Promise.try(() => log(line)).catch(() => {})
  try {
    const settings = await loadSettings(process.cwd(), config)
    const address = databaseAddress(db, settings)
    const emit = (event: UnstuckEvent): void => {
      const text = describeEvent(event)
      if (text !== null) logSafely(text)
    }
    const open = loadOnce(() => openAll({ settings, address, log: logSafely }, { connections: 1 }))
    const backgroundRecovery = new BackgroundRecovery(
      address,
      settings.overrides,
      emit,
      UNREF_CLOCK,
    )
    backgroundRecovery.start()
    await startServices({
      process: 'server',
      recovers: true,
      settings,
      open,
      worker: () => backgroundRecovery.worker,
      emit,
      log: logSafely,
      clock: UNREF_CLOCK,
    })
  } catch (failure) {
    // The recovery at the start has logged an invalid config.
    if (messageOf(failure) !== error?.message)
      logSafely(`background recovery could not start: ${messageOf(failure)}`)
  }
}

/** A pause does not keep a server alive that has closed. */
const UNREF_CLOCK: Clock = {
  ...REAL_CLOCK,
  sleep: async (ms, wake) => {
    const options = { ref: false, ...(wake && { signal: wake }) }
    await sleep(Math.max(0, ms), undefined, options).catch(() => {})
  },
}

const RETRY_MS = 2_000
const RETRY_MAX_MS = 30_000

/** Recovers dead workers while a process runs that claims no work itself, such as a server. */
export class BackgroundRecovery {
  readonly #db: string
  readonly #overrides: PolicyOverrides
  readonly #emit: Emit
  readonly #onUnusable: (error: UnstuckError) => void
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  #running: Promise<void> | null = null
  #worker: WorkerId | null = null
  #lastError = ''
  #retryMs = RETRY_MS

  /** `onUnusable`: the database was lost; nothing is retried. */
  constructor(
    db: string,
    overrides: PolicyOverrides,
    emit: Emit,
    clock: Clock = REAL_CLOCK,
    onUnusable: (error: UnstuckError) => void = () => {},
  ) {
    this.#db = db
    this.#overrides = overrides
    this.#emit = emit
    this.#onUnusable = onUnusable
    this.#clock = clock
  }

  /** Its id in the store; null while it is not registered. */
  get worker(): WorkerId | null {
    return this.#worker
  }

  /** Returns at once. While the database is unreachable, retries with growing pauses. */
  start(): void {
    this.#running ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const fatal = await this.#runHeartbeat().catch((error: unknown) => {
        this.#logOnce(messageOf(error))
        return this.#worker !== null && isUnusable(error) ? (error as UnstuckError) : null
      })
      this.#worker = null
      // Opening it again might create an empty database in place of the lost one.
      if (fatal) return this.#onUnusable(fatal)
      await this.#clock.sleep(this.#retryMs, signal)
      this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS)
    }
  }

  /** Runs a heartbeat service until `stop()`. Throws if it cannot continue. */
  async #runHeartbeat(): Promise<null> {
    const ended = Promise.withResolvers<void>()
    const worker = newId()
    const options = heartbeatOptions(worker, '', DEFAULT_POLICY, this.#overrides)
    const heartbeat = new HeartbeatClient(threadTransport(this.#db, options), DEFAULT_POLICY, {
      emit: this.#emit,
      onFatal: (error) => ended.reject(error),
    })
    heartbeat.started().then(() => {
      this.#worker = worker
      this.#lastError = ''
      this.#retryMs = RETRY_MS
    }, ended.reject)
    const { signal } = this.#stopping
    const end = (): void => ended.resolve()
    signal.addEventListener('abort', end)
    try {
      await ended.promise
      return null
    } finally {
      signal.removeEventListener('abort', end)
      await heartbeat.stop()
    }
  }

  /** Emits an error once, however often it is repeated. */
  #logOnce(message: string): void {
    if (message !== this.#lastError) this.#emit({ type: 'store_error', message })
    this.#lastError = message
  }
}

/** Starts the background services of all features. */
export async function startServices(
  host: ServiceHost,
): Promise<Pick<Required<BackgroundService>, 'finish' | 'stop'>> {
  const services = (
    await Promise.all(FEATURES.map(async (one) => one.services?.(host) ?? []))
  ).flat()
  for (const service of services) service.start()
  return {
    finish: async () =>
      void (await Promise.all(services.map(async (service) => service.finish?.()))),
    stop: async () => void (await Promise.all(services.map((service) => service.stop()))),
  }
}
