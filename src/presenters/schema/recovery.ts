import * as v from 'valibot'
import { SEVERITIES } from '../../core/decide/health.ts'
import { ACTIONS } from '../../core/model/verdict.ts'
import { count } from './common.ts'
import { actions, sections, undo } from './presented.ts'
import { owner, run, liveness } from './run.ts'

export const verdict = v.object({
  run: v.string(),
  source: v.string(),
  target: v.nullable(v.string()),
  action: v.picklist(ACTIONS),
  because: v.string(),
  liveness,
  evidence: v.unknown(),
  from: v.string(),
  to: v.string(),
  applied: v.boolean(),
  blockedBy: v.nullable(v.string()),
})

/** A live run with its verdict. */
export const assessedRun = v.object({
  ...run.entries,
  action: v.picklist(ACTIONS),
  because: v.string(),
  blockedBy: v.nullable(v.string()),
  owner: v.nullable(owner),
  checkpoint: v.nullable(v.object({ page: count, pageTarget: v.nullable(count) })),
  evidence: v.unknown(),
})

/** Names what a preview showed: an action that carries it is refused when it would now do something else. */
export const plan = v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/, 'is the `plan` of a preview'))

/** `recover --json`, with the plan; of long lists the first. */
export const recovery = v.object({
  severity: v.picklist(SEVERITIES),
  /** 200 at most. */
  active: v.array(assessedRun),
  /** How many active runs there are. */
  activeTotal: count,
  /** 500 at most: first what recovery does, then what is a person's to decide. */
  verdicts: v.array(verdict),
  /** How many verdicts there are. */
  total: count,
  applied: count,
  /** Tables of one's own that could not be read: what is in them was neither judged nor recovered. */
  unreadable: v.array(v.object({ table: v.string(), because: v.string() })),
  dryRun: v.boolean(),
  plan: v.string(),
  /** How many of the verdicts would be, or were meant to be, carried out; the others are a person's to decide. */
  planned: count,
  command: v.string(),
  actions,
  undo,
})

/** `clean --json`, with the plan. */
export const cleaning = v.object({
  severity: v.picklist(SEVERITIES),
  total: count,
  active: v.array(assessedRun),
  resumable: v.array(assessedRun),
  dead: v.array(v.object({ ...assessedRun.entries, actions })),
  cleaned: v.array(verdict),
  dryRun: v.boolean(),
  plan: v.string(),
  command: v.string(),
  actions,
  undo,
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
