import { describeOrigin, runName, type RunOrigin } from '../core/model/traits.ts'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { ITEM_STORE } from '../features/items/store/store.ts'
import { refuseDelete, throwIf } from '../operator/refusals.ts'
import { messageOf, NotFoundError, UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { countTargets, type Run } from '../core/model/run.ts'
import { cleanRuns } from '../core/recovery/clean.ts'
import {
  isLogPathOf,
  runFolderExists,
  removeRunFolder,
  runFolder,
} from '../lib/files/data-folder.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import { deleteRun } from '../operator/actions.ts'
import type { Store } from '../core/store/store.ts'
import { firstSentences, ROWS_MAX, type Sentence } from '../lib/text/sentence.ts'
import { ROW_DELETION } from './action-result.ts'
import { formatRunStatus, plural } from './format.ts'
import { COMMAND_STORE } from '../features/commands/store/store.ts'

/** A run that is to be deleted, with its files and counts. */
export type PlannedDeletion = {
  readonly run: Run
  readonly targets: number
  /** 0 if items are kept. */
  readonly items: number
  /** Its folders on this machine. */
  readonly folders: readonly string[]
}

export type DeletedRun = {
  run: RunId
  source: string
  /** The row that it was; null: a run of Unstuck's own tables. */
  origin: RunOrigin | null
  targets: number
  items: number
  folders: string[]
}

export type DeletionResult = {
  readonly deleted: DeletedRun[]
  /** Runs that changed meanwhile and were not deleted. */
  readonly left: Run[]
  /** Folders that could not be removed, in sentences. */
  readonly failures: string[]
}

/** What would be deleted. `base`: the folder of files of runs that do not name their own. */
export async function planDeletion(
  store: Store,
  runs: readonly Run[],
  { base, withItems }: { readonly base: string; readonly withItems: boolean },
): Promise<PlannedDeletion[]> {
  for (const run of runs) throwIf(refuseDelete(run, true))
  const items = withItems ? await countItems(store, runs) : new Map<RunId, number>()
  const planned: PlannedDeletion[] = []
  for (const run of runs) {
    planned.push({
      run,
      targets: countTargets(run.counts),
      items: items.get(run.id) ?? 0,
      folders: await listFolders(store, base, run.id),
    })
  }
  return planned
}

/** The runs that are to be deleted, each with what goes with it. */
export function deletionPlan(
  planned: readonly PlannedDeletion[],
  withItems: boolean,
): readonly Sentence[] {
  if (planned.length === 0)
    return [['Nothing to delete: no run is dead, and no ended run was cleaned.']]
  const lines = planned.map(({ run, ...counts }): Sentence => {
    const { origin } = run.traits
    const what = describeContents({ ...counts, origin, pages: run.counts.pages })
    return [`- ${runName(run)} of ${run.source}, `, formatRunStatus(run.status), `: ${what}`]
  })
  const ofRows = planned.some(({ run }) => run.traits.origin !== null)
  const stays = withItems || ofRows ? '' : ' Their items stay.'
  return [
    [`To be deleted for good: ${plural(planned.length, 'run')}. This cannot be undone.${stays}`],
    ...(ofRows ? [[ROW_DELETION]] : []),
    ...firstSentences(lines, '`--dry-run --json` lists them', ROWS_MAX),
  ]
}

/** What was deleted, and which runs were not. */
export function deletionSentences({ deleted, left }: DeletionResult): readonly Sentence[] {
  const gone = deleted.map((one): Sentence => [`- ${deletionSummary(one, [], false)}`])
  const kept = left.map((run): Sentence => [
    `- Run ${runName(run)} of ${run.source} is unchanged: it changed meanwhile.`,
  ])
  return [
    ...firstSentences(gone, '`unstuck history` lists them', ROWS_MAX),
    ...firstSentences(kept, '`unstuck runs` lists them', ROWS_MAX),
    ...(deleted.length === 0 ? [['Nothing was deleted.']] : []),
  ]
}

/** What is deleted with a run, in one line. */
export function deletionSummary(
  { run, source, ...counts }: DeletedRun,
  failures: readonly string[],
  dryRun: boolean,
): string {
  const name = runName({ id: run, traits: counts })
  const what = `Run ${name} of ${source} with ${describeContents(counts)}`
  return dryRun
    ? `${what} would be deleted for good. This cannot be undone.`
    : [`${what} is deleted.`, ...failures].join(' ')
}

/** `3 targets, 12 pages, 2 items, its files in /data/.unstuck/runs/…` */
function describeContents({
  origin,
  targets,
  pages,
  items,
  folders,
}: Pick<DeletedRun, 'targets' | 'items' | 'origin'> & {
  readonly pages?: number
  readonly folders: readonly string[]
}): string {
  if (origin !== null) return describeOrigin(origin)
  const parts = [plural(targets, 'target')]
  if (pages !== undefined) parts.push(plural(pages, 'page'))
  if (items > 0) parts.push(plural(items, 'item'))
  return [...parts, ...folders.map((folder) => `its files in ${folder}`)].join(', ')
}

/** Deletes runs for good. Live ones in `dead` are marked as abandoned first. */
export async function applyDeletion(
  context: OperatorContext,
  planned: readonly PlannedDeletion[],
  { dead, withItems }: { readonly dead: readonly AssessedRun[]; readonly withItems: boolean },
): Promise<DeletionResult> {
  const deletion: DeletionResult = { deleted: [], left: [], failures: [] }
  await cleanRuns(context, dead)
  for (const { run, folders } of planned) {
    const gone = await deleteIfEnded(context, run, withItems)
    if (!gone) {
      deletion.left.push(run)
      continue
    }
    // First the run, then its files: a run that changed meanwhile keeps them.
    const removed = await removeFolders(run.id, folders, deletion.failures)
    deletion.deleted.push({ ...gone, folders: removed })
  }
  return deletion
}

async function deleteIfEnded(
  context: OperatorContext,
  run: Run,
  withItems: boolean,
): Promise<Omit<DeletedRun, 'folders'> | null> {
  try {
    const { id, source, traits } = run
    const counts = await deleteRun(context, run, withItems)
    return { run: id, source, origin: traits.origin, ...counts }
  } catch (error) {
    if (error instanceof UsageError || error instanceof NotFoundError) return null
    throw error
  }
}

/** Folders are read from at most this many executions of a run. */
const EXECUTIONS_MAX = 20

/** The folders of a run on this machine: the default one, and those that its command was started from. */
async function listFolders(store: Store, base: string, run: RunId): Promise<string[]> {
  const executions = await (await store.extend(COMMAND_STORE)).executions([run], EXECUTIONS_MAX)
  const recorded = executions
    .filter(({ host, log }) => host === hostname() && isLogPathOf(log, run))
    .map(({ log }) => dataFolderOf(dirname(log)))
  const bases = [...new Set([base, ...recorded])]
  return bases
    .filter((place) => runFolderExists(place, run))
    .map((place) => runFolder(place, run).folder)
}

function dataFolderOf(folder: string): string {
  return dirname(dirname(folder))
}

/** Returns the folders that were removed. */
async function removeFolders(
  run: RunId,
  folders: readonly string[],
  failures: string[],
): Promise<string[]> {
  const gone: string[] = []
  for (const folder of folders) {
    try {
      if (await removeRunFolder(dataFolderOf(folder), run)) gone.push(folder)
    } catch (error) {
      failures.push(
        `The files of ${shortId(run)} in ${folder} were not removed: ${messageOf(error)}`,
      )
    }
  }
  return gone
}

/** The number of items that each run saved last. */
async function countItems(store: Store, runs: readonly Run[]): Promise<Map<RunId, number>> {
  const counts = new Map<RunId, number>()
  const itemStore = await store.extend(ITEM_STORE)
  for (const source of new Set(runs.map((run) => run.source))) {
    for (const { run, items } of await itemStore.itemsByRun(source)) counts.set(run, items)
  }
  return counts
}
