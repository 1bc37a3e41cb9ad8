import type {
  Change,
  Cleaning,
  DeadLetterReplan,
  List,
  LogPage,
  Recovery,
  Run,
  Target,
  Worker,
} from '../../presenters/responses.ts'

/** The responses of the API; none of their code is in the bundle. */
export type * from '../../presenters/responses.ts'

/** A page of a list; `next` goes back as `after`. */
export type Page<T> = List<T, string | number>
export type LogLine = LogPage['lines'][number]
type RunStatus = Run['status']
export type TargetStatus = Target['status']
export type Liveness = Worker['liveness']

/** In the order in which they are shown. */
export const RUN_STATUSES = [
  'queued',
  'running',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
] as const satisfies readonly RunStatus[]
export const TARGET_STATUSES = [
  'planned',
  'in_progress',
  'done',
  'failed',
  'stuck',
  'parked',
] as const satisfies readonly TargetStatus[]
/** Worst first. */
export const LIVENESS = [
  'gone',
  'silent',
  'stalled',
  'unknown',
  'present',
] as const satisfies readonly Liveness[]

/** The fields that the responses of all actions have, and the lists that some of them have. */
export type ActionResult = Change & { readonly plan?: string } & Partial<
    Pick<Recovery, 'verdicts' | 'planned' | 'total' | 'processes'> &
      Pick<Cleaning, 'dead' | 'resumable' | 'cleaned'> &
      Pick<DeadLetterReplan, 'runs'>
  >
