import type { Severity } from '../core/decide/health.ts'
import type { Timestamp } from '../core/model/time.ts'
import type { Action } from '../core/model/verdict.ts'
import type { Liveness } from '../core/model/worker.ts'
import type {
  AssessedRun,
  Subject,
  AuditEntry,
  Checkpoint,
  Source,
  Counts,
  Execution,
  ListedRun,
  Rate,
  Owner,
  Run,
  Target,
} from './records.ts'

/** What the calls of the library return: the same as their commands with `--json` and their HTTP calls. */

/** What was decided about a run or a target. */
export type Verdict = {
  /** The id of the run. */
  readonly run: string
  /** The source of the run. */
  readonly source: string
  /** The id of the target; null if the verdict is about the run as a whole. */
  readonly target: string | null
  /** The key of the target; null if the verdict is about the run as a whole. */
  readonly key: string | null
  /** What follows. */
  readonly action: Action
  /** Why. */
  readonly because: string
  /** Whether the worker that holds it is alive. */
  readonly liveness: Liveness
  /** What the verdict is based on, in sentences. */
  readonly evidence: readonly string[]
  /** The same as data. */
  readonly facts: Readonly<Record<string, unknown>>
  /** The status before. */
  readonly from: string
  /** The status after. */
  readonly to: string
  /** `planned` in a preview; afterwards `applied` or `changed-meanwhile`. The others are not applied by recovery. */
  readonly outcome: 'planned' | 'applied' | 'changed-meanwhile' | 'needs-attention' | 'blocked'
  /** Why it cannot be applied: the setting that would allow it; null if it can. */
  readonly blockedBy: string | null
  /** What it is about: `target austin (91bc4f2a) of shop`. */
  readonly subject: Subject
}

/** Part of every result that is presented: the text that the command line prints. */
export type Presented = {
  /** How bad it is. */
  readonly severity: Severity
  /** One line. */
  readonly summary: string
  /** All sentences. */
  readonly sections: readonly Section[]
}

/** What `check` returns. */
export type Check = Presented & {
  /** What was asked about. */
  readonly source: string
  /** `start` or `resume`: `begin` will. `clean`: a dead run is in the way and is replaced. `wait`: a live worker has it, or it is paused. */
  readonly action: 'start' | 'resume' | 'clean' | 'wait'
  /** Why. */
  readonly because: string
  /** Why a dead run in the way cannot be ended: the setting that would allow it; null if it can. */
  readonly blockedBy: string | null
  /** The run that `action` is about; null if there is none. */
  readonly run: Run | null
  /** Where it continues; null before its first page. */
  readonly checkpoint: Checkpoint | null
  /** The worker that holds it, or held it last. */
  readonly owner: Owner | null
  /** Since when it is paused, and why; null: it is not. */
  readonly paused: Source['paused']
  /** When the supervisor that waits starts its command again; null: none waits. */
  readonly nextStartAt: Source['nextStartAt']
  /** Processes of an earlier copy on this machine: none may start beside them. */
  readonly processes: readonly LeftoverProcess[]
}

/** Every live run. */
export type LiveRuns = Presented & {
  /** How many live runs there are. */
  readonly total: number
  /** With a worker, waiting for one, paused, or to be ended by recovery. */
  readonly active: readonly AssessedRun[]
  /** Without a worker, and the next one continues from its progress. */
  readonly resumable: readonly AssessedRun[]
  /** Without worker, progress and checkpoint, for longer than `abandonAfter`. */
  readonly dead: readonly AssessedRun[]
}

/** What `summary` returns: every live run, and how many have ended. */
export type Summary = LiveRuns & {
  /** How many runs have ended, by how. */
  readonly ended: Readonly<Record<'succeeded' | 'failed' | 'cancelled' | 'abandoned', number>>
}

