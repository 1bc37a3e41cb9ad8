import { EXIT, NotFound, UsageError } from '../../model/errors.ts'
import { shortId, type RunId } from '../../model/id.ts'
import { totalTargets, type Run } from '../../model/run.ts'
import { cleanAll } from '../../runtime/cleaning.ts'
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
  readonly output: Output
  readonly json: boolean
}
type Doomed = { readonly run: Run; readonly targets: number; readonly items: number }
type Deleted = { run: RunId; source: string; targets: number; items: number }

/** Names what goes, wants the words typed, and deletes. What changed meanwhile is left alone. */
export async function deleteRuns(
  door: Door,
  { dead, ended }: { dead: readonly JudgedRun[]; ended: readonly Run[] },
  { dryRun, withItems, confirm, output, json }: Asked,
): Promise<Answer> {
  const runs = [...dead.map(({ run }) => run), ...ended]
  const items = withItems ? await countItems(door.store, runs) : new Map<RunId, number>()
  const doomed = runs.map((run): Doomed => ({
    run,
    targets: totalTargets(run.counts),
    items: items.get(run.id) ?? 0,
  }))
  const deleted: Deleted[] = []
  const left: Run[] = []
  const asks = doomed.length > 0 && !dryRun
  if (asks && !json) await show(output, (paper) => printPlan(paper, doomed, withItems))
  const words = `delete ${plural(doomed.length, 'run')}`
  const isMeant = asks && (await isTyped(output, words, confirm))
  if (isMeant) {
    await cleanAll(door, dead)
    for (const run of runs) {
      const gone = await deleteIfEnded(door, run, withItems)
      if (gone) deleted.push(gone)
      else left.push(run)
    }
  }
  return {
    data: {
      runs: doomed.map(({ run: { id: run, source, status }, targets, items }) => ({
        run,
        source,
        status,
        targets,
        items,
      })),
      deleted,
      dryRun,
    },
    text: (paper) => {
      if (!asks) printPlan(paper, doomed, withItems)
      if (asks && !isMeant) paper.say('Those were not the words.')
      for (const { run, source, targets, items } of deleted) {
        paper.say(
          `- Deleted ${shortId(run)} of ${source}: ${plural(targets, 'target')}, ${plural(items, 'item')}.`,
        )
      }
      for (const { id, source } of left)
        paper.say(`- ${shortId(id)} of ${source} was left alone: it changed meanwhile.`)
      if (doomed.length > 0 && deleted.length === 0) paper.say('Nothing was deleted.')
    },
    exitCode: asks && !isMeant ? EXIT.failed : left.length > 0 ? EXIT.leftForAPerson : EXIT.done,
  }
}

function printPlan(paper: Paper, doomed: readonly Doomed[], withItems: boolean): void {
  if (doomed.length === 0)
    return paper.say('Nothing to delete: no run is dead, and none was cleaned.')
  const stays = withItems ? '' : ' Their items stay.'
  paper.say(`To be deleted for good: ${plural(doomed.length, 'run')}.${stays}`)
  for (const { run, targets, items } of doomed) {
    const parts = [plural(targets, 'target'), plural(run.counts.pages, 'page')]
    if (withItems) parts.push(plural(items, 'item'))
    paper.say(
      `- ${shortId(run.id)} of ${run.source}, ${runStatus(run.status).text}: ${parts.join(', ')}`,
    )
  }
}

async function deleteIfEnded(door: Door, run: Run, withItems: boolean): Promise<Deleted | null> {
  try {
    return { run: run.id, source: run.source, ...(await deleteRun(door, run.id, withItems)) }
  } catch (error) {
    if (error instanceof UsageError || error instanceof NotFound) return null
    throw error
  }
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
