import {
  AlreadyRunningError,
  NotFoundError,
  RefusedError,
  UsageError,
} from '../core/model/errors.ts'
import { newId, shortId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { describeOrigin } from '../core/model/traits.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import type { Store } from '../core/store/store.ts'
import { SOURCE_STORE } from '../features/sources/store/store.ts'
import { runCommand, unstuckCommand } from '../core/model/shell-command.ts'
import { checkSource, isModulePath } from '../lib/validate/source.ts'
import { makeResult, NOTHING_CHANGED, undoByCancel, type ActionResult } from './action-result.ts'
import { makeAction, type ActionText, type AllowedAction } from './allowed-actions.ts'
import { continuationOf, loadLastStart } from './continuation.ts'
import { formatIn, plural } from './format.ts'
import type { SourcePolicies } from './policy-settings.ts'
import { describeWait, type ActionRequest } from './run-actions.ts'
import { sourceView, type SourceReport } from './sources.ts'
import { loadSource } from './find.ts'

/** Operator actions on one source, for all interfaces. None of them starts a process. */

/** Programs that work on a table of the user's own do not ask Unstuck. */
function refuseAdopted({ run }: SourceReport, what: string): RefusedError | null {
  if (!run?.traits.origin) return null
  return new RefusedError(
    `${run.source} is in ${describeOrigin({ ...run.traits.origin, key: '' })}, which your own programs work on: Unstuck cannot ${what} it.`,
  )
}

export function pause(
  context: ActionContext,
  source: string,
  request: ActionRequest,
): Promise<ActionResult> {
  return changePause(context, source, true, request)
}

export function unpause(
  context: ActionContext,
  source: string,
  request: ActionRequest,
): Promise<ActionResult> {
  return changePause(context, source, false, request)
}

async function changePause(
  { store, actor }: ActionContext,
  source: string,
  paused: boolean,
  { dryRun, because }: ActionRequest,
): Promise<ActionResult> {
  const report = await loadSource(store, source)
  const refusal = paused ? refuseAdopted(report, 'pause') : null
  if (refusal) throw refusal
  const name = paused ? 'pause' : 'unpause'
  const facts = { run: null, command: unstuckCommand(name, [source], { because }) }
  if ((report.state.paused !== null) === paused) {
    const same = `${source} is ${paused ? 'paused already' : 'not paused'}.`
    const sentences = dryRun ? [same] : [same, NOTHING_CHANGED]
    return makeResult(dryRun, { ...facts, targets: 0, sentences, undo: null })
  }
  if (!dryRun) {
    const sources = await store.extend(SOURCE_STORE)
    const why = because ?? `${name}d by ${actor}`
    await sources.setPaused({ source, paused, actor, because: why })
  }
  const live = report.run && isLive(report.run.status) ? report.run : null
  const { nextStartAt } = report.state
  return makeResult(dryRun, {
    ...facts,
    isOnRun: true,
    targets: paused && live ? live.counts.targets.in_progress : 0,
    sentences: [
      paused
        ? `${source} ${dryRun ? 'would be' : 'is'} paused: nothing of it is started or claimed.`
        : `${source} ${dryRun ? 'would no longer be' : 'is no longer'} paused.`,
      ...(live ? describeLive(live, paused) : []),
      ...(nextStartAt === null
        ? []
        : paused
          ? ['Its supervisor skips its times meanwhile.']
          : [`Next start ${formatIn(nextStartAt, await store.now())}.`]),
    ],
    undo: undoBy(paused ? 'unpause' : 'pause', source),
  })
}

/** What becomes of the live run of the source. */
function describeLive({ id, kind, counts }: Run, paused: boolean): string[] {
  if (!paused) return [`Run ${shortId(id)} continues with its next worker.`]
  const held = counts.targets.in_progress
  if (held === 0) return []
  return kind === 'single'
    ? [
        `Run ${shortId(id)} goes on to its end. \`${unstuckCommand('cancel', [shortId(id)])}\` stops it.`,
      ]
    : [`${plural(held, 'target')} in progress: released after the current page.`]
}

/** It is passed in an environment variable, whose limit on Linux is 128 KB. */
const INPUT_MAX = 100_000

/** Queues a run of a source, a crawl if its last run was one. `input`: any JSON, for its command. */
export async function enqueueSource(
  store: Store,
  settings: SourcePolicies,
  source: string,
  input: unknown,
): Promise<Run> {
  checkSource(source)
  if (Buffer.byteLength(JSON.stringify(input) ?? '') > INPUT_MAX) {
    throw new UsageError(
      'The input is larger than 100 KB. Put it into a file, and its path into the input.',
    )
  }
  const last = (await store.liveRun(source)) ?? (await store.runs({ source, limit: 1 })).items[0]
  if (!last && isModulePath(source)) {
    const command = unstuckCommand('enqueue', [source])
    throw new UsageError(
      `${source} is the path of a file, not the name of a source. A crawl is queued with \`${command}\`.`,
    )
  }
  const refusal = last ? refuseEnqueue(last) : null
  if (refusal) throw refusal
  const crawl = last?.kind === 'crawl' && last.traits.origin === null ? last : null
  if (crawl && input !== null)
    throw new UsageError(`${source} is a crawl: it takes no input, its targets are in its module.`)
  const id = newId()
  // The crawl's own settings are in its module: its last run has them.
  const policy = crawl?.policy ?? settings.policyFor(source)
  await store.enqueue({ id, source, kind: crawl ? 'crawl' : 'single', policy, input })
  return (await store.run(id))!
}

/** Why no run can be queued after this one, the live or last one of its source. Rows of a table of your own block nothing. */
function refuseEnqueue({ id, source, status, traits }: Run): Error | null {
  if (traits.origin !== null) return null
  if (traits.items !== 'items') return new RefusedError(`Only its own program can start ${source}.`)
  return isLive(status) ? new AlreadyRunningError(source, id, { status }) : null
}

/** Queues a run like the last one, for a worker that runs or will be started. */
export async function enqueue(
  context: ActionContext & { readonly settings: SourcePolicies },
  source: string,
  { dryRun }: ActionRequest,
): Promise<ActionResult> {
  const { store, settings } = context
  const report = await loadSource(store, source)
  const refusal = refuseEnqueueAgain(report)
  if (refusal) throw refusal
  // Lists leave a long input out.
  const { input } = (await store.run(report.run!.id)) ?? report.run!
  const run = dryRun ? null : await enqueueSource(store, settings, source, input)
  const queued = { ...report.run!, status: 'queued' as const, paused: report.state.paused }
  const what = run
    ? `Run ${shortId(run.id)} of ${source} is queued`
    : `A run of ${source} would be queued`
  return makeResult(dryRun, {
    run,
    isOnRun: true,
    targets: 0,
    sentences: [
      `${what}.`,
      (await describeWait(store, queued)) ?? 'It begins when a worker takes it up.',
    ],
    undo: run && undoByCancel(run, 'Cancel it'),
    command: enqueueCommand(source, input),
  })
}

/** There must be a run to repeat. */
function refuseEnqueueAgain(report: SourceReport): Error | null {
  const { run, state } = report
  if (run === null) return new RefusedError(`${state.source} has not run yet.`)
  return refuseAdopted(report, 'queue') ?? refuseEnqueue(run)
}

function enqueueCommand(source: string, input: unknown): string {
  const text = input === null ? undefined : JSON.stringify(input)
  return unstuckCommand('enqueue', [source], { input: text })
}

/** Asks the supervisor that waits for the next start to start now. Starts no process. */
export async function runNow(
  context: ActionContext,
  source: string,
  request: ActionRequest,
): Promise<ActionResult> {
  const { store, actor } = context
  const report = await loadSource(store, source)
  const refusal = refuseRunNow(report) ?? (await refuseWithoutSupervisor(context, report))
  if (refusal) throw refusal
  const { dryRun, because } = request
  if (!dryRun) {
    const sources = await store.extend(SOURCE_STORE)
    const why = because ?? `requested by ${actor}`
    if (!(await sources.requestRunNow({ source, actor, because: why })))
      throw new RefusedError(`The supervisor of ${source} no longer waits. Nothing was changed.`)
  }
  const when = formatIn(report.state.nextStartAt!, await store.now())
  return makeResult(dryRun, {
    run: null,
    isOnRun: true,
    targets: 0,
    sentences: [
      `The supervisor of ${source} ${dryRun ? 'would start' : 'starts'} it now, instead of ${when}.`,
      `It cannot be taken back, but \`${unstuckCommand('cancel', [source])}\` ends the run.`,
    ],
    undo: null,
    command: unstuckCommand('run-now', [source], { because }),
  })
}

function refuseRunNow(report: SourceReport): Error | null {
  const { run, state } = report
  const { source, paused } = state
  const adopted = refuseAdopted(report, 'start')
  if (adopted) return adopted
  if (paused)
    return new RefusedError(
      `${source} is paused: ${paused.because}. First: \`${unstuckCommand('unpause', [source])}\``,
    )
  const isHeld = run !== null && isLive(run.status) && run.counts.targets.in_progress > 0
  return isHeld ? new AlreadyRunningError(source, run.id) : null
}

/** Only a process that runs already can start the command: what to do instead. */
async function refuseWithoutSupervisor(
  context: ActionContext,
  { state, run }: SourceReport,
): Promise<NotFoundError | null> {
  const { source, nextStartAt } = state
  if (nextStartAt !== null) return null
  const last = run && continuationOf(run, await loadLastStart(context, run))
  // With it, no run would be begun.
  const start = (last?.command ?? runCommand(source, ['COMMAND'])).replace(' --no-start', '')
  const queue = unstuckCommand('enqueue', [source])
  const hint =
    run?.traits.items === 'datasets'
      ? `Only its own program can start ${source}.`
      : `Start it with \`${start}\`, or queue it for a worker that runs with \`${queue}\`.`
  return new NotFoundError(`supervisor that waits to start ${source}`, hint)
}

function undoBy(name: 'pause' | 'unpause', source: string): ActionResult['undo'] {
  return {
    label: name === 'pause' ? 'Pause again' : 'Unpause',
    calls: [{ method: 'POST', path: pathOf(source, name), body: {} }],
    command: unstuckCommand(name, [source]),
  }
}

function pathOf(source: string, name: string): string {
  return `/api/sources/${encodeURIComponent(source)}/${name}`
}

/** Lists what can be done to a source now: what is listed is accepted. */
export function sourceActions(report: SourceReport): AllowedAction[] {
  const { state } = report
  const { source } = state
  const names = [
    refuseRunNow(report) === null && state.nextStartAt !== null && ('run-now' as const),
    state.nextStartAt === null && refuseEnqueueAgain(report) === null && ('enqueue' as const),
    state.paused ? ('unpause' as const) : refuseAdopted(report, '') === null && ('pause' as const),
  ]
  return names.flatMap((name) =>
    name === false
      ? []
      : makeAction(
          name,
          {
            takesReason: name !== 'enqueue',
            ...TEXTS[name](source),
            call: { path: pathOf(source, name) },
          },
          name === 'enqueue'
            ? enqueueCommand(source, report.run!.input)
            : unstuckCommand(name, [source]),
        ),
  )
}

const TEXTS: Readonly<
  Record<'enqueue' | 'run-now' | 'pause' | 'unpause', (source: string) => Omit<ActionText, 'call'>>
> = {
  'run-now': (source) => ({
    label: 'Run now',
    title: `Run ${source} now`,
    about: 'Its supervisor starts the command at once, instead of at its next time.',
  }),
  enqueue: (source) => ({
    label: 'Enqueue',
    title: `Queue a run of ${source}`,
    about: 'A worker that runs takes it up; nothing is started here. It can be undone.',
  }),
  pause: (source) => ({
    label: 'Pause',
    title: `Pause ${source}`,
    about:
      'Nothing of it is started or claimed any more, and scheduled starts are skipped. Pages in progress are finished; a command goes on to its end. It can be undone.',
  }),
  unpause: (source) => ({
    label: 'Unpause',
    title: `Unpause ${source}`,
    about: 'Its runs go on, and its schedule applies again. It can be undone.',
  }),
}

/** With what can be done to it. */
export function sourceItem(report: SourceReport) {
  return { ...sourceView(report.state), actions: sourceActions(report) }
}