/** What `work` returns: what was committed to its runs meanwhile, also by processes that were killed. */
export type WorkResult = {
  /** Why it stopped; null: no work was left. */
  readonly stopped: string | null
  /** The ids of the runs that were worked on, the oldest first. */
  readonly runs: readonly string[]
  /** Pages saved. */
  readonly pages: number
  /** Items saved. */
  readonly items: {
    /** Seen for the first time. */
    readonly new: number
    /** With other data than before. */
    readonly updated: number
    /** As they were before. */
    readonly unchanged: number
  }
  /** Pages that threw, also those that were retried. */
  readonly errors: number
  /** How long it took. */
  readonly durationMs: number
}

/** What `status` returns. */
export type Status = Presented & {
  /** When it was read. */
  readonly now: Timestamp
  /** The same, and `well` or `idle` where nothing is wrong. */
  readonly state: 'stuck' | 'attention' | 'well' | 'idle'
  /** Live runs, the worst first, 200 at most. */
  readonly runs: readonly ListedRun[]
  /** How many live runs there are. */
  readonly liveRuns: number
  /** How many workers are in which state. */
  readonly workers: Readonly<Partial<Record<Liveness, number>>>
  /** What needs attention. */
  readonly attention: readonly Attention[]
  /** Sources that are paused, or whose supervisor waits for their next start. */
  readonly sources: readonly Source[]
  /** The newest run, live or not; null before the first. */
  readonly latest: Run | null
}

/** Something that needs attention. */
export type Attention = {
  /** The id of the run; null if it is about the source. */
  readonly run: string | null
  /** The source. */
  readonly source: string
  /** What is wrong, in a few words. */
  readonly what: string
  /** Why. */
  readonly because: string | null
  /** The command that shows or solves it. */
  readonly command: string
  /** Of a stuck row of a table of your own: the commands that move it, or mark it as seen. */
  readonly commands?: readonly string[]
}

/** A process on this machine that a command of `run` left when Unstuck and its watchdog were killed. */
export type LeftoverProcess = {
  /** The source of its command. */
  readonly source: string
  /** The name of this machine. */
  readonly host: string
  /** Its process id there. */
  readonly pid: number
  /** Its program and arguments, without secrets. */
  readonly command: string
  /** When it was started. */
  readonly since: Timestamp
  /** `planned` in a preview; afterwards `ended`, or `running` if it could not be ended or was left alone. */
  readonly outcome: 'planned' | 'ended' | 'running'
}

/** What `run` returns. */
export type RunDetail = Presented & {
  /** The run. */
  readonly run: ListedRun & {
    /** What it was queued with; null if nothing. */
    readonly input: unknown
    /** Where its results are: saved as items, or in the datasets of its crawler. */
    readonly results: 'items' | 'datasets'
  }
  /** Its counts. */
  readonly counts: Counts
  /** The same by group. */
  readonly groups: readonly (Counts & {
    /** The group; null: targets without one. */
    readonly group: string | null
  })[]
  /** Targets that are stuck, parked or failed, some of each. */
  readonly needsAttention: readonly Target[]
  /** How many of its targets an operator acknowledged. */
  readonly acknowledged: number
  /** Why it failed, in a sentence; null for any other run. */
  readonly cause: string | null
  /** Lives of its command, newest first; none for a crawl. */
  readonly executions: readonly Execution[]
  /** The worker that holds it, or held it last. */
  readonly owner: Owner | null
  /** Whether its source is paused, and when its command starts again. */
  readonly source: Source
  /** Its newest changes, oldest first. */
  readonly audit: readonly AuditEntry[]
  /** The command that continues a run that stopped half-way; null for any other, and where a program of the user does. */
  readonly continuation: string | null
  /** Commands that fit it now. */
  readonly commands: readonly string[]
}

/** A setting of a policy and where it comes from. */
export type Setting = {
  /** As written in a config. */
  readonly name: string
  /** The group that it is for; null: all. */
  readonly group: string | null
  /** Its value. */
  readonly value: string | Rate | boolean | null
  /** Where it comes from. */
  readonly origin: 'default' | 'preset' | 'crawl' | 'table' | 'config'
}

