import type { InferOutput } from 'valibot'
import type * as common from '../../presenters/schema/overview.ts'
import type { allowedAction, undo } from '../../presenters/schema/presented.ts'
import type * as recovering from '../../presenters/schema/recovery.ts'
import type * as results from '../../presenters/schema/results.ts'
import type * as runs from '../../presenters/schema/run.ts'

/** What the API answers, taken from the schemas it is validated with; nothing of them is in the bundle. */

export type Session = InferOutput<typeof common.session>
export type Overview = InferOutput<typeof common.overview>
export type Alert = InferOutput<typeof common.alert>
export type Series = InferOutput<typeof common.series>
export type DeadLetters = InferOutput<typeof common.deadLetters>
export type Operation = InferOutput<typeof common.operation>
export type LogPage = InferOutput<typeof common.logPage>
export type LogLine = LogPage['lines'][number]

export type Run = InferOutput<typeof runs.run>
export type ListedRun = InferOutput<typeof runs.listedRun>
export type RunDetail = InferOutput<typeof runs.runDetail>
export type Explanation = InferOutput<typeof runs.explanation>
export type Target = InferOutput<typeof runs.target>
export type DeadLetterTarget = InferOutput<typeof results.deadLetterTarget>
export type TargetDetail = InferOutput<typeof results.targetDetail>
export type Worker = InferOutput<typeof runs.worker>
export type Execution = InferOutput<typeof runs.execution>
export type AuditEntry = InferOutput<typeof runs.auditEntry>
export type GroupCounts = InferOutput<typeof runs.groupCounts>
export type Health = InferOutput<typeof runs.health>
export type Liveness = InferOutput<typeof runs.liveness>
export type RunStatus = Run['status']
export type TargetStatus = Target['status']

export type Verdict = InferOutput<typeof recovering.verdict>
export type AssessedRun = InferOutput<typeof recovering.assessedRun>
export type Recovery = InferOutput<typeof recovering.recovery>
export type Cleaning = InferOutput<typeof recovering.cleaning>
export type ActionResponse = InferOutput<typeof recovering.actionResult>
export type AllowedAction = InferOutput<typeof allowedAction>
export type Undo = InferOutput<typeof undo>

/** A page of a list; `next` goes back as `after`. */
export type Page<T> = { readonly items: T[]; readonly next: string | number | null }
