import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TRUSTED_OBSERVER } from '../../../core/decide/liveness.ts'
import { shortId, type TargetId } from '../../../core/model/id.ts'
import type { Action, Decision } from '../../../core/model/verdict.ts'
import type { PolicyOf } from '../../../core/model/policy-of.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { makeOperatorContext } from '../../../core/recovery/context.ts'
import { recover, type Recovery } from '../../../core/recovery/recover.ts'
import { openStore } from '../../../core/store/open.ts'
import { withAdoptedTables } from '../store-wrapper.ts'
import type { Mapping } from '../mapping.ts'

/** The verdicts on a table's rows if it were adopted now. */
export type DryRun = {
  /** Rows that are active or waiting. */
  readonly live: number
  /** Rows per action. */
  readonly actions: Readonly<Partial<Record<Action, number>>>
  /** A few of them, those with an action first. */
  readonly examples: readonly AssessedRow[]
  /** Such as a missing right or index. */
  readonly warnings: readonly string[]
}

export type AssessedRow = Decision & { readonly row: string; readonly source: string }

/** Why the rows cannot be assessed, such as a missing right. */
export type DryRunFailure = { readonly error: string }

const EXAMPLES_MAX = 5

/**
 * Decides on the rows as `recover --dry-run` would, with a temporary store: writes neither to the user's database nor to
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
      const examples: AssessedRow[] = []
      const rows = assessedRows(recovery, mapping.kind)
      const isQuiet = ({ action }: Decision): boolean => action === 'leave' || action === 'wait'
      const sorted = rows.toSorted((a, b) => Number(isQuiet(a)) - Number(isQuiet(b)))
      for (const { target, row, ...decision } of sorted.slice(0, EXAMPLES_MAX)) {
        const found = target === null ? null : await store.target(target)
        examples.push({ ...decision, row: found?.key ?? row })
      }
      const { runs } = recovery.assessment
      const live =
        mapping.kind === 'runs'
          ? runs.length
          : runs.reduce((sum, { run }) => sum + run.counts.targets.in_progress, 0)
      const actions: Partial<Record<Action, number>> = {}
      for (const { action } of rows) actions[action] = (actions[action] ?? 0) + 1
      if (live > rows.length) actions.leave = live - rows.length
      return { live, actions, examples, warnings: store.warnings }
    } finally {
      await store.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the verdicts on rows. A table of targets is one run, so its verdicts are those on the targets. */
function assessedRows(
  { assessment, verdicts }: Recovery,
  kind: Mapping['kind'],
): (AssessedRow & { target: TargetId | null })[] {
  if (kind === 'runs')
    return assessment.runs.map(({ run, decision }) => ({
      ...decision,
      row: run.traits.origin?.key ?? run.id,
      source: run.source,
      target: null,
    }))
  return verdicts.flatMap(({ target, source, action, because }) =>
    target === null ? [] : [{ row: shortId(target), source, action, because, target }],
  )
}
