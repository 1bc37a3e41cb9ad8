// A worker's whole day against the store, one verb after the other: recover, claim, checkpoint, finish. Killed by its own
// hand, with SIGKILL, at the n-th moment of a statement. Arguments: database address, source, n.
import { subscribe } from 'node:diagnostics_channel'
import { newId } from '../../src/core/model/id.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { StatementMoment } from '../../src/core/store/statement-channel.ts'
import { liveADay, registerLiving } from './day.ts'

const [, , db, source, nth] = process.argv
const store = await openStore(db!)
const worker = newId()
await registerLiving(store, worker, source!)

let left = Number(nth)
subscribe('unstuck:statement', (message) => {
  const { name, moment } = message as StatementMoment
  if (--left > 0) return
  process.stdout.write(`${name} ${moment}`)
  process.kill(process.pid, 'SIGKILL')
})
await liveADay(store, worker, source!)
process.exit(0)
