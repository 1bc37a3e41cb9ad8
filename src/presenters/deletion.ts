import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { refuseDelete, throwIf } from '../core/decide/allowed-actions.ts'
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
import { deleteRun } from '../core/recovery/operator-actions.ts'
import type { Store } from '../core/store/store.ts'
import { COMMAND_STORE } from '../features/commands/store/store.ts'

/** A run that is to be deleted, and what goes with it. */
export type PlannedDeletion = {
  readonly run: Run
  readonly targets: number
  /** 0 where items stay. */
  readonly items: number
  /** Those of its folders that are on this machine. */
  readonly folders: readonly string[]
}

export type DeletedRun = {
  run: RunId
  source: string
  targets: number
  items: number
  folders: string[]
}

export type DeletionResult = {
  readonly deleted: DeletedRun[]
  /** What changed meanwhile and was left alone. */
  readonly left: Run[]
  /** Folders that are still there, in sentences. */
  readonly failures: string[]
}

/** What would go. `base`: where files of runs are, unless a run says something else. */
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

/** Deletes them for good. `dead`: those of them that are still live are marked as abandoned first. */
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
    // First the run, then its files: one that changed meanwhile keeps them.
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
    return { run: run.id, source: run.source, ...(await deleteRun(context, run, withItems)) }
  } catch (error) {
    if (error instanceof UsageError || error instanceof NotFoundError) return null
    throw error
  }
}

/** How many lives of a run's command are asked for their places. */
const EXECUTIONS_MAX = 20

/** Where on this machine a run has files: here, or wherever its command was started from. */
async function listFolders(store: Store, base: string, run: RunId): Promise<string[]> {
  const executions = await (await store.extend(COMMAND_STORE)).executions(run, EXECUTIONS_MAX)
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

/** Answers which are gone now. */
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

/** How many items each run was the last to save. */
async function countItems(store: Store, runs: readonly Run[]): Promise<Map<RunId, number>> {
  const counts = new Map<RunId, number>()
  for (const source of new Set(runs.map((run) => run.source))) {
    for (const { run, items } of await store.itemsByRun(source)) counts.set(run, items)
  }
  return counts
}
