// The job itself, the same under every queue. A queue delivers a job at least once: again when its worker died, and
// again when it only seemed to. Both are safe here.
import { AlreadyDoneError, type Unstuck } from '../../src/index.ts' // in your project: from 'unstuck'

export type PortalJob = { portal: string; pages: number }

/** `id`: the queue's own id of the job, the same in every delivery. */
export async function crawlPortal(
  unstuck: Unstuck,
  id: string,
  { portal, pages }: PortalJob,
): Promise<string> {
  try {
    // A source of its own for each job: the second delivery finds the first one's run, not another job's.
    // Left without an end (an error, a stop), the run is released: the next delivery continues after its last page.
    await using run = await unstuck.begin(`${portal}/${id}`, { once: true })
    const from = run.resumed ? `continues after page ${run.page}` : 'starts'
    console.log(`job ${id} ${from}`)
    for (let page = run.page + 1; page <= pages; page++) {
      run.signal.throwIfAborted() // SIGTERM, or another process has the run
      await run.checkpoint({ page, items: await fetchPage(portal, page) })
      console.log(`job ${id}: page ${page} saved`)
    }
    await run.succeed()
    return 'done'
  } catch (error) {
    // Done by an earlier delivery whose answer got lost: the queue may forget it.
    if (error instanceof AlreadyDoneError) return 'was done already'
    // AlreadyRunningError is an error on purpose: an earlier delivery is at work and may yet die, so the queue asks again later.
    throw error
  }
}

/** Stands for a request that takes its time. */
async function fetchPage(portal: string, page: number): Promise<{ url: string; data: unknown }[]> {
  await new Promise((resolve) => setTimeout(resolve, 100))
  return [1, 2, 3].map((n) => ({
    url: `https://${portal}.example/tenders/${page * 3 + n}`,
    data: { title: `Tender ${page * 3 + n}` },
  }))
}
