import process from 'node:process'
import type { Claim } from '../../core/model/claim.ts'
import { serveCaretaker, type CaretakerService } from '../../core/heartbeat/message-service.ts'
import type { CommandSpec, FromGuardian, GuardianStart, ToGuardian } from './watchdog-messages.ts'
import { Ward } from './managed-process.ts'

/**
 * Stands between Unstuck and the commands it wraps. It is the worker in the eyes of others: it holds the presence and
 * beats, and it is the parent of the commands. When Unstuck is gone, whatever took it, the guardian ends every process of
 * its commands, and only then lets go.
 */

// Signals are Unstuck's business: it says what is to end. Process managers that signal every process reach us too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
// Our output is Unstuck's: a reader that has left must not end the commands.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

const wards = new Map<string, Ward>()
let service: CaretakerService | null = null
let start: GuardianStart | null = null

process.on('message', (message: ToGuardian) => {
  switch (message.type) {
    case 'begin':
      start = message
      void begin(message)
      return
    case 'run':
      return startWard(message.spec)
    case 'end':
      return wards.get(message.id)?.end(message.now)
    case 'settled':
      return wards.get(message.id)?.settled()
    case 'claimed':
      return wards.get(message.id)?.claimed(message.claim)
    case 'claims':
    case 'stats':
    case 'stop':
      service?.hear(message)
  }
})
process.on('disconnect', () => void letGo())

async function begin({ db, caretaker }: GuardianStart): Promise<void> {
  service = await serveCaretaker({
    db,
    caretaker,
    loopLagMs: () => 0,
    tell: (message) => {
      tell(message)
      if (message.type === 'stopped' && process.connected) process.disconnect()
    },
  })
  if (!(await service?.start())) process.exit(1)
}

function startWard(spec: CommandSpec): void {
  const ward = new Ward(spec, { tell, touch })
  wards.set(spec.id, ward)
  void ward.over.then(() => wards.delete(spec.id))
  ward.start()
}

/** Only a sign of activity: the next one comes soon, and a lost claim is heard of with the next beat. */
async function touch(claim: Claim, artifacts: number): Promise<void> {
  await tryTo(async () => {
    await service?.store.touch(claim, artifacts)
  })
}

/** Unstuck is gone, or done with us. */
async function letGo(): Promise<void> {
  const left = [...wards.values()]
  for (const ward of left) ward.end(false)
  if (left.length > 0) await tryTo(() => markEnding())
  await Promise.all(left.map((ward) => ward.over))
  await tryTo(() => freeGuards())
  await service?.stop()
  process.exit(0)
}

/** Others who want to start need not give up: it will be free soon. */
async function markEnding(): Promise<void> {
  for (const source of await guardedSources()) {
    await service?.store.markEnding(source, start!.caretaker.worker)
  }
}

async function freeGuards(): Promise<void> {
  for (const source of await guardedSources()) {
    await service?.store.freeSource({ source, worker: start!.caretaker.worker })
  }
}

async function guardedSources(): Promise<string[]> {
  const guards = (await service?.store.guards()) ?? []
  return guards
    .filter(({ worker }) => worker === start?.caretaker.worker)
    .map(({ source }) => source)
}

/** Without the store the tree is ended all the same; the guard is then taken over by its evidence. */
async function tryTo(act: () => Promise<void>): Promise<void> {
  await act().catch(() => {})
}

function tell(message: FromGuardian): void {
  if (process.connected) process.send!(message, undefined, {}, () => {})
}
