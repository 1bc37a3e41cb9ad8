import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { newId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import { isLive } from '../../src/core/model/run.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { TestDatabase } from '../../src/testing/test-database.ts'
import type { Store } from '../../src/core/store/store.ts'
import { runWorkerCycle, PAGES, registerDeadWorker, registerLiveWorker } from './worker-cycle.ts'

const CYCLES_MAX = 200
const CYCLE_PROCESS = fileURLToPath(new URL('./cycle-process.ts', import.meta.url))

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`P3 P4 ${engine.name}: killed before and after statements of recover, claim, checkpoint and finish, nothing is lost or done twice`, async (t) => {
    await using db = await engine.fresh()
    await db.raw('CREATE TABLE ledger (source TEXT NOT NULL, page INTEGER NOT NULL)')
    const store = await db.open()
    const moments: string[] = []
    // Every third moment, by turns before and after a statement; all of them in the long proof.
    const step = isLong ? 1 : 3
    for (let n = 1; ; n += step) {
      const moment = await killAt(db, store, n)
      if (moment === null) break
      moments.push(moment)
    }
    t.diagnostic(`${moments.length} moments`)
    for (const phase of ['recover', 'claim', 'checkpoint', 'finish']) {
      const kills = moments.filter((moment) => moment.startsWith(phase)).length
      assert.ok(kills >= (isLong ? 2 : 1), `${kills} kills in ${phase}`)
    }
  })
}

/** Kills a life at its n-th moment, lets a second one finish its work, and looks. Null when there is no n-th moment. */
async function killAt(db: TestDatabase, store: Store, n: number): Promise<string | null> {
  const source = `day-${n}`
  const run = await orphanedRun(store, source)
  const { moment, killed } = await runCycle(db, source, n)
  const worker = newId()
  await registerLiveWorker(store, worker, source)
  // A server frees what the killed one had locked a moment after its death. Until then a sweep passes it over, and the next
  // one finds it: workers sweep four times a second.
  for (let days = 1; days <= CYCLES_MAX && isLive((await store.run(run))!.status); days++) {
    if (days > 1) await sleep(50)
    await runWorkerCycle(store, worker, source)
  }
  await store.retireWorker(worker)

  const where = `killed at ${n}: ${moment}`
  const ledger = await db.raw(`SELECT page FROM ledger WHERE source = '${source}' ORDER BY page`)
  assert.deepEqual(
    ledger.map((row) => row['page']),
    Array.from({ length: PAGES }, (_, i) => i + 1),
    where,
  )
  const after = (await store.run(run))!
  assert.equal(after.status, 'succeeded', where)
  assert.deepEqual([after.counts.pages, after.counts.itemsNew], [PAGES, PAGES], where)
  const { done, ...others } = after.counts.targets
  assert.deepEqual([done, Object.values(others)], [1, [0, 0, 0, 0, 0]], where)
  // The first owner's death, and that of the killed life when it held the target: each counted once.
  const recoveries = (await store.audit({ run, limit: 100 })).length
  assert.ok(recoveries === 1 || recoveries === 2, `${where}: ${recoveries} recoveries`)
  return killed ? moment : null
}

/** A run whose only target is held by a worker that died. */
async function orphanedRun(store: Store, source: string): Promise<string> {
  const run = newId()
  await store.enqueue({ id: run, source, kind: 'crawl', policy: DEFAULT_POLICY })
  await store.plan(run, [{ key: 'only' }])
  await store.finishPlanning(run)
  const dead = newId()
  await registerDeadWorker(store, dead, source)
  const claimed = await store.claim({
    worker: dead,
    source,
    claimIds: [newId()],
    isIdle: true,
    singleSlot: true,
  })
  assert.equal(claimed.length, 1)
  return run
}

async function runCycle(
  db: TestDatabase,
  source: string,
  n: number,
): Promise<{ moment: string; killed: boolean }> {
  const child = spawn(process.execPath, [CYCLE_PROCESS, db.url, source, String(n)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let moment = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (moment += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  assert.ok(signal === 'SIGKILL' || code === 0, `life ${n} ended with exit code ${code}`)
  return { moment, killed: signal === 'SIGKILL' }
}
