import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { EXIT, messageOf, NotFound, UsageError } from '../../model/errors.ts'
import { shortId, type RunId } from '../../model/id.ts'
import { totalTargets, type Run } from '../../model/run.ts'
import { cleanAll } from '../../runtime/cleaning.ts'
import {
  isLogOf,
  isRunFolderThere,
  removeRunFolder,
  runFolder,
} from '../../runtime/command/folder.ts'
import type { JudgedRun } from '../../runtime/judgement.ts'
import type { Door } from '../../runtime/recovery.ts'
import { deleteRun } from '../../runtime/steering.ts'
import type { Store } from '../../store/store.ts'
import type { Answer } from './command.ts'
import { isTyped } from './confirm.ts'
import type { Output } from './output.ts'
import type { Paper } from './paper/paper.ts'
import { plural, runStatus } from './paper/words.ts'

type Asked = {
  readonly dryRun: boolean
  readonly withItems: boolean
  /** The words, given beforehand. */
  readonly confirm: string | undefined
  /** Where files of runs are, unless a run says something else. */
  readonly base: string
  readonly output: Output
  readonly json: boolean
}
type Doomed = {
  readonly run: Run
  readonly targets: number
  readonly items: number
  /** Those of its folders that are on this machine. */
  readonly folders: readonly string[]
}
type Deleted = { run: RunId; source: string; targets: number; items: number; folders: string[] }

/** Names what goes, wants the words typed, and deletes. What changed meanwhile is left alone. */
export async function deleteRuns(
  door: Door,
  { dead, ended }: { dead: readonly JudgedRun[]; ended: readonly Run[] },
  { dryRun, withItems, confirm, base, output, json }: Asked,
): Promise<Answer> {
  const runs = [...dead.map(({ run }) => run), ...ended]
  const items = withItems ? await countItems(door.store, runs) : new Map<RunId, number>()
  const doomed: Doomed[] = []
  for (const run of runs) {
    doomed.push({
      run,
      targets: totalTargets(run.counts),
      items: items.get(run.id) ?? 0,
      folders: await foldersOf(door.store, base, run.id),
    })
  }
  const deleted: Deleted[] = []
  const failures: string[] = []
  const left: Run[] = []
  const asks = doomed.length > 0 && !dryRun
  if (asks && !json) await show(output, (paper) => printPlan(paper, doomed, withItems))
  const words = `delete ${plural(doomed.length, 'run')}`
  const isMeant = asks && (await isTyped(output, words, confirm))
  if (isMeant) {
    await cleanAll(door, dead)
    for (const { run, folders } of doomed) {
      const gone = await deleteIfEnded(door, run, withItems)
      // First the run, then its files: one that changed meanwhile keeps them.
      if (gone) deleted.push({ ...gone, folders: await removeAll(run.id, folders, failures) })
      else left.push(run)
    }
    for (const failure of failures) output.note(failure)
  }
  const isAllGone = left.length === 0 && failures.length === 0
  return {
    data: {
      runs: doomed.map(({ run: { id: run, source, status }, targets, items, folders }) => ({
        run,
        source,
        status,
        targets,
        items,
        folders,
      })),
      deleted,
      dryRun,
    },
    text: (paper) => {
      if (!asks) printPlan(paper, doomed, withItems)
      if (asks && !isMeant) paper.say('Those were not the words.')
      for (const { run, source, targets, items, folders } of deleted) {
        const parts = [plural(targets, 'target'), plural(items, 'item'), ...folders.map(asFiles)]
        paper.say(`- Deleted ${shortId(run)} of ${source}: ${parts.join(', ')}.`)
      }
      for (const { id, source } of left)
        paper.say(`- ${shortId(id)} of ${source} was left alone: it changed meanwhile.`)
      if (doomed.length > 0 && deleted.length === 0) paper.say('Nothing was deleted.')
    },
    exitCode: asks && !isMeant ? EXIT.failed : isAllGone ? EXIT.done : EXIT.leftForAPerson,
  }
}

function printPlan(paper: Paper, doomed: readonly Doomed[], withItems: boolean): void {
  if (doomed.length === 0)
    return paper.say('Nothing to delete: no run is dead, and none was cleaned.')
  const stays = withItems ? '' : ' Their items stay.'
  paper.say(`To be deleted for good: ${plural(doomed.length, 'run')}.${stays}`)
  for (const { run, targets, items, folders } of doomed) {
    const parts = [plural(targets, 'target'), plural(run.counts.pages, 'page')]
    if (withItems) parts.push(plural(items, 'item'))
    parts.push(...folders.map(asFiles))
    paper.say(
      `- ${shortId(run.id)} of ${run.source}, ${runStatus(run.status).text}: ${parts.join(', ')}`,
    )
  }
}

function asFiles(folder: string): string {
  return `its files in ${folder}`
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

const BATCH = 1_000

/** How many items each of these runs was the last to save. */
async function countItems(store: Store, runs: readonly Run[]): Promise<Map<RunId, number>> {
  const counts = new Map(runs.map(({ id }) => [id, 0]))
  for (const source of new Set(runs.map((run) => run.source))) {
    for (let after: string | null = null; ;) {
      const items: Awaited<ReturnType<Store['items']>> = await store.items(source, after, BATCH)
      for (const { run } of items) if (counts.has(run)) counts.set(run, counts.get(run)! + 1)
      if (items.length < BATCH) break
      after = items.at(-1)!.key
    }
  }
  return counts
}

async function show(output: Output, print: (paper: Paper) => void): Promise<void> {
  const paper = output.paper()
  print(paper)
  await output.write(paper.toString())
}
