import { messageOf, UsageError } from '../../../core/model/errors.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import { checkSource, isModulePath } from '../../../lib/validate/source.ts'
import { loadCrawl, similarModule } from '../../../app/load-crawl.ts'
import { planRun } from '../../../core/worker/planning.ts'
import type { Run } from '../../../core/model/run.ts'
import { similarSource } from '../../../presenters/find.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { describeWait } from '../../../presenters/run-actions.ts'
import { enqueueSource as queue } from '../../../presenters/source-actions.ts'
import { runView } from '../../../presenters/view.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const options = {
  input: option.text('JSON', "for a command's source: what its command finds in UNSTUCK_INPUT"),
  yes: SHARED_OPTIONS.yes,
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
    const run = await (isModulePath(what) ? enqueueCrawl(context) : enqueueCommand(context))
    const total = runView(run).total
    const wait = await describeWait(await context.database.open(), run)
    return {
      data: runView(run),
      print: (writer) => {
        const targets =
          run.plannedAt === null ? '' : ` with ${total} ${total === 1 ? 'target' : 'targets'}`
        writer.line(`Run ${shortId(run.id)} of ${run.source} is queued${targets}.`)
        if (wait !== null) writer.paragraph(wait)
      },
    }
  },
})

type Enqueue = CliContext<{ what: ReturnType<typeof argument.required> }, typeof options>

async function enqueueCrawl(context: Enqueue): Promise<Run> {
  const { args, settings, output, options } = context
  if (options.input !== undefined)
    throw new UsageError('--input is for the source of a command; a crawl has its targets.')
  const crawl = await loadCrawl(args.what, 'enqueue')
  const policy = (await settings()).policyFor(crawl.source, crawl.policyOptions)
  const store = await context.database.open()
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

async function enqueueCommand(context: Enqueue): Promise<Run> {
  const { args, settings, options, output } = context
  const source = args.what
  checkSource(source)
  const input = readInput(options.input)
  const policies = await settings()
  const store = await context.database.open()
  const [last] = (await store.runs({ source, limit: 1 })).items
  const isKnown = last !== undefined || policies.sources.includes(source)
  const run = await queue(store, policies, source, input)
  const similar = isKnown ? null : (similarModule(source) ?? (await similarSource(store, source)))
  if (similar !== null)
    output.note(
      `${source} has not run before; there is ${similar}. To take it back: ${unstuckCommand('cancel', [shortId(run.id)])}`,
    )
  return run
}

function readInput(text: string | undefined): unknown {
  if (text === undefined) return null
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new UsageError(
      `--input must be JSON, as in '{"month": "2026-10"}': ${messageOf(error)}.`,
      { cause: error },
    )
  }
}
