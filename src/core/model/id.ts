import { randomUUIDv7 } from 'node:crypto'

/** Ids are UUIDv7: unique everywhere, and those made later sort later (to the millisecond). */
export type Id = string
export type RunId = Id
export type TargetId = Id
export type WorkerId = Id
/** Chosen by the claiming process before it asks, so that an answer that got lost can be asked for again. */
export type ClaimId = Id

export function newId(): Id {
  return randomUUIDv7()
}

/** What people see and type. The first digits of a UUIDv7 are the time and look alike; the last are random. */
export function shortId(id: Id): string {
  return id.slice(-8)
}

/** When an id was made, by the clock of whoever made it: good for a chart, not for a judgement. */
export function timestampOfId(id: Id): number {
  return Number.parseInt(id.slice(0, 13).replace('-', ''), 16)
}

/** Whether a text is an id of ours: checked before it becomes a part of a path. */
export function isId(text: string): boolean {
  return UUID.test(text)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
