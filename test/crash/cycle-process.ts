// Calls the store as a worker does, one method after the other: recover, claim, checkpoint, finish. Kills itself with
// SIGKILL at the n-th moment of a statement. Arguments: database address, source, n.
import { subscribe } from 'node:diagnostics_channel'
import { newId } from '../../src/core/model/id.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { StatementMoment } from '../../src/core/store/statement-channel.ts'
import { runWorkerCycle, registerLiveWorker } from './worker-cycle.ts'

const [, , db, source, nth] = process.argv
const store = await openStore(db!)
const worker = newId()
await registerLiveWorker(store, worker, source!)

let remainingStatements = Number(nth)
subscribe('unstuck:statement', (message) => {
  const { name, moment } = message as StatementMoment
  if (--remainingStatements > 0) return
  process.stdout.write(`${name} ${moment}`)
  process.kill(process.pid, 'SIGKILL')
})
await runWorkerCycle(store, worker, source!)
process.exit(0)
