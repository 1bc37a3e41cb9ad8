import { randomUUIDv7 } from 'node:crypto'

/** Ids are UUIDv7: unique everywhere, and those made later sort later (to the millisecond). */
export type Id = string
export type RunId = Id
export type TargetId = Id
export type WorkerId = Id
/** Chosen by the claiming process before the call, so that a call whose response was lost can be repeated. */
export type ClaimId = Id

export function newId(): Id {
  return randomUUIDv7()
}

/** The short form that is printed and typed. The first digits of a UUIDv7 are the time and hardly differ; the last are random. */
export function shortId(id: Id): string {
  return id.slice(-8)
}

/** Creation time of an id by the clock of its creator: good enough for a chart, not for a verdict. */
export function timestampOfId(id: Id): number {
  return Number.parseInt(id.slice(0, 13).replace('-', ''), 16)
}

/** Whether a text is an id of ours: checked before it becomes a part of a path. */
export function isId(text: string): boolean {
  return UUID.test(text)
}

/** Whether a text may be an id, or the end of one. */
export function isIdEnding(text: string): boolean {
  return /^[0-9a-f-]{8,36}$/i.test(text)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
