// pg-boss delivers, Unstuck remembers how far a job is. One PostgreSQL can hold both: each has its own schema.
//
//   UNSTUCK_DB=postgres://… node examples/queues/pg-boss.ts            # a worker
//   UNSTUCK_DB=postgres://… node examples/queues/pg-boss.ts portal-a   # sends a job
import { once } from 'node:events'
import { PgBoss } from 'pg-boss'
import { open } from '../../src/index.ts' // in your project: from 'unstuck'
import { crawlPortal, type PortalJob } from './portal-job.ts'

const QUEUE = 'portals'
const boss = new PgBoss({
  connectionString: process.env['UNSTUCK_DB']!,
  monitorIntervalSeconds: 1,
  superviseIntervalSeconds: 1,
})
boss.on('error', (error) => console.error(error.message))
await boss.start()
// A worker that has not beaten for so long is taken for dead, and its job is delivered again.
await boss.createQueue(QUEUE, { retryLimit: 10, retryDelay: 1, heartbeatSeconds: 10 })

const [portal] = process.argv.slice(2)
if (portal) {
  console.log(`sent ${await boss.send(QUEUE, { portal, pages: 20 } satisfies PortalJob)}`)
  await boss.stop()
} else {
  const unstuck = await open()
  await boss.work<PortalJob>(QUEUE, { pollingIntervalSeconds: 0.5 }, async ([job]) => {
    console.log(`job ${job!.id}: ${await crawlPortal(unstuck, job!.id, job!.data)}`)
  })
  console.log('waiting for jobs')
  await once(process, 'SIGTERM')
  // Each run's signal has fired: jobs end after the page in hand, and go on wherever they are delivered next.
  await boss.stop()
  await unstuck.close()
}
