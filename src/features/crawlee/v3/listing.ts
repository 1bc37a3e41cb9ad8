/** What Crawlee gets from lists: await it for the first page, or walk over all of it. */
export type AsyncList<Page, Item> = Promise<Page> & AsyncIterable<Item>

export function asyncList<Page, Item>(
  first: Promise<Page>,
  iterate: () => AsyncIterator<Item>,
): AsyncList<Page, Item> {
  // The iterator reports errors itself.
  first.catch(() => {})
  return Object.assign(first, { [Symbol.asyncIterator]: iterate })
}

/** Loads the first page only when it is awaited: iterating does not need it. */
export function lazyAsyncList<Page, Item>(
  load: () => Promise<Page>,
  iterate: () => AsyncIterator<Item>,
): AsyncList<Page, Item> {
  let page: Promise<Page> | null = null
  const first = (): Promise<Page> => (page ??= load())
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- it is one on purpose
    then: (kept, broken) => first().then(kept, broken),
    catch: (broken) => first().catch(broken),
    finally: (ended) => first().finally(ended),
    [Symbol.toStringTag]: 'Promise',
    [Symbol.asyncIterator]: iterate,
  } as AsyncList<Page, Item>
}
