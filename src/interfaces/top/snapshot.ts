import type { Settings } from '../../contracts/settings.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { isLive, LIVE_STATUSES, RUN_STATUSES } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import { CLAIMS_MAX, type Assessment } from '../../core/recovery/assess.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { recover } from '../../core/recovery/recover.ts'
import type { Section, Style } from '../../lib/text/sentence.ts'
import {
  browseDeadLetters,
  browseHistory,
  browseRuns,
  browseVerdicts,
  browseWorkers,
  type BrowseList,
} from '../../presenters/browse.ts'
import { deadLetterSections, groupDeadLetters } from '../../presenters/dead-letters.ts'
import { presentExplanation } from '../../presenters/explain.ts'
import { SEVERITY_STYLE } from '../../presenters/format.ts'
import { auditEntrySections } from '../../presenters/history.ts'
import { loadOverview, presentOverview } from '../../presenters/overview.ts'
import { presentRecovery } from '../../presenters/recovery.ts'
import { loadRunReport, presentRun } from '../../presenters/run.ts'
import { listRuns } from '../../presenters/runs.ts'
import { workerSections, workerViews } from '../../presenters/workers.ts'
import type { TopState } from './state.ts'

export const VIEWS = ['runs', 'workers', 'recovery', 'letters', 'history'] as const
export type View = (typeof VIEWS)[number]

/** One read of the database: the summary that is always shown, and the data of the current view. */
export type Snapshot = {
  readonly now: Millis
  readonly where: string
  readonly summary: string
  readonly style: Style
  readonly view: View
  readonly list: BrowseList
  /** The row that is open; null if none is, or if it no longer exists. */
  readonly detail: { readonly row: string; readonly sections: readonly Section[] } | null
}

export type TopContext = { readonly operator: OperatorContext; readonly settings: Settings }

const LIVE_MAX = 500
const ENDED_MAX = 100
const ENTRIES_MAX = 500
const ENDED_STATUSES = RUN_STATUSES.filter((status) => !isLive(status))

/** Reads only what the current view shows. */
export async function takeSnapshot(
  context: TopContext,
  { view, screen }: TopState,
): Promise<Snapshot> {
  const overview = await loadOverview(context.operator)
  const { summary, severity } = presentOverview(overview)
  const { list, open } = await loadView(context, overview.assessment, view)
  const sections = screen.kind === 'detail' ? await open(screen.row) : null
  return {
    now: overview.assessment.now,
    where: context.operator.store.location,
    summary,
    style: SEVERITY_STYLE[severity],
    view,
    list,
    detail: sections && screen.kind === 'detail' ? { row: screen.row, sections } : null,
  }
}

type LoadedView = {
  readonly list: BrowseList
  readonly open: (row: string) => Promise<readonly Section[] | null>
}

async function loadView(
  { operator, settings }: TopContext,
  assessment: Assessment,
  view: View,
): Promise<LoadedView> {
  const { store } = operator
  const { now } = assessment
  switch (view) {
    case 'runs': {
      const [live, ended] = await Promise.all([
        listRuns(operator, { statuses: LIVE_STATUSES, limit: LIVE_MAX }),
        listRuns(operator, { statuses: ENDED_STATUSES, limit: ENDED_MAX }),
      ])
      return {
        list: browseRuns([...live.items, ...ended.items], now),
        async open(row) {
          const run = await store.run(row)
          return run && presentRun(await loadRunReport(operator, run)).sections
        },
      }
    }
    case 'workers': {
      const workers = workerViews(assessment)
      return {
        list: browseWorkers(workers, now),
        async open(row) {
          const worker = workers.find(({ id }) => id === row)
          return worker
            ? workerSections(worker, await store.claimsOf(row, null, CLAIMS_MAX), now)
            : null
        },
      }
    }
    case 'recovery': {
      // A dry run need not wait for heartbeats; the preview of R does.
      const recovery = await recover(operator, { dryRun: true, observer: TRUSTED_OBSERVER })
      return {
        list: browseVerdicts(presentRecovery(recovery, { dryRun: true }).view.verdicts),
        async open(row) {
          const found = (await store.target(row)) ?? (await store.run(row))
          return found && (await presentExplanation(operator, settings, found)).sections
        },
      }
    }
    case 'letters': {
      const groups = await groupDeadLetters(store, {})
      return {
        list: browseDeadLetters(groups, now),
        async open(row) {
          const group = groups.groups.find(({ fingerprint }) => fingerprint === row)
          return group ? deadLetterSections(group, groups.isPartial, now) : null
        },
      }
    }
    case 'history': {
      const entries = await store.audit({ newestFirst: true, limit: ENTRIES_MAX })
      return {
        list: browseHistory(entries, now),
        async open(row) {
          const entry = entries.find(({ id }) => String(id) === row)
          return entry ? auditEntrySections(entry, now) : null
        },
      }
    }
  }
}
