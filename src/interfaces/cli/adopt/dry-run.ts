import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withAdoptedTables } from '../../../features/adopted/adopted-store.ts'
import type { Mapping } from '../../../features/adopted/mapping.ts'
import { TRUSTED_OBSERVER } from '../../../core/decide/liveness.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Action, Decision } from '../../../core/model/verdict.ts'
import type { PolicyOf } from '../../../core/recovery/assess.ts'
import { recover, type Recovery } from '../../../core/recovery/recover.ts'
import { openStore } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'

/** What would be said of the rows of one table if it were adopted now. */
export type DryRunResult = {
  /** Rows that say they are at work, or wait to be. */
  readonly live: number
  /** How many of them get which verdict. */
  readonly actions: Readonly<Partial<Record<Action, number>>>
  /** A few of them, those first with which something is to be done. */
  readonly examples: readonly JudgedRow[]
  /** What a person should know about the table, in sentences: a right that is missing to do all this, an index. */
  readonly remarks: readonly string[]
}

export type JudgedRow = Decision & { readonly row: string; readonly source: string }

/** Why it cannot be judged: a right or a column that is missing. */
export type DryRunFailure = { readonly trouble: string }

export type DryRunOptions = {
  readonly mapping: Mapping
  readonly policyOf: PolicyOf
  readonly log: (line: string) => void
}

/**
 * Judges the rows as `recover --dry-run` would, with books of its own that are thrown away: neither the user's database
 * nor Unstuck's is changed, or made.
 */
export async function dryRun({
  mapping,
  policyOf,
  log,
}: DryRunOptions): Promise<DryRunResult | DryRunFailure> {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-adopt-'))
  const address = `sqlite:${join(folder, 'unstuck.db')}`
  try {
    const store = withAdoptedTables(await openStore(address), [mapping], { address, log, policyOf })
    try {
      const context = { store, actor: 'unstuck adopt', policyOf }
      const recovery = await recover(context, { dryRun: true, observer: TRUSTED_OBSERVER })
      const [away] = store.unreadable
      if (away) return { trouble: away.because }
      const judged =
        mapping.kind === 'runs' ? judgeRuns(recovery) : await judgeTargets(recovery, store)
      return { ...judged, remarks: store.warnings }
    } finally {
      await store.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const EXAMPLES_MAX = 5

type Judgements = Omit<DryRunResult, 'remarks'>

function judgeRuns({ active }: Recovery): Judgements {
  const judged = active.map(({ run, decision }) => ({
    ...decision,
    row: run.adopted?.key ?? run.id,
    source: run.source,
  }))
  const isQuiet = ({ action }: Decision): boolean => action === 'leave' || action === 'wait'
  return {
    live: active.length,
    actions: countOf(judged),
    examples: [...judged.filter((one) => !isQuiet(one)), ...judged.filter(isQuiet)].slice(
      0,
      EXAMPLES_MAX,
    ),
  }
}

/** The table as a whole is one run: its rows are told apart by the verdicts on targets. */
async function judgeTargets({ active, verdicts }: Recovery, store: Store): Promise<Judgements> {
  const live = active.reduce((sum, { run }) => sum + run.counts.targets.in_progress, 0)
  const judged = verdicts.filter(({ target }) => target !== null)
  const examples: JudgedRow[] = []
  for (const { target, source, action, because } of judged.slice(0, EXAMPLES_MAX)) {
    const found = await store.target(target!)
    examples.push({ row: found?.key ?? shortId(target!), source, action, because })
  }
  const leave = live - judged.length
  return { live, actions: { ...countOf(judged), ...(leave > 0 && { leave }) }, examples }
}

function countOf(judged: readonly Decision[]): Partial<Record<Action, number>> {
  const counts: Partial<Record<Action, number>> = {}
  for (const { action } of judged) counts[action] = (counts[action] ?? 0) + 1
  return counts
}
