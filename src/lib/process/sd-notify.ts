import { spawn } from 'node:child_process'
import process from 'node:process'
import { safeText } from '../text/safe-text.ts'
import { isWorkerProcess } from './this-process.ts'

/** Messages of sd_notify. A worker process sends the same to its parent. */
export const READY = 'READY=1'
export const ALIVE = 'WATCHDOG=1'
const STOPPING = 'STOPPING=1'

/** A service as its manager sees it. Both are asked again and again. */
export type ManagedService = {
  /** Its heartbeats are accepted. While they are not, the watchdog is not notified. */
  readonly isHealthy: () => boolean
  /** In a few words, for `systemctl status`. */
  readonly status: () => string
  readonly log: (message: string) => void
}

/** How often the service is looked at, at least. */
const POLL_MS = 1_000
/** The interval of checks; the watchdog's time is longer. */
const POLLS_PER_PING = 4
const STATUS_LENGTH = 200

/**
 * Notifies systemd that the service is ready, at work, alive, or stopping (sd_notify). Without a socket, it
 * does nothing.
 */
export class SystemdNotifier {
  readonly #service: ManagedService
  readonly #send: Send | null
  readonly #pingEveryMs: number | null
  readonly #timer: NodeJS.Timeout | undefined
  readonly #unsent = new Map<string, string>()
  #sending: Promise<void> | null = null
  #status = ''
  #isReady = false
  #pingedAt = -Infinity

  constructor(service: ManagedService, env: NodeJS.ProcessEnv = process.env) {
    this.#service = service
    const isChild = isWorkerProcess()
    this.#send = senderFor(env, isChild, service.log)
    this.#pingEveryMs = isChild ? POLL_MS : watchdogIntervalMs(env, process.pid)
    if (!this.#send) return
    const pollMs = Math.min(POLL_MS, (this.#pingEveryMs ?? Infinity) / POLLS_PER_PING)
    this.#timer = setInterval(() => this.#poll(), pollMs).unref()
  }

  /** The service does its work. Sent once. */
  ready(): void {
    if (this.#isReady) return
    this.#isReady = true
    this.#notify(READY)
    this.#poll()
  }

  stopping(): void {
    this.#notify(STOPPING)
    this.#poll()
  }

  /** Resolves when everything is sent: to systemd, a service that ends before it was ready has failed. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sending
  }

  #poll(): void {
    const status = safeText(this.#service.status()).slice(0, STATUS_LENGTH)
    if (status !== this.#status) {
      this.#status = status
      this.#notify(`STATUS=${status}`)
    }
    const now = performance.now()
    const isDue = this.#pingEveryMs !== null && now - this.#pingedAt >= this.#pingEveryMs
    if (!isDue || !this.#isReady || !this.#service.isHealthy()) return
    this.#pingedAt = now
    this.#notify(ALIVE)
  }

  /** What comes while another message is on its way goes with the next one; of two alike, the later. */
  #notify(notice: string): void {
    if (!this.#send) return
    this.#unsent.set(notice.split('=', 1)[0]!, notice)
    this.#sending ??= this.#sendAll(this.#send).finally(() => (this.#sending = null))
  }

  async #sendAll(send: Send): Promise<void> {
    while (this.#unsent.size > 0) {
      const notices = [...this.#unsent.values()]
      this.#unsent.clear()
      await send(notices)
    }
  }
}

/** Half of the time after which the watchdog would act; null when there is none, or it watches another process. */
export function watchdogIntervalMs(env: NodeJS.ProcessEnv, pid: number): number | null {
  const { WATCHDOG_USEC: limit, WATCHDOG_PID: watched } = env
  if (watched !== undefined && watched !== String(pid)) return null
  const micros = Number(limit)
  return Number.isSafeInteger(micros) && micros > 0 ? micros / 2_000 : null
}

/** Resolves when the message was sent, or could not be. */
type Send = (notices: readonly string[]) => Promise<void>

function senderFor(
  env: NodeJS.ProcessEnv,
  isChild: boolean,
  log: (message: string) => void,
): Send | null {
  const { NOTIFY_SOCKET: socket, PATH } = env
  if (!socket) return null
  return isChild ? viaParent : viaSystemdNotify({ NOTIFY_SOCKET: socket, PATH }, log)
}

/** The parent speaks for all of its worker processes. */
async function viaParent(notices: readonly string[]): Promise<void> {
  if (!process.connected) return
  for (const notice of notices) process.send!(notice, undefined, {}, () => {})
}

const PROGRAM = 'systemd-notify'
const MISSING = `there is no program ${PROGRAM}. Install it, or use Type=exec and no WatchdogSec= in the unit.`
/** It waits for systemd to have read the message, but not for ever. */
const NOTIFY_TIMEOUT_MS = 10_000

/** Node cannot write to a socket of this kind. The program that comes with systemd can; it is started a few times a minute. */
function viaSystemdNotify(env: NodeJS.ProcessEnv, log: (message: string) => void): Send {
  let isMissing = false
  let isSaid = false
  const logFailure = (reason: string): void => {
    if (isSaid) return
    isSaid = true
    log(`systemd could not be notified: ${reason}`)
  }
  return (notices) =>
    new Promise((resolve) => {
      if (isMissing) return resolve()
      const program = spawn(PROGRAM, notices, { env, stdio: ['ignore', 'ignore', 'pipe'] })
      const timeout = setTimeout(() => program.kill('SIGKILL'), NOTIFY_TIMEOUT_MS)
      const done = (trouble?: string): void => {
        clearTimeout(timeout)
        if (trouble !== undefined) logFailure(trouble)
        resolve()
      }
      let problem = ''
      program.stderr.setEncoding('utf8').on('data', (text: string) => (problem += text))
      program.once('error', (error: NodeJS.ErrnoException) => {
        isMissing = error.code === 'ENOENT'
        done(isMissing ? MISSING : error.message)
      })
      program.once('close', (code, signal) => {
        const how = problem.trim() || (signal ?? `exit code ${code}`)
        done(code === 0 ? undefined : `${PROGRAM}: ${how}`)
      })
    })
}
