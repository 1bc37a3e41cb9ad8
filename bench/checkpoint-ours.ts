import { openStore } from '../src/core/store/open.ts'
import type { Prepare } from './contender.ts'
import { registerClaimer } from './workers.ts'
import { pageOf } from './page.ts'

/** Checkpoints by the store, so many targets at once. */
export const ours: Prepare = async (db, atOnce) => {
  const store = await openStore(db, { writer: String(process.pid), connections: atOnce })
  const claim = await registerClaimer(store)
  const targets = (await claim(atOnce)).map((claimed) => ({ claimed, seq: 0 }))
  return {
    run: async (until) => {
      let saved = 0
      await Promise.all(
        targets.map(async (target) => {
          for (; Date.now() < until; target.seq++) {
            const [outcome] = await store.checkpoint([pageOf(target.claimed, target.seq)])
            if (!outcome!.ok) throw outcome!.error
            saved++
          }
        }),
      )
      return saved
    },
    close: () => store.close(),
  }
}
