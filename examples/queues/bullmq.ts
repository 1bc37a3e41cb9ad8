// BullMQ delivers, Unstuck remembers how far a job is. Needs a Redis that BullMQ can use.
//
//   REDIS_URL=redis://… node examples/queues/bullmq.ts            # a worker
//   REDIS_URL=redis://… node examples/queues/bullmq.ts portal-a   # sends a job
import { once } from 'node:events'
import { Queue, Worker } from 'bullmq'
import { open } from '../../src/index.ts' // in your project: from 'unstuck'
import { crawlPortal, type PortalJob } from './portal-job.ts'

const QUEUE = 'portals'
const connection = { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' }

const [portal] = process.argv.slice(2)
if (portal) {
  const queue = new Queue<PortalJob>(QUEUE, { connection })
  // Tried again often and soon: while an earlier delivery is still at work, the later one is refused.
  const again = { attempts: 100, backoff: { type: 'fixed', delay: 5_000 } }
  const job = await queue.add('crawl', { portal, pages: 20 }, again)
  console.log(`sent ${job.id}`)
  await queue.close()
} else {
  const unstuck = await open()
  const worker = new Worker<PortalJob, string>(
    QUEUE,
    (job) => crawlPortal(unstuck, job.id!, job.data),
    { connection, concurrency: 5 },
  )
  worker.on('completed', (job, result) => console.log(`job ${job.id}: ${result}`))
  worker.on('failed', (job, error) => console.log(`job ${job?.id}: ${error.message}`))
  worker.on('error', (error) => console.error(error.message))
  console.log('waiting for jobs')
  await once(process, 'SIGTERM')
  // Each run's signal has fired: jobs end after the page in hand, and go on wherever they are delivered next.
  await worker.close()
  await unstuck.close()
}
