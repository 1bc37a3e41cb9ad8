import type { List, ListedRun, LogPage, Run, Target, Worker } from '../../presenters/responses.ts'

/** The responses of the API; none of their code is in the bundle. */
export type * from '../../presenters/responses.ts'
export type { ActionResult as ActionResponse } from '../../presenters/responses.ts'

/** A page of a list; `next` goes back as `after`. */
export type Page<T> = List<T, string | number>
export type LogLine = LogPage['lines'][number]
export type RunStatus = Run['status']
export type TargetStatus = Target['status']
export type Liveness = Worker['liveness']
export type Health = NonNullable<ListedRun['health']>
