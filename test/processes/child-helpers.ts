import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { InTransaction } from '../../src/index.ts'

/** What the crawls of these tests use to tell the test where they are, and to wait for its word. */

export { sleep }

const folder = process.env['STAGE'] ?? '.'
const isPostgres = process.env['STAGE_ENGINE'] === 'postgres'

export type Mark = {
  readonly what: string
  readonly pid: number
  readonly at: number
  readonly key: string
  readonly page: number
}

/** Says that it has come this far. */
export function mark(what: string, key = '', page = 0): void {
  const line: Mark = { what, pid: process.pid, at: Date.now(), key, page }
  appendFileSync(join(folder, 'marks'), `${JSON.stringify(line)}\n`)
}

/** How often this was marked. */
export function marked(what: string, key?: string): number {
  const path = join(folder, 'marks')
  if (!existsSync(path)) return 0
  const marks = readFileSync(path, 'utf8').split('\n').filter(Boolean)
  return marks
    .map((line) => JSON.parse(line) as Mark)
    .filter((mark) => mark.what === what && (key === undefined || mark.key === key)).length
}

/** Waits for the test to open the gate. */
export async function opened(name: string): Promise<void> {
  while (!existsSync(join(folder, `${name}.gate`))) await sleep(10)
}

/** The same with the event loop blocked: whatever comes meanwhile is heard only after the next write. */
export function blockUntilOpened(name: string): void {
  while (!existsSync(join(folder, `${name}.gate`))) block(10)
}

/** Blocks the event loop. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** One row per committed page, in a table without a key: work that was done twice shows. */
export function ledger(key: string, page: number): InTransaction {
  const values = isPostgres ? '$1, $2' : '?, ?'
  return (tx) => tx.query(`INSERT INTO ledger (target_key, page) VALUES (${values})`, [key, page])
}
