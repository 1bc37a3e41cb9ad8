import type { Listing, Page } from './types.ts'

/** Makes a list that reads a page when it is awaited, and page after page when it is iterated. */
export function makeListing<V, P extends Page<V> = Page<V>>(
  load: (after: string | undefined) => Promise<P>,
): Listing<V, P> {
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- `await` gives the first page.
    then: (onPage, onError) => load(undefined).then(onPage, onError),
    async *[Symbol.asyncIterator]() {
      for (let after: string | undefined; ;) {
        const { items, next } = await load(after)
        yield* items
        if (next === null) return
        after = next
      }
    },
  }
}
