import { existsSync } from 'node:fs'
import { newId, shortId } from '../../../model/id.ts'
import { checkSource } from '../../../model/source.ts'
import { loadCrawl } from '../../../runtime/load-crawl.ts'
import { planRun } from '../../../runtime/planning.ts'
import type { Run } from '../../../model/run.ts'
import type { Store } from '../../../store/store.ts'
import { runView } from '../../view.ts'
import { defineCommand, type Context } from '../command.ts'
import { argument } from '../option.ts'

export const enqueue = defineCommand({
  name: 'enqueue',
  summary: 'Queue a run for workers to take up.',
  examples: [
    'unstuck enqueue crawl.ts   # with all its targets',
    "unstuck enqueue portal-a   # of a command's source",
  ],
  args: { what: argument.required('a file that exports a crawl, or the name of a source') },

  async run(context) {
    const { what } = context.args
    const store = await context.database.open()
    const isModule = existsSync(what) || /\.[cm]?[jt]s$/.test(what)
    const run = isModule ? await queueCrawl(context, store) : await queueSource(context, store)
    const total = runView(run).total
    return {
      data: runView(run),
      text: (paper) =>
        paper.line(
          `Run ${shortId(run.id)} of ${run.source} is queued with ${total} ${total === 1 ? 'target' : 'targets'}.`,
        ),
    }
  },
})

type Enqueue = Context<{ what: ReturnType<typeof argument.required> }>

async function queueCrawl({ args, settings, output }: Enqueue, store: Store): Promise<Run> {
  const crawl = await loadCrawl(args.what)
  const policy = (await settings()).policyFor(crawl.source, crawl.policyOptions)
  const id = newId()
  await store.enqueue({ id, source: crawl.source, kind: 'crawl', policy })
  let said = 0
  await planRun(store, crawl, id, new AbortController().signal, (added) => {
    if (added - said < 100_000) return
    said = added
    output.note(`${added} targets so far`)
  })
  return (await store.run(id))!
}

async function queueSource({ args, settings }: Enqueue, store: Store): Promise<Run> {
  const source = args.what
  checkSource(source)
  const id = newId()
  await store.enqueue({ id, source, kind: 'single', policy: (await settings()).policyFor(source) })
  return (await store.run(id))!
}
