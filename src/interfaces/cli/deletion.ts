import { EXIT } from '../../core/model/exit-codes.ts'
import { shortId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import type { AssessedRun } from '../../core/recovery/assess.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import {
  applyDeletion,
  planDeletion,
  type DeletionResult,
  type PlannedDeletion,
} from '../../presenters/deletion.ts'
import { confirmByTyping } from './confirm.ts'
import { printFirst, type TextWriter } from '../../lib/terminal/text-writer.ts'
import { ROWS_MAX } from '../../lib/text/sentence.ts'
import { plural, formatRunStatus } from '../../presenters/format.ts'
import type { CommandResult, Output } from '../../contracts/command.ts'

type DeletionRequest = {
  readonly dryRun: boolean
  readonly withItems: boolean
  /** The phrase that must be typed, if a flag gave it. */
  readonly confirm: string | undefined
  /** The folder with the files of runs, unless a run recorded another one. */
  readonly base: string
  readonly output: Output
  readonly json: boolean
}

const NOTHING_DELETED: DeletionResult = { deleted: [], left: [], failures: [] }

/** Lists what would be deleted, asks for the phrase, and deletes. Runs that changed meanwhile are kept. */
export async function deleteRuns(
  context: OperatorContext,
  { dead, ended }: { dead: readonly AssessedRun[]; ended: readonly Run[] },
  { dryRun, withItems, confirm, base, output, json }: DeletionRequest,
): Promise<CommandResult> {
  const runs = [...dead.map(({ run }) => run), ...ended]
  const planned = await planDeletion(context.store, runs, { base, withItems })
  const asks = planned.length > 0 && !dryRun
  if (asks && !json) await show(output, (writer) => printDeletionPlan(writer, planned, withItems))
  const words = `delete ${plural(planned.length, 'run')}`
  const isMeant = asks && (await confirmByTyping(output, words, confirm))
  const { deleted, left, failures } = isMeant
    ? await applyDeletion(context, planned, { dead, withItems })
    : NOTHING_DELETED
  for (const failure of failures) output.note(failure)
  const isAllGone = left.length === 0 && failures.length === 0
  return {
    data: {
      runs: planned.map(({ run: { id: run, source, status }, targets, items, folders }) => ({
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
    print: (writer) => {
      if (!asks) printDeletionPlan(writer, planned, withItems)
      if (asks && !isMeant) writer.paragraph('Those were not the words.')
      const printDeleted = ({ run, source, targets, items, folders }: DeletedRun): void => {
        const parts = [plural(targets, 'target'), plural(items, 'item'), ...folders.map(asFiles)]
        writer.paragraph(`- Deleted ${shortId(run)} of ${source}: ${parts.join(', ')}.`)
      }
      printFirst(writer, deleted, printDeleted, '`unstuck history` lists them', ROWS_MAX)
      const printKept = ({ id, source }: DeletionResult['left'][number]): void =>
        writer.paragraph(`- ${shortId(id)} of ${source} was left alone: it changed meanwhile.`)
      printFirst(writer, left, printKept, '`unstuck runs` lists them', ROWS_MAX)
      if (planned.length > 0 && deleted.length === 0) writer.paragraph('Nothing was deleted.')
    },
    exitCode: asks && !isMeant ? EXIT.failed : isAllGone ? EXIT.done : EXIT.needsAttention,
  }
}

function printDeletionPlan(
  writer: TextWriter,
  planned: readonly PlannedDeletion[],
  withItems: boolean,
): void {
  if (planned.length === 0)
    return writer.paragraph('Nothing to delete: no run is dead, and none was cleaned.')
  const stays = withItems ? '' : ' Their items stay.'
  writer.paragraph(`To be deleted for good: ${plural(planned.length, 'run')}.${stays}`)
  const print = ({ run, targets, items, folders }: PlannedDeletion): void => {
    const parts = [plural(targets, 'target'), plural(run.counts.pages, 'page')]
    if (withItems) parts.push(plural(items, 'item'))
    parts.push(...folders.map(asFiles))
    writer.paragraph(
      `- ${shortId(run.id)} of ${run.source}, ${formatRunStatus(run.status).text}: ${parts.join(', ')}`,
    )
  }
  printFirst(writer, planned, print, '`--dry-run --json` names them', ROWS_MAX)
}

type DeletedRun = DeletionResult['deleted'][number]

function asFiles(folder: string): string {
  return `its files in ${folder}`
}

async function show(output: Output, print: (writer: TextWriter) => void): Promise<void> {
  const writer = output.makeWriter()
  print(writer)
  await output.write(writer.toString())
}
