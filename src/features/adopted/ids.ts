import { hash } from 'node:crypto'
import type { Id } from '../../core/model/id.ts'

/** What a row stands for: a run with its target, or a target, and its worker. */
export type EntityKind = 'run' | 'target' | 'worker'

/** The key of the one run of a table of targets; no row has it. */
export const TABLE_RUN_KEY = ''

/** Derives the id from the row's key. It is a UUID of version 8, so that it differs from the store's own ids. */
export function adoptedId(table: string, key: string, entity: EntityKind): Id {
  const hex = hash('sha256', JSON.stringify([table, key, entity]))
  const variant = '89ab'[Number.parseInt(hex[16]!, 16) & 3]!
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-')
}

/** True for ids of adopted rows; the store's own are of version 7. */
export function isAdoptedId(id: Id): boolean {
  return id[14] === '8'
}
