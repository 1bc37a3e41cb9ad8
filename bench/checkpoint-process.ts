// One of the processes of `bench/checkpoint.ts`. Arguments: ours or raw, database, targets at once, milliseconds.
import { once } from 'node:events'
import { ours } from './checkpoint-ours.ts'
import { raw } from './checkpoint-raw.ts'

const [, , side, db, atOnce, ms] = process.argv
process.send!('ready')
await once(process, 'message')
process.send!(await (side === 'raw' ? raw : ours)(db!, Number(atOnce), Number(ms)))
process.disconnect()
