import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { messageOf, NotFound, UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { totalTargets, type Run } from '../core/model/run.ts'
import { cleanAll } from '../core/recovery/clean.ts'
import { isLogOf, isRunFolderThere, removeRunFolder, runFolder } from '../lib/files/data-folder.ts'
import type { JudgedRun } from '../core/recovery/assess.ts'
import type { Door } from '../core/recovery/recover.ts'
import { deleteRun, refuseAdopted } from '../core/recovery/operator-actions.ts'
import type { Store } from '../core/store/store.ts'

/** A run that is to be deleted, and what goes with it. */
export type Doomed = {
  readonly run: Run
  readonly targets: number
  /** 0 where items stay. */
  readonly items: number
  /** Those of its folders that are on this machine. */
  readonly folders: readonly string[]
}

export type Deleted = {
  run: RunId
  source: string
  targets: number
  items: number
  folders: string[]
}

export type Deletion = {
  readonly deleted: Deleted[]
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
): Promise<Doomed[]> {
  for (const run of runs) refuseAdopted(run, 'deleted: no row is ever taken from there')
  const items = withItems ? await itemsOf(store, runs) : new Map<RunId, number>()
  const doomed: Doomed[] = []
  for (const run of runs) {
    doomed.push({
      run,
      targets: totalTargets(run.counts),
      items: items.get(run.id) ?? 0,
      folders: await foldersOf(store, base, run.id),
    })
  }
  return doomed
}

/** Deletes them for good. `dead`: those of them that are still live are marked as abandoned first. */
export async function deleteDoomed(
  door: Door,
  doomed: readonly Doomed[],
  { dead, withItems }: { readonly dead: readonly JudgedRun[]; readonly withItems: boolean },
): Promise<Deletion> {
  const deletion: Deletion = { deleted: [], left: [], failures: [] }
  await cleanAll(door, dead)
  for (const { run, folders } of doomed) {
    const gone = await deleteIfEnded(door, run, withItems)
    if (!gone) {
      deletion.left.push(run)
      continue
    }
    // First the run, then its files: one that changed meanwhile keeps them.
    const removed = await removeAll(run.id, folders, deletion.failures)
    deletion.deleted.push({ ...gone, folders: removed })
  }
  return deletion
}

async function deleteIfEnded(
  door: Door,
  run: Run,
  withItems: boolean,
): Promise<Omit<Deleted, 'folders'> | null> {
  try {
    return { run: run.id, source: run.source, ...(await deleteRun(door, run.id, withItems)) }
  } catch (error) {
    if (error instanceof UsageError || error instanceof NotFound) return null
    throw error
  }
}

/** How many lives of a run's command are asked for their places. */
const EXECUTIONS_MAX = 20

/** Where on this machine a run has files: here, or wherever its command was started from. */
async function foldersOf(store: Store, base: string, run: RunId): Promise<string[]> {
  const executions = await store.executions(run, EXECUTIONS_MAX)
  const noted = executions
    .filter(({ host, log }) => host === hostname() && isLogOf(log, run))
    .map(({ log }) => baseOf(dirname(log)))
  const bases = [...new Set([base, ...noted])]
  return bases
    .filter((place) => isRunFolderThere(place, run))
    .map((place) => runFolder(place, run).folder)
}

function baseOf(folder: string): string {
  return dirname(dirname(folder))
}

/** Answers which are gone now. */
async function removeAll(
  run: RunId,
  folders: readonly string[],
  failures: string[],
): Promise<string[]> {
  const gone: string[] = []
  for (const folder of folders) {
    try {
      if (await removeRunFolder(baseOf(folder), run)) gone.push(folder)
    } catch (error) {
      failures.push(
        `The files of ${shortId(run)} in ${folder} were not removed: ${messageOf(error)}`,
      )
    }
  }
  return gone
}

/** How many items each run was the last to save. */
async function itemsOf(store: Store, runs: readonly Run[]): Promise<Map<RunId, number>> {
  const counts = new Map<RunId, number>()
  for (const source of new Set(runs.map((run) => run.source))) {
    for (const { run, items } of await store.itemsByRun(source)) counts.set(run, items)
  }
  return counts
}
