import { existsSync } from 'node:fs'
import { messageOf, UsageError } from '../../../core/model/errors.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import { checkSource } from '../../../lib/validate/source.ts'
import { loadCrawl } from '../../../app/load-crawl.ts'
import { planRun } from '../../../core/worker/planning.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { enqueueSource as queue } from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

const options = {
  input: option.text('JSON', "for a command's source: what its command finds in UNSTUCK_INPUT"),
}

export const command = defineCommand({
  examples: [
    'unstuck enqueue crawl.ts   # with all its targets',
    "unstuck enqueue portal-a   # of a command's source",
    `unstuck enqueue report-7 --input '{"month": "2026-10"}'`,
  ],
  args: { what: argument.required('a file that exports a crawl, or the name of a source') },
  options,

  async run(context) {
    const { what } = context.args
    const store = await context.database.open()
    const isModule = existsSync(what) || /\.[cm]?[jt]s$/.test(what)
    const run = isModule ? await enqueueCrawl(context, store) : await enqueueCommand(context, store)
    const total = runView(run).total
    return {
      data: runView(run),
      print: (writer) =>
        writer.line(
          `Run ${shortId(run.id)} of ${run.source} is queued with ${total} ${total === 1 ? 'target' : 'targets'}.`,
        ),
    }
  },
})

type Enqueue = CliContext<{ what: ReturnType<typeof argument.required> }, typeof options>

async function enqueueCrawl(context: Enqueue, store: Store): Promise<Run> {
  const { args, settings, output, options } = context
  if (options.input !== undefined)
    throw new UsageError('--input is for the source of a command; a crawl has its targets.')
  const crawl = await loadCrawl(args.what)
  const policy = (await settings()).policyFor(crawl.source, crawl.policyOptions)
  const id = newId()
  await store.enqueue({ id, source: crawl.source, kind: 'crawl', policy })
  let reported = 0
  await planRun(store, crawl, id, new AbortController().signal, (added) => {
    if (added - reported < 100_000) return
    reported = added
    output.note(`${added} targets so far`)
  })
  return (await store.run(id))!
}

async function enqueueCommand({ args, settings, options }: Enqueue, store: Store): Promise<Run> {
  checkSource(args.what)
  const input = readInput(options.input)
  return queue(store, await settings(), args.what, input)
}

/** It travels in an environment variable, and Linux takes 128 KB in one at most. */
const INPUT_MAX = 100_000

function readInput(text: string | undefined): unknown {
  if (text === undefined) return null
  if (Buffer.byteLength(text) > INPUT_MAX) {
    throw new UsageError(
      '--input is larger than 100 KB. Put it into a file, and its path into the input.',
    )
  }
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new UsageError(
      `--input must be JSON, as in '{"month": "2026-10"}': ${messageOf(error)}.`,
      { cause: error },
    )
  }
}
