import type { ClaimedTarget } from '../src/core/model/claim.ts'
import type { Checkpoint } from '../src/core/model/checkpoint.ts'
import { makeCheckpoint } from '../src/core/worker/page.ts'

export const ITEMS = 10

/** What a page handler would return: ten businesses with a few fields each. */
export function pageItems(target: string, page: number): { url: string; data: unknown }[] {
  return Array.from({ length: ITEMS }, (_, n) => ({
    url: `https://directory.example/${target}/${page}/${n}`,
    data: {
      name: `Business ${n}`,
      phone: '+1 555 0100',
      street: '1 Main Street',
      city: 'Springfield',
      rating: 4.5,
      page,
    },
  }))
}

/** The page as the runtime makes it of that: keys, hash and all. */
export function pageOf(claimed: ClaimedTarget, seq: number): Checkpoint {
  const page = seq + 1
  return makeCheckpoint(
    claimed,
    { ...claimed, seq },
    {
      page,
      items: pageItems(claimed.target, page),
      next: `https://directory.example/${claimed.key}?page=${page + 1}`,
      done: false,
    },
  )
}
