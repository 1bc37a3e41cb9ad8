import * as v from 'valibot'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import { count, time } from './common.ts'
import { actions, presentedFields, undo } from './presented.ts'
import * as runs from './run.ts'

/** What single calls answer, as docs/reference/json-output.md has it of the command of the same name. */

/** `progress --json` */
export const progress = v.object({
  items: v.array(
    v.object({
      run: runs.run,
      counts: runs.counts,
      by: v.picklist(['group', 'page', 'status']),
      rows: v.union([
        v.array(runs.groupCounts),
        v.array(v.object({ page: count, targets: count })),
        v.array(v.object({ status: v.picklist(TARGET_STATUSES), targets: count })),
      ]),
    }),
  ),
  next: v.nullable(v.string()),
})

/** `check --json` */
export const advice = v.object({
  ...presentedFields,
  source: v.string(),
  action: v.picklist(['start', 'resume', 'clean', 'wait']),
  because: v.string(),
  blockedBy: v.nullable(v.string()),
  run: v.nullable(runs.run),
  checkpoint: v.nullable(
    v.object({
      page: count,
      pageTarget: v.nullable(count),
      next: v.nullable(v.string()),
      lastItemId: v.nullable(v.string()),
      cursor: v.unknown(),
    }),
  ),
  owner: v.nullable(runs.owner),
})

/** `history --json` */
export const history = v.object({
  ...presentedFields,
  counts: v.array(v.object({ source: v.string(), action: v.string(), count, lastAt: time })),
  items: v.array(runs.auditEntry),
  next: v.nullable(count),
})

/** One target, its run, and why it is what it is. */
export const targetDetail = v.object({
  target: runs.target,
  run: runs.run,
  explanation: runs.explanation,
  actions,
})

/** What went with a run, or would. */
export const deletion = v.object({
  run: v.string(),
  source: v.string(),
  targets: count,
  items: count,
  /** Those of its folders on the server's machine that are gone, or would be. */
  folders: v.array(v.string()),
  /** What could not be removed, in sentences. */
  failures: v.array(v.string()),
  dryRun: v.boolean(),
  /** The same on the command line. */
  command: v.string(),
})

/** A target of a group of dead letters. */
export const deadLetterTarget = v.object({ ...runs.target.entries, actions })

/** Dead letters that are back in line, or would be. */
export const deadLetterRetry = v.object({
  targets: count,
  /** How many more there are, for another call. */
  left: count,
  runs: v.array(
    v.object({
      run: v.string(),
      targets: count,
      /** Why none of this run are, in a sentence. */
      refused: v.nullable(v.string()),
    }),
  ),
  dryRun: v.boolean(),
  plan: v.string(),
  undo,
})

/** `config show --json` */
export const config = v.object({
  path: v.nullable(v.string()),
  db: v.object({ address: v.string(), origin: v.nullable(v.string()) }),
  preset: v.nullable(v.string()),
  policies: v.array(v.object({ source: v.nullable(v.string()), settings: v.array(runs.setting) })),
  url: v.nullable(v.string()),
  alerts: v.array(v.looseObject({ when: v.string() })),
  channels: v.record(v.string(), v.nullable(v.looseObject({ host: v.string() }))),
})
