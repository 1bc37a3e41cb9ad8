import { isLive, type Run } from '../../../model/run.ts'
import type { Target } from '../../../model/target.ts'
import type { Store } from '../../../store/store.ts'
import { judgeRun } from '../../../runtime/judgement.ts'
import { auditView, countsView, executionView, runView, targetView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { findRun } from '../find-run.ts'
import { healthOf } from '../../survey/health.ts'
import { argument } from '../option.ts'
import { printRun, type Audited } from '../run-text.ts'

const TROUBLE_MAX = 10
const AUDIT_MAX = 10
const EXECUTIONS_MAX = 10

export const show = defineCommand({
  name: 'show',
  summary: 'One run: its facts, counts, trouble, and what recovery did.',
  examples: ['unstuck show 4f2a91bc', 'unstuck show 4f2a91bc --watch'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  watch: true,

  async run({ args, database }) {
    const store = await database.openExisting()
    const run = await findRun(store, args.run)
    const now = await store.now()
    const health = healthOf(await judgeRun(store, run), now)
    const groups = await store.countsByGroup(run.id)
    const trouble = await troubleOf(store, run)
    const audit = await lastAudit(store, run)
    const executions = await store.executions(run.id, EXECUTIONS_MAX)
    return {
      data: {
        run: {
          ...runView(run),
          input: run.input,
          ...(isLive(run.status) && { health: health.state, because: health.because }),
        },
        counts: countsView(run.counts),
        groups: groups.map(({ group, counts }) => ({ group, ...countsView(counts) })),
        trouble: trouble.map(targetView),
        executions: executions.map(executionView),
        audit: audit.map(({ entry, key }) => ({ ...auditView(entry), key })),
      },
      text: (paper) => printRun(paper, { run, health, groups, trouble, executions, audit, now }),
    }
  },
})

/** Targets that wait for a person, some of each kind. */
async function troubleOf(store: Store, run: Run): Promise<Target[]> {
  const found: Target[] = []
  for (const status of ['stuck', 'parked', 'failed'] as const) {
    if (run.counts.targets[status] === 0) continue
    found.push(...(await store.targets(run.id, { status, limit: TROUBLE_MAX })).items)
  }
  return found
}

/** The newest entries, oldest first. */
async function lastAudit(store: Store, run: Run): Promise<Audited[]> {
  const last = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  return Promise.all(
    last.reverse().map(async (entry) => {
      const target = entry.target === null ? null : await store.target(entry.target)
      return { entry, key: target?.key ?? null }
    }),
  )
}
