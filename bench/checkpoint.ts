import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openStore } from '../src/core/store/open.ts'
import { ours } from './checkpoint-ours.ts'
import { raw } from './checkpoint-raw.ts'
import { withWarmUp, type Prepare } from './contender.ts'
import { planTargets } from './workers.ts'
import { benchEngines, type BenchEngine } from './databases.ts'
import { median, print } from './figures.ts'

const ROUNDS = 5
const ROUND_MS = 1_500

/** Checkpoints per second beside the same transaction made raw, in turns, in the same run. */
export async function benchCheckpoint(engines: readonly string[]): Promise<void> {
  for (const engine of await benchEngines(engines)) {
    try {
      for (const atOnce of [1, 4, 16]) {
        await compare(engine, `${atOnce} at once`, atOnce, {
          ours: withWarmUp(ours),
          raw: withWarmUp(raw),
        })
      }
      await compare(engine, '4 processes', 4, {
        ours: inProcesses('ours'),
        raw: inProcesses('raw'),
      })
    } finally {
      await engine.close()
    }
  }
}

async function compare(
  engine: BenchEngine,
  what: string,
  concurrency: number,
  contenders: { ours: Prepare; raw: Prepare },
): Promise<void> {
  const rates: Record<'ours' | 'raw', number[]> = { ours: [], raw: [] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of round % 2 === 0 ? (['ours', 'raw'] as const) : (['raw', 'ours'] as const)) {
      const db = await engine.create()
      await prepareRun(db.url)
      const contender = await contenders[side](db.url, concurrency)
      const saved = await contender.run(Date.now() + ROUND_MS)
      await contender.close()
      rates[side].push((saved * 1000) / ROUND_MS)
      await db.drop()
    }
  }
  const [us, them] = [median(rates.ours), median(rates.raw)]
  print({
    bench: 'checkpoint',
    engine: engine.name,
    what,
    'ours/s': Math.round(us),
    'raw/s': Math.round(them),
    ratio: (us / them).toFixed(2),
  })
}

async function prepareRun(db: string): Promise<void> {
  const store = await openStore(db)
  await planTargets(store, 64)
  await store.close()
}

const PROCESSES = 4

/** The same in four processes on one run, all ready before the clock is started, all until the same moment. */
function inProcesses(side: 'ours' | 'raw'): Prepare {
  return async (db, atOnce) => {
    const module = fileURLToPath(new URL('./checkpoint-process.ts', import.meta.url))
    const args = [side, db, String(atOnce / PROCESSES)]
    const children = Array.from({ length: PROCESSES }, () => fork(module, args))
    await Promise.all(children.map((child) => once(child, 'message')))
    return {
      run: async (until) => {
        for (const child of children) child.send(until)
        const answers = await Promise.all(children.map((child) => once(child, 'message')))
        return answers.reduce((sum, [saved]) => sum + (saved as number), 0)
      },
      close: async () => {
        await Promise.all(children.map(waitForExit))
      },
    }
  }
}

async function waitForExit(child: ChildProcess): Promise<void> {
  if (child.exitCode === null) await once(child, 'exit')
}
