import { hash } from 'node:crypto'
import type { Id } from '../../core/model/id.ts'

/** What of a row has an id: each row is a run with a target, or a target, and may have somebody who works on it. */
export type EntityKind = 'run' | 'target' | 'worker'

/** The key of the run that a whole table of targets is: no row has it. */
export const TABLE_RUN_KEY = ''

/** Always the same for the same row. A UUID of version 8, so that it is told from our own at a glance. */
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

/** Whether it may be one of these; our own are of version 7. */
export function isAdoptedId(id: Id): boolean {
  return id[14] === '8'
}
