import { openStore } from '../src/core/store/open.ts'
import { registerClaimer, planTargets } from './workers.ts'
import { benchEngines, type BenchEngine } from './databases.ts'
import { median, print } from './figures.ts'
import { pageOf } from './page.ts'

const SIZES = [1_000, 100_000, 1_000_000]
const TRIES = 300
const WARM_UP = 50

/** What a claim and a checkpoint cost with a thousand, a hundred thousand and a million targets in the run. */
export async function benchScale(engines: readonly string[]): Promise<void> {
  for (const engine of await benchEngines(engines)) {
    try {
      // Side by side and in turns: a busy minute of the machine hits all sizes alike.
      const sizes = await Promise.all(SIZES.map((targets) => prepare(engine, targets)))
      for (let n = 0; n < TRIES; n++) for (const size of sizes) await size.measure()
      const base = sizes[0]!.costs()
      for (const size of sizes) {
        const { claim, checkpoint } = size.costs()
        print({
          bench: 'scale',
          engine: engine.name,
          targets: size.targets,
          'claim ms': claim.toFixed(3),
          '× 1k': (claim / base.claim).toFixed(2),
          'checkpoint ms': checkpoint.toFixed(3),
          '×  1k': (checkpoint / base.checkpoint).toFixed(2),
        })
        await size.close()
      }
    } finally {
      await engine.close()
    }
  }
}

async function prepare(
  engine: BenchEngine,
  targets: number,
): Promise<{
  targets: number
  measure(): Promise<void>
  costs(): { claim: number; checkpoint: number }
  close(): Promise<void>
}> {
  const db = await engine.create()
  const store = await openStore(db.url, { connections: 1 })
  const startedAt = performance.now()
  await planTargets(store, targets)
  print({
    bench: 'scale',
    engine: engine.name,
    targets,
    'planned in s': ((performance.now() - startedAt) / 1000).toFixed(1),
  })
  const claim = await registerClaimer(store)
  const claims: number[] = []
  const checkpoints: number[] = []
  return {
    targets,
    measure: async () => {
      const t0 = performance.now()
      const [claimed] = await claim(1)
      const t1 = performance.now()
      const page = pageOf(claimed!, 0)
      const t2 = performance.now()
      const [saved] = await store.checkpoint([{ ...page, done: true }])
      checkpoints.push(performance.now() - t2)
      claims.push(t1 - t0)
      if (!saved!.ok) throw saved!.error
    },
    costs: () => ({
      claim: median(claims.slice(WARM_UP)),
      checkpoint: median(checkpoints.slice(WARM_UP)),
    }),
    close: async () => {
      await store.close()
      await db.drop()
    },
  }
}
