import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../../testing/fake-clock.ts'
import { StoreUnavailableError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import { newId } from '../model/id.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { NO_OVERRIDES } from '../model/policy-of.ts'
import type { Evidence } from '../model/worker.ts'
import type { HeartbeatResult, Store, WorkerObservation } from '../store/store.ts'
import { HeartbeatService } from './service.ts'
import { heartbeatOptions, type FromService } from './transport.ts'

/** A worker of another host that has sent no heartbeat for a minute: lost, for an observer that was not cut off itself. */
const SILENT: Evidence = {
  presence: 'unknown',
  presenceKind: 'none',
  process: 'unknown',
  heartbeatAgeMs: 60_000,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'elsewhere',
  pid: 1,
}

/** Records the calls of a service to its store, second by second. */
class RecordingStore {
  readonly seconds = new Map<number, string[]>()
  isDown = false
  isLeader = true
  readonly #clock: FakeClock

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  get store(): Store {
    const results: Record<string, () => unknown> = {
      acquirePresence: () => ({ presence: { kind: 'none' }, release: async () => {} }),
      heartbeat: (): HeartbeatResult => ({
        held: [],
        cancelled: [],
        unpark: [],
        serverStartedAt: null,
        now: this.#clock.wallNow(),
        paused: null,
        isOutdated: false,
      }),
      now: () => this.#clock.wallNow(),
      acquireLeadership: () => this.isLeader,
      observations: () => [
        { worker: { id: 'silent' }, evidence: SILENT } as unknown as WorkerObservation,
      ],
      claimsOf: () => [],
      liveRuns: () => [],
      holdings: () => [],
      settle: () => [],
      sourceLocks: () => [],
    }
    return new Proxy({} as Store, {
      get: (_, method: string) => {
        if (method === 'unreadable') return []
        return async (...args: unknown[]): Promise<unknown> => {
          this.#record(method, args)
          if (this.isDown) throw new StoreUnavailableError('The database does not answer.')
          return results[method]?.()
        }
      },
    })
  }

  /** "1-30: heartbeat, observations ×4", with equal seconds in one line. */
  get summary(): string[] {
    const lines: { from: number; to: number; calls: string }[] = []
    for (const [second, names] of this.seconds) {
      const calls = [...Map.groupBy(names, (name) => name)]
        .map(([name, all]) => (all.length > 1 ? `${name} ×${all.length}` : name))
        .join(', ')
      const last = lines.at(-1)
      if (last?.calls === calls && last.to === second - 1) last.to = second
      else lines.push({ from: second, to: second, calls })
    }
    return lines.map(({ from, to, calls }) => `${from === to ? from : `${from}-${to}`}: ${calls}`)
  }

  #record(method: string, args: unknown[]): void {
    const [, forMs, role = 'sweep'] = args
    const name = method === 'acquireLeadership' ? `lead ${String(role)} ${String(forMs)}` : method
    const second = Math.ceil(this.#clock.now() / 1_000)
    this.seconds.set(second, [...(this.seconds.get(second) ?? []), name])
  }
}

function startService() {
  // Ten seconds before a full minute.
  const clock = new FakeClock(Date.UTC(2026, 0, 1, 0, 0, 50))
  const recording = new RecordingStore(clock)
  const events: UnstuckEvent[] = []
  const options = heartbeatOptions(newId(), 'shop', DEFAULT_POLICY, NO_OVERRIDES)
  const post = (message: FromService): void => {
    assert.notEqual(message.type, 'fatal')
    if (message.type === 'event') events.push(message.event)
  }
  const host = { loopLagMs: () => 0, post }
  const service = new HeartbeatService(recording.store, options, host, clock)
  return { clock, recording, events, service }
}

test('the store calls of a service over three minutes with a gap and an outage', async () => {
  const { clock, recording, events, service } = startService()
  await service.start()
  await clock.advance(65_000)
  await clock.suspend(20_000)
  await clock.advance(35_000)
  recording.isDown = true
  await clock.advance(10_000)
  recording.isDown = false
  await clock.advance(50_000)
  await service.stop()

  // While the silent worker counts as lost, each sweep reads its claims (`now, claimsOf`).
  const sweeping = 'lead sweep 500 ×4, observations ×4, now ×4, claimsOf ×4, heartbeat, settle'
  const doubting = 'lead sweep 500 ×4, observations ×4, heartbeat, settle'
  const monitoring =
    'lead sweep 500 ×4, observations ×5, now ×6, claimsOf ×5, lead monitor 90000, sourceLocks, liveRuns, holdings, settle ×2, heartbeat'
  const pruning = 'prune'
  assert.deepEqual(recording.summary, [
    '0: acquirePresence, registerWorker, heartbeat ×2, lead sweep 500, observations, now, claimsOf, settle',
    `1-4: ${sweeping}`,
    `5: ${monitoring}`,
    `6-9: ${sweeping}`,
    `10: lead sweep 500 ×4, observations ×4, now ×5, claimsOf ×4, lead sample 90000, takeSample, ${pruning}, heartbeat, settle`,
    `11-64: ${sweeping}`,
    `65: ${monitoring}`,
    // Resumed after 20 s. For one lease no worker counts as silent: this process was cut off itself.
    '85: lead sweep 500 ×2, observations ×2, settle, heartbeat ×2, lead sample 90000, takeSample',
    `86-99: ${doubting}`,
    '100: lead sweep 500 ×4, observations ×4, heartbeat, now, claimsOf, settle',
    `101-120: ${sweeping}`,
    // The outage: without heartbeats of its own the process does not sweep.
    '121: lead sweep 500 ×3, heartbeat',
    '122-129: heartbeat',
    '130: lead sample 90000, heartbeat',
    '131: heartbeat',
    '132: heartbeat, lead sweep 500, observations, settle',
    `133-145: ${doubting}`,
    '146: lead sweep 500 ×4, observations ×4, heartbeat, now, claimsOf, settle',
    `147-179: ${sweeping}`,
    '180: lead sweep 500 ×4, observations ×4, now ×4, claimsOf ×4, heartbeat, settle ×2, retireWorker, takeSample, close',
  ])
  assert.deepEqual(
    events.filter(({ type }) => type !== 'heartbeat'),
    [
      { type: 'store_error', message: 'The database does not answer.' },
      { type: 'store_recovered', afterMs: 10_750 },
    ],
  )
  assert.equal(events.filter(({ type }) => type === 'heartbeat').length, 17, 'one every 10 s')
})

test('a service that leads nothing sends heartbeats and requests leadership', async () => {
  const { clock, recording, service } = startService()
  recording.isLeader = false
  await service.start()
  await clock.advance(65_000)
  await service.stop()

  const idle = 'lead sweep 500 ×4, heartbeat'
  assert.deepEqual(recording.summary, [
    '0: acquirePresence, registerWorker, heartbeat ×2, lead sweep 500',
    `1-4: ${idle}`,
    '5: lead sweep 500 ×4, lead monitor 90000, heartbeat',
    `6-9: ${idle}`,
    '10: lead sweep 500 ×4, lead sample 90000, heartbeat',
    `11-64: ${idle}`,
    '65: lead sweep 500 ×4, lead monitor 90000, heartbeat, retireWorker, settle, takeSample, close',
  ])
})

test('a run is sampled each second while it is young, and not again after it waited for a retry', async () => {
  const { clock, recording, service } = startService()
  recording.isLeader = false
  const sampled = (): number[] =>
    [...recording.seconds]
      .filter(([, calls]) => calls.includes('takeSample'))
      .map(([second]) => second)
  const secondsUntil = (from: number, until: number): number[] =>
    Array.from({ length: until - from + 1 }, (_, n) => from + n)
  let run = newId()
  const hold = (isHeld: boolean): void =>
    service.receive({ type: 'claims', held: isHeld ? [newId()] : [], requested: [], run })
  await service.start()
  await clock.advance(5_000)
  assert.deepEqual(sampled(), [], 'there is no work')

  hold(true)
  await clock.advance(60_000)
  hold(false)
  await clock.advance(5_000)
  hold(true)
  await clock.advance(80_000)
  assert.deepEqual(sampled(), secondsUntil(6, 124), 'two minutes from the first claim on')

  hold(false)
  await clock.advance(30_000)
  hold(true)
  await clock.advance(10_000)
  hold(false)
  await clock.advance(30_000)
  assert.equal(sampled().length, 119, 'the same run')

  run = newId()
  hold(true)
  await clock.advance(10_000)
  hold(false)
  await clock.advance(30_000)
  assert.deepEqual(
    sampled().slice(119),
    secondsUntil(221, 239),
    'the next run, and what ended with it',
  )
  await service.stop()
})
