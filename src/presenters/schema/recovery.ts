import * as v from 'valibot'
import { ACTIONS } from '../../core/model/verdict.ts'
import { count } from './common.ts'
import { VERDICT_OUTCOMES } from '../verdict.ts'
import { actions, presentedFields, sections, undo } from './presented.ts'
import { owner, run, liveness } from './run.ts'

const subject = v.object({ kind: v.picklist(['run', 'target', 'row']), label: v.string() })

export const verdict = v.object({
  run: v.string(),
  source: v.string(),
  target: v.nullable(v.string()),
  action: v.picklist(ACTIONS),
  because: v.string(),
  liveness,
  /** What the verdict is based on, in sentences. */
  evidence: v.array(v.string()),
  facts: v.record(v.string(), v.unknown()),
  from: v.string(),
  to: v.string(),
  outcome: v.picklist(VERDICT_OUTCOMES),
  blockedBy: v.nullable(v.string()),
  subject,
})

/** A live run with its verdict. */
export const assessedRun = v.object({
  ...run.entries,
  action: v.picklist(ACTIONS),
  because: v.string(),
  blockedBy: v.nullable(v.string()),
  subject,
  owner: v.nullable(owner),
  checkpoint: v.nullable(v.object({ page: count, pageTarget: v.nullable(count) })),
  evidence: v.array(v.string()),
  facts: v.record(v.string(), v.unknown()),
})

/** Names what a preview showed: an action that carries it is refused when it would now do something else. */
export const plan = v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/, 'is the `plan` of a preview'))

/** `recover --json`; of long lists the first entries. */
export const recovery = v.object({
  ...presentedFields,
  /** 200 at most. */
  active: v.array(assessedRun),
  /** How many active runs there are. */
  activeTotal: count,
  /** 500 at most: first what recovery applies by itself, then what needs attention. */
  verdicts: v.array(verdict),
  /** How many verdicts there are. */
  total: count,
  applied: count,
  /** Adopted tables that could not be read: what is in them was neither assessed nor recovered. */
  unreadable: v.array(v.object({ table: v.string(), because: v.string() })),
  dryRun: v.boolean(),
  plan: v.string(),
  /** How many of the verdicts recovery applies by itself; the others need attention. */
  planned: count,
  command: v.string(),
})

const summaryFields = {
  ...presentedFields,
  total: count,
  active: v.array(assessedRun),
  resumable: v.array(assessedRun),
  dead: v.array(assessedRun),
}

/** `summary --json` */
export const summary = v.object(summaryFields)

/** `clean --json` */
export const cleaning = v.object({
  ...summaryFields,
  dead: v.array(v.object({ ...assessedRun.entries, actions })),
  cleaned: v.array(verdict),
  dryRun: v.boolean(),
  plan: v.string(),
  command: v.string(),
})

/** What an action on one run or on targets answers. */
export const actionResult = v.object({
  run: v.nullable(run),
  targets: count,
  /** How many things it changed, or would: the run itself, or targets. */
  count,
  sections,
  dryRun: v.boolean(),
  undo,
  command: v.string(),
})
