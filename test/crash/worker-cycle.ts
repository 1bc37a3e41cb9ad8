import { operatorContext } from '../../src/testing/fixtures.ts'
import { spawnSync } from 'node:child_process'
import { newId, type WorkerId } from '../../src/core/model/id.ts'
import type { Presence, ProcessIdentity } from '../../src/core/model/worker.ts'
import { makeCheckpoint } from '../../src/core/worker/page.ts'
import { sweep } from '../../src/core/recovery/sweep.ts'
import { thisProcess } from '../../src/core/host/identity.ts'
import type { Store } from '../../src/core/store/store.ts'

export const PAGES = 2

export async function registerLiveWorker(
  store: Store,
  worker: WorkerId,
  source: string,
): Promise<void> {
  const { presence } = await store.acquirePresence(worker)
  await register(store, worker, source, thisProcess(), presence)
}

/** A worker whose process has ended: its pid was that of a program which is no more. */
export async function registerDeadWorker(
  store: Store,
  worker: WorkerId,
  source: string,
): Promise<void> {
  const { pid } = spawnSync('true')
  await register(store, worker, source, { ...thisProcess(), pid, startTicks: 1 }, { kind: 'none' })
}

async function register(
  store: Store,
  id: WorkerId,
  source: string,
  process: ProcessIdentity,
  presence: Presence,
): Promise<void> {
  await store.registerWorker({
    id,
    source,
    process,
    presence,
    version: 'test',
    heartbeatMs: 1_000,
    leaseMs: 15_000,
  })
}

/** Recovers what is dead, then works on all that can be claimed: page by page with a ledger in the transaction, then the end. */
export async function runWorkerCycle(
  store: Store,
  worker: WorkerId,
  source: string,
): Promise<void> {
  const [p1, p2] = store.engine === 'postgres' ? ['$1', '$2'] : ['?', '?']
  await sweep(store, { ...operatorContext(store, 'test'), self: worker })
  for (;;) {
    const [claimed] = await store.claim({
      worker,
      source,
      claimIds: [newId()],
      isIdle: true,
      singleSlot: true,
    })
    if (!claimed) return void (await store.settle())
    let seq = claimed.seq
    for (let page = claimed.page + 1; page <= PAGES; page++) {
      const items = [{ key: `${source}/${page}`, data: { page } }]
      const checkpoint = makeCheckpoint(
        claimed,
        { ...claimed, seq },
        { page, items, next: null, done: false },
      )
      const [saved] = await store.checkpoint([checkpoint], (tx) =>
        tx.query(`INSERT INTO ledger (source, page) VALUES (${p1}, ${p2})`, [source, page]),
      )
      if (!saved!.ok) throw saved!.error
      seq = saved!.value.seq
    }
    const [finished] = await store.finish([claimed])
    if (!finished!.ok) throw finished!.error
  }
}
