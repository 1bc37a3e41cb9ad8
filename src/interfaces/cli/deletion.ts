import { EXIT } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import type { JudgedRun } from '../../core/recovery/assess.ts'
import type { Door } from '../../core/recovery/recover.ts'
import {
  deleteDoomed,
  planDeletion,
  type Deletion,
  type Doomed,
} from '../../presenters/deletion.ts'
import type { Answer } from './command.ts'
import { isTyped } from './confirm.ts'
import type { Output } from './output.ts'
import { printFirst, ROWS_MAX } from '../../lib/terminal/long-lists.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { plural, runStatus } from '../../presenters/format.ts'

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

const NOTHING: Deletion = { deleted: [], left: [], failures: [] }

/** Names what goes, wants the words typed, and deletes. What changed meanwhile is left alone. */
export async function deleteRuns(
  door: Door,
  { dead, ended }: { dead: readonly JudgedRun[]; ended: readonly Run[] },
  { dryRun, withItems, confirm, base, output, json }: Asked,
): Promise<Answer> {
  const runs = [...dead.map(({ run }) => run), ...ended]
  const doomed = await planDeletion(door.store, runs, { base, withItems })
  const asks = doomed.length > 0 && !dryRun
  if (asks && !json) await show(output, (paper) => printPlan(paper, doomed, withItems))
  const words = `delete ${plural(doomed.length, 'run')}`
  const isMeant = asks && (await isTyped(output, words, confirm))
  const { deleted, left, failures } = isMeant
    ? await deleteDoomed(door, doomed, { dead, withItems })
    : NOTHING
  for (const failure of failures) output.note(failure)
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
      const printDeleted = ({ run, source, targets, items, folders }: Gone): void => {
        const parts = [plural(targets, 'target'), plural(items, 'item'), ...folders.map(asFiles)]
        paper.say(`- Deleted ${shortId(run)} of ${source}: ${parts.join(', ')}.`)
      }
      printFirst(paper, deleted, printDeleted, '`unstuck history` lists them', ROWS_MAX)
      const printKept = ({ id, source }: Deletion['left'][number]): void =>
        paper.say(`- ${shortId(id)} of ${source} was left alone: it changed meanwhile.`)
      printFirst(paper, left, printKept, '`unstuck runs` lists them', ROWS_MAX)
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
  const print = ({ run, targets, items, folders }: Doomed): void => {
    const parts = [plural(targets, 'target'), plural(run.counts.pages, 'page')]
    if (withItems) parts.push(plural(items, 'item'))
    parts.push(...folders.map(asFiles))
    paper.say(
      `- ${shortId(run.id)} of ${run.source}, ${runStatus(run.status).text}: ${parts.join(', ')}`,
    )
  }
  printFirst(paper, doomed, print, '`--dry-run --json` names them', ROWS_MAX)
}

type Gone = Deletion['deleted'][number]

function asFiles(folder: string): string {
  return `its files in ${folder}`
}

async function show(output: Output, print: (paper: Paper) => void): Promise<void> {
  const paper = output.paper()
  print(paper)
  await output.write(paper.toString())
}
