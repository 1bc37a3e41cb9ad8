// One of the processes of `bench/checkpoint.ts`. Arguments: ours or raw, database, targets at once.
import { once } from 'node:events'
import process from 'node:process'
import { ours } from './checkpoint-ours.ts'
import { raw } from './checkpoint-raw.ts'
import { withWarmUp } from './contender.ts'

const [, , side, db, atOnce] = process.argv
const contender = await withWarmUp(side === 'raw' ? raw : ours)(db!, Number(atOnce))
process.send!('ready')
const [until] = (await once(process, 'message')) as [number]
process.send!(await contender.run(until))
await contender.close()
process.disconnect()