/** What `explain` returns. */
export type Explanation = Presented & {
  /** The run. */
  readonly run: Run
  /** The target, if one was asked about. */
  readonly target: Target | null
  /** Why a run failed, in a sentence; null for any other run, and for a target. */
  readonly cause: string | null
  /** What recovery would do. */
  readonly verdict: Pick<AssessedRun, 'action' | 'because' | 'blockedBy'>
  /** The worker that holds it, or held it last. */
  readonly owner: Owner | null
  /** What the verdict is based on, in sentences; empty without a worker. */
  readonly evidence: readonly string[]
  /** The same as data; null without a worker. */
  readonly facts: Readonly<Record<string, unknown>> | null
  /** The settings that apply. */
  readonly policy: readonly Setting[]
  /** What would change it, in sentences. */
  readonly changes: readonly string[]
  /** Its newest changes, newest first. */
  readonly trail: readonly AuditEntry[]
}

/** How to revert a change. */
export type Undo = {
  /** For a button. */
  readonly label: string
  /** Calls of the HTTP API, in this order. */
  readonly calls: readonly ApiCall[]
  /** The same on the command line. */
  readonly command: string
}

/** A call of the HTTP API. */
export type ApiCall = {
  /** Its method. */
  readonly method: 'POST'
  /** Its path. */
  readonly path: string
  /** Its body. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Part of everything that changes something. */
export type Change = {
  /** How many things it changed, or would: runs, targets or verdicts. */
  readonly count: number
  /** What was done, or would be, in one line. */
  readonly summary: string
  /** Whether nothing was changed because `dryRun` was given. */
  readonly dryRun: boolean
  /** The same on the command line. */
  readonly command: string
  /** Null: nothing was changed, or it cannot be reverted. */
  readonly undo: Undo | null
}

/** Sentences about a result. */
export type Section = {
  /** Null: the first part. */
  readonly heading: string | null
  /** What happened, or would. */
  readonly sentences: readonly string[]
}

/** What `cancel`, `resume`, `retry`, `revert`, `resetFailed`, `park`, `unpark` and `rewind` return. */
export type ActionResult = Change & {
  /** The run as it is now; null if it is about targets of several. */
  readonly run: Run | null
  /** How many targets it was about. */
  readonly targets: number
  /** What was done, in sentences. */
  readonly sections: readonly Section[]
}

/** What `recover` returns. */
export type Recovery = Change &
  Presented & {
    /** Live runs as they were before, 200 at most. */
    readonly active: readonly AssessedRun[]
    /** How many live runs there were. */
    readonly activeTotal: number
    /** What was decided, 500 at most: first what recovery does, then what needs attention. */
    readonly verdicts: readonly Verdict[]
    /** How many verdicts there are. */
    readonly total: number
    /** How many of them were applied. */
    readonly applied: number
    /** How many of them recovery applies; the others need attention. */
    readonly planned: number
    /** Names exactly these verdicts: pass it back as `plan` to apply them and nothing else. */
    readonly plan: string
    /** Processes of earlier copies of commands on this machine: recovery ends them. */
    readonly processes: readonly LeftoverProcess[]
    /** Tables of your own that could not be read: their rows were not assessed. */
    readonly unreadable: readonly UnreadableTable[]
    /** What the selection does not do: a timeout below the lease finds no dead worker sooner. Null: nothing to add. */
    readonly note: string | null
  }

/** A table of your own that cannot be read. */
export type UnreadableTable = {
  /** Its name in the config. */
  readonly table: string
  /** Why. */
  readonly because: string
}

/** What `clean` returns. */
export type Cleaning = Change &
  LiveRuns & {
    /** What was marked, or refused. */
    readonly cleaned: readonly Verdict[]
    /** Names exactly these dead runs: pass it back as `plan` to mark them and no others. */
    readonly plan: string
  }
