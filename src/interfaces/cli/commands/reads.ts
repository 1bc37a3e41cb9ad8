import { defineCommand, present, presentList, reportState } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { LIVE_STATUSES, RUN_STATUSES } from '../../../core/model/run.ts'
import { checkSource, isModulePath } from '../../../lib/validate/source.ts'
import { adviseStart, NOTHING_RAN, presentCheck } from '../../../presenters/check.ts'
import { assess } from '../../../core/recovery/assess.ts'
import { loadSummary } from '../../../presenters/cleaning.ts'
import { presentExplanation } from '../../../presenters/explain.ts'
import { findRun, findRunOrTarget } from '../../../presenters/find.ts'
import { EMPTY_HISTORY, presentHistory, readHistory } from '../../../presenters/history.ts'
import { loadOverview, presentNoDatabase, presentOverview } from '../../../presenters/overview.ts'
import { loadRunReport, presentRun } from '../../../presenters/run.ts'
import { listRuns, presentRuns } from '../../../presenters/runs.ts'
import { presentWorkers } from '../../../presenters/workers.ts'

/** Commands that read once and print what a presenter returns. */

const { after, age, since, source, limit } = SHARED_OPTIONS

export const status = defineCommand({
  examples: [
    'unstuck status',
    'unstuck status --watch',
    'unstuck status --json || echo "needs attention"  # exit code 3',
  ],
  watch: true,

  async run({ database, openContextIfExists }) {
    const context = await openContextIfExists()
    return reportState(
      context
        ? presentOverview(await loadOverview(context))
        : presentNoDatabase(await database.where(), Date.now()),
    )
  },
})

export const runs = defineCommand({
  examples: [
    'unstuck runs --source directory',
    'unstuck runs --status failed --limit 5',
    "unstuck runs --json | jq -r '.items[].id'",
  ],
  options: {
    source,
    status: option.choices([...RUN_STATUSES, 'live'], 'only in these statuses'),
    limit: limit(20, 500),
    after,
  },
  watch: true,

  async run({ options: { status, ...page }, openContextIfExists }) {
    const context = await openContextIfExists()
    const statuses = status.flatMap((one) => (one === 'live' ? LIVE_STATUSES : [one]))
    const filter = { ...page, statuses: statuses.length > 0 ? [...new Set(statuses)] : undefined }
    return presentList(presentRuns(context && (await listRuns(context, filter))))
  },
})

export const show = defineCommand({
  examples: [
    'unstuck show 4f2a91bc',
    'unstuck show directory --watch  # the live run of a source, else its last',
  ],
  args: {
    run: argument.required(
      'its last 8 digits or full id, or a source: its live run, else its last',
    ),
  },
  watch: true,

  async run({ args, openContext }) {
    const context = await openContext()
    const run = await findRun(context.store, args.run)
    return present(presentRun(await loadRunReport(context, run)))
  },
})

export const workers = defineCommand({
  examples: [
    'unstuck workers --watch',
    'unstuck workers --older 1h  # only those without a heartbeat for an hour',
  ],
  options: {
    older: option.duration('AGE', 'only workers whose last heartbeat is older', undefined),
  },
  watch: true,

  async run({ options, openContextIfExists }) {
    const context = await openContextIfExists()
    return presentList(presentWorkers(context && (await assess(context)), options.older))
  },
})

export const explain = defineCommand({
  examples: ['unstuck explain 4f2a91bc', "unstuck explain 4f2a91bc --json | jq '.verdict'"],
  args: { what: argument.required('a run or a target: its last 8 digits or full id; or a source') },

  async run({ args, openContext, settings }) {
    const context = await openContext()
    const found = await findRunOrTarget(context.store, args.what)
    return present(await presentExplanation(context, await settings(), found))
  },
})

export const summary = defineCommand({
  examples: ['unstuck summary', "unstuck summary --json | jq '.dead[].id'"],
  options: { age },
  watch: true,

  async run({ options, openContextIfExists }) {
    const context = await openContextIfExists()
    return reportState(await loadSummary(context, options.age))
  },
})

export const history = defineCommand({
  examples: [
    'unstuck history --since 24h',
    'unstuck history --source directory --limit 50',
    "unstuck history --json | jq '.items[] | {at, actor, action, before, after}'",
  ],
  args: { run: argument.optional('only this run, or the live run of a source, else its last') },
  options: {
    since,
    source,
    limit: limit(20, 1_000),
    after: option.count('CURSOR', after.description, undefined, {
      max: Number.MAX_SAFE_INTEGER,
    }),
  },
  watch: true,

  async run({ args, options: { since, source, ...page }, database }) {
    if (args.run !== undefined && source !== undefined)
      throw new UsageError('Give either a run or --source SOURCE.')
    const store = await (args.run === undefined ? database.openIfExists() : database.openExisting())
    const now = store ? await store.now() : Date.now()
    const filter = {
      ...(store &&
        args.run !== undefined && { run: (await findRun(store, args.run, 'history')).id }),
      ...(since !== undefined && { since: now - since }),
      ...(source !== undefined && { source }),
    }
    const history = store ? await readHistory(store, filter, page) : EMPTY_HISTORY
    return present(presentHistory(history, now))
  },
})

export const check = defineCommand({
  examples: [
    'unstuck check portal-a',
    'unstuck check portal-a && python scrape.py  # exit code 5: a worker has it',
    'unstuck check portal-a --age 48h --json',
  ],
  args: { source: argument.required('the source that is to start') },
  options: { age },

  async run({ args: { source }, options, openContextIfExists }) {
    checkSource(source)
    if (isModulePath(source)) {
      throw new UsageError(
        `${source} is the path of a file. Give the source that it names, as in \`unstuck check portal-a\`.`,
      )
    }
    const context = await openContextIfExists()
    const advice = context ? await adviseStart(context, source, options.age) : NOTHING_RAN
    const now = context ? await context.store.now() : Date.now()
    const exitCode = advice.action === 'wait' ? EXIT.alreadyRunning : EXIT.done
    return present(presentCheck(source, advice, now), exitCode)
  },
})
