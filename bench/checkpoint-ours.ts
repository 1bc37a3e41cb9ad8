import { openStore } from '../src/store/open.ts'
import { hired } from './crew.ts'
import { pageOf } from './page.ts'

/** Checkpoints by the store for so long, so many targets at once. Answers how many were saved. */
export async function ours(db: string, atOnce: number, ms: number): Promise<number> {
  const store = await openStore(db, { writer: String(process.pid), connections: atOnce })
  const claim = await hired(store)
  const claimed = await claim(atOnce)
  const end = performance.now() + ms
  let saved = 0
  await Promise.all(
    claimed.map(async (target) => {
      for (let seq = 0; performance.now() < end; seq++) {
        const [outcome] = await store.checkpoint([pageOf(target, seq)])
        if (!outcome!.ok) throw outcome!.error
        saved++
      }
    }),
  )
  await store.close()
  return saved
}
