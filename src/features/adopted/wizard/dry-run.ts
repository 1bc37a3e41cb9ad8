import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TRUSTED_OBSERVER } from '../../../core/decide/liveness.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Action, Decision } from '../../../core/model/verdict.ts'
import type { PolicyOf } from '../../../core/model/policy-of.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { makeOperatorContext } from '../../../core/recovery/context.ts'
import { recover, type Recovery } from '../../../core/recovery/recover.ts'
import { openStore } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'
import { withAdoptedTables } from '../adopted-store.ts'
import type { Mapping } from '../mapping.ts'

/** The verdicts on a table's rows if it were adopted now. */
export type DryRun = {
  /** Rows that are active or waiting. */
  readonly live: number
  /** Rows per action. */
  readonly actions: Readonly<Partial<Record<Action, number>>>
  /** A few of them, those with an action first. */
  readonly examples: readonly JudgedRow[]
  /** Such as a missing right or index. */
  readonly warnings: readonly string[]
}

export type JudgedRow = Decision & { readonly row: string; readonly source: string }

/** Why the rows cannot be judged, such as a missing right. */
export type DryRunFailure = { readonly error: string }

const EXAMPLES_MAX = 5

/**
 * Judges the rows as `recover --dry-run` would, with a temporary store: writes neither to the user's database nor to
 * Unstuck's.
 */
export async function dryRun(
  mapping: Mapping,
  policyOf: PolicyOf,
  log: (line: string) => void,
): Promise<DryRun | DryRunFailure> {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-adopt-'))
  const address = `sqlite:${join(folder, 'unstuck.db')}`
  try {
    const store = await withAdoptedTables(await openStore(address), [mapping], {
      address,
      log,
      policyOf,
    })
    try {
      const parts = { policyOf, observer: TRUSTED_OBSERVER, clock: REAL_CLOCK }
      const context = makeOperatorContext({ ...parts, store, actor: 'unstuck adopt' })
      const recovery = await recover(context, { dryRun: true, observer: TRUSTED_OBSERVER })
      const [unreadable] = store.unreadable
      if (unreadable) return { error: unreadable.because }
      const judged =
        mapping.kind === 'runs' ? judgeRuns(recovery) : await judgeTargets(recovery, store)
      return { ...judged, warnings: store.warnings }
    } finally {
      await store.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function judgeRuns({ assessment: { runs: active } }: Recovery): Omit<DryRun, 'warnings'> {
  const judged = active.map(({ run, decision }) => ({
    ...decision,
    row: run.adopted?.key ?? run.id,
    source: run.source,
  }))
  const isQuiet = ({ action }: Decision): boolean => action === 'leave' || action === 'wait'
  const examples = judged.toSorted((a, b) => Number(isQuiet(a)) - Number(isQuiet(b)))
  return {
    live: active.length,
    actions: countActions(judged),
    examples: examples.slice(0, EXAMPLES_MAX),
  }
}

/** The whole table is one run; the verdicts are on its targets. */
async function judgeTargets(
  { assessment, verdicts }: Recovery,
  store: Store,
): Promise<Omit<DryRun, 'warnings'>> {
  const live = assessment.runs.reduce((sum, { run }) => sum + run.counts.targets.in_progress, 0)
  const judged = verdicts.filter(({ target }) => target !== null)
  const examples: JudgedRow[] = []
  for (const { target, source, action, because } of judged.slice(0, EXAMPLES_MAX)) {
    const found = await store.target(target!)
    examples.push({ row: found?.key ?? shortId(target!), source, action, because })
  }
  const leave = live - judged.length
  return { live, actions: { ...countActions(judged), ...(leave > 0 && { leave }) }, examples }
}

function countActions(judged: readonly Decision[]): Partial<Record<Action, number>> {
  const counts: Partial<Record<Action, number>> = {}
  for (const { action } of judged) counts[action] = (counts[action] ?? 0) + 1
  return counts
}
