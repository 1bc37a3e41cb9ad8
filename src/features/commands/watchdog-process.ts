import process from 'node:process'
import type { Claim } from '../../core/model/claim.ts'
import { openHeartbeatService, type HeartbeatService } from '../../core/heartbeat/service.ts'
import type { CommandSpec, FromWatchdog, WatchdogStart, ToWatchdog } from './watchdog.ts'
import { ManagedProcess } from './managed-process.ts'

/**
 * The watchdog: a process between Unstuck and the commands it wraps. It is the registered worker: it holds the presence,
 * sends heartbeats, and is the parent of the commands. When Unstuck dies, the watchdog ends every process of its commands
 * and then releases the presence.
 */

// Unstuck decides what ends. Process managers that signal every process reach the watchdog too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
// stdout and stderr are Unstuck's: a closed reader must not end the commands.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

const processes = new Map<string, ManagedProcess>()
let service: HeartbeatService | null = null
let startOptions: WatchdogStart | null = null

process.on('message', (message: ToWatchdog) => {
  switch (message.type) {
    case 'begin':
      startOptions = message
      void startHeartbeat(message)
      return
    case 'run':
      return startProcess(message.spec)
    case 'end':
      return processes.get(message.id)?.terminate(message.force)
    case 'run-ended':
      return processes.get(message.id)?.markSettled()
    case 'claimed':
      return processes.get(message.id)?.setClaim(message.claim)
    case 'claims':
    case 'stats':
    case 'stop':
      service?.receive(message)
  }
})
process.on('disconnect', () => void shutDown())

async function startHeartbeat({ db, heartbeat }: WatchdogStart): Promise<void> {
  service = await openHeartbeatService(db, heartbeat, {
    loopLagMs: () => 0,
    post: (message) => {
      send(message)
      if (message.type === 'stopped' && process.connected) process.disconnect()
    },
  })
  if (!(await service?.start())) process.exit(1)
}

function startProcess(spec: CommandSpec): void {
  const managed = new ManagedProcess(spec, { send, reportActivity })
  processes.set(spec.id, managed)
  void managed.ended.then(() => processes.delete(spec.id))
  managed.start()
}

/** Errors are ignored: the next report comes soon, and the next heartbeat reports a lost claim. */
async function reportActivity(claim: Claim, artifacts: number): Promise<void> {
  await ignoreErrors(async () => {
    await service?.store.reportActivity(claim, artifacts)
  })
}

/** Runs when Unstuck died, or disconnected. */
async function shutDown(): Promise<void> {
  const left = [...processes.values()]
  // What saves its pages over the API can save nothing more, and others take its targets when it has ended.
  for (const managed of left) managed.terminate(managed.needsApi)
  if (left.length > 0) await ignoreErrors(() => markUnlocking())
  await Promise.all(left.map((managed) => managed.ended))
  await ignoreErrors(() => unlockSources())
  await service?.stop()
  process.exit(0)
}

/** Marks the sources as about to be free, so that waiting starts do not give up. */
async function markUnlocking(): Promise<void> {
  for (const source of await lockedSources()) {
    await service?.store.markUnlocking(source, startOptions!.heartbeat.worker)
  }
}

async function unlockSources(): Promise<void> {
  for (const source of await lockedSources()) {
    await service?.store.unlockSource({ source, worker: startOptions!.heartbeat.worker })
  }
}

async function lockedSources(): Promise<string[]> {
  const locks = (await service?.store.sourceLocks()) ?? []
  return locks
    .filter(({ worker }) => worker === startOptions?.heartbeat.worker)
    .map(({ source }) => source)
}

/** Without the store the tree is ended all the same; the next start then takes over the source lock by its evidence. */
async function ignoreErrors(act: () => Promise<void>): Promise<void> {
  await act().catch(() => {})
}

function send(message: FromWatchdog): void {
  if (process.connected) process.send!(message, undefined, {}, () => {})
}
