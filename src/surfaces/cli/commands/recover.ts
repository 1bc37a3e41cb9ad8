import { EXIT } from '../../../model/errors.ts'
import { shortId } from '../../../model/id.ts'
import { RUN_AFTER, TARGET_AFTER, type Verdict } from '../../../model/verdict.ts'
import type { JudgedRun } from '../../../runtime/judgement.ts'
import { recover as recoverNow, type Recovery } from '../../../runtime/recovery.ts'
import { judgedView, verdictView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { isAgreed } from '../confirm.ts'
import { doorOf } from '../door.ts'
import { option } from '../option.ts'
import type { Paper } from '../paper/paper.ts'
import { age, ago, doneOfTotal, plural, runStatus } from '../paper/words.ts'

export const recover = defineCommand({
  name: 'recover',
  summary: 'Recover orphans now: what the dead and the silent held. Never touches the living.',
  examples: [
    'unstuck recover --dry-run',
    'unstuck recover --yes --timeout 60m  # only those without a sign of life for an hour',
    'unstuck recover --source directory --group CA TX',
  ],
  options: {
    dryRun: option.flag('only say what would be done'),
    timeout: option.duration('AGE', 'only what has shown no sign of life for longer', undefined),
    source: option.texts('SOURCE', 'only runs of these sources'),
    group: option.texts('GROUP', 'only targets of these groups'),
    yes: option.flag('do not ask', '-y'),
  },

  async run({ options, database, settings, output, json }) {
    const store = await database.openIfAny()
    if (!store) {
      const data = { active: [], verdicts: [], applied: 0, dryRun: options.dryRun }
      return { data, text: (paper) => paper.say('Nothing has run yet: nothing to recover.') }
    }
    const door = await doorOf(store, settings)
    const which = {
      sources: options.source,
      groups: options.group,
      ...(options.timeout !== undefined && { olderThanMs: options.timeout }),
    }
    const now = await store.now()
    let recovery: Recovery
    let isShown = false
    if (options.dryRun || (output.isTerminal && !options.yes && !json)) {
      recovery = await recoverNow(door, { ...which, dryRun: true })
      const deeds = recovery.verdicts.filter(isDeed)
      if (!options.dryRun && deeds.length > 0) {
        const paper = output.paper()
        print(paper, recovery, now, true)
        await output.write(paper.toString())
        isShown = true
        const agreed = { yes: false, elsewise: 'add --yes, or --dry-run to only look' }
        if (await isAgreed(output, `Do ${plural(deeds.length, 'thing')}?`, agreed)) {
          const { verdicts } = await recoverNow(door, which)
          recovery = { active: recovery.active, verdicts }
        }
      }
    } else recovery = await recoverNow(door, which)
    const { active, verdicts } = recovery
    return {
      data: {
        active: active.map(judgedView),
        verdicts: verdicts.map(verdictView),
        applied: verdicts.filter(({ applied }) => applied).length,
        dryRun: options.dryRun,
      },
      text: (paper) =>
        isShown ? printDone(paper, verdicts) : print(paper, recovery, now, options.dryRun),
      exitCode: verdicts.some(isLeft) ? EXIT.leftForAPerson : EXIT.done,
    }
  },
})

/** It changes something, unlike an alert. */
function isDeed({ action, target }: Verdict): boolean {
  return (target === null ? RUN_AFTER : TARGET_AFTER)[action] !== undefined && action !== 'abandon'
}

/** A person has to look at it. */
function isLeft({ action }: Verdict): boolean {
  return ['alert', 'park', 'hold', 'fail', 'abandon'].includes(action)
}

function print(paper: Paper, { active, verdicts }: Recovery, now: number, dryRun: boolean): void {
  printActive(paper, active, now)
  const theirs = verdicts.filter((verdict) => !isDeed(verdict) && !verdict.applied)
  const deeds = verdicts.filter((verdict) => !theirs.includes(verdict))
  paper.heading(dryRun ? 'What would be done' : 'What was done')
  if (deeds.length === 0) paper.say('Nothing: nobody is dead, nothing is orphaned.')
  printVerdicts(paper, deeds)
  if (theirs.length > 0) paper.heading('Left to you')
  printVerdicts(paper, theirs)
  if (dryRun) {
    paper.blank()
    paper.say('Nothing was changed.')
  } else printUndo(paper, verdicts)
}

function printActive(paper: Paper, active: readonly JudgedRun[], now: number): void {
  if (active.length === 0) return paper.say('No run is active.')
  paper.say(`${plural(active.length, 'active run')}:`)
  paper.table(
    [
      { head: 'RUN' },
      { head: 'SOURCE', flex: true },
      { head: 'STATUS' },
      { head: 'DONE', align: 'right' },
      { head: 'AGE', align: 'right', optional: 2 },
      { head: 'OWNER', flex: true, optional: 3 },
      { head: 'LAST SIGN OF LIFE', align: 'right', optional: 1 },
    ],
    active.map(({ run, owner, evidence }) => [
      shortId(run.id),
      run.source,
      runStatus(run.status),
      doneOfTotal(run),
      age(evidence.ageMs),
      owner ? `${owner.worker.process.pid} on ${owner.worker.process.host}` : 'nobody',
      ago(owner ? now - owner.evidence.beatAgeMs : run.lastActivityAt, now),
    ]),
  )
}

function printVerdicts(paper: Paper, verdicts: readonly Verdict[]): void {
  for (const { action, run, target, source, because, from, to } of verdicts) {
    const what = target ? `target ${shortId(target)}` : `run ${shortId(run)}`
    const move = from === to ? '' : ` (${from} → ${to})`
    paper.say('- ', { text: action, ink: 'strong' }, ` ${what} of ${source}${move}: ${because}.`)
  }
}

function printDone(paper: Paper, verdicts: readonly Verdict[]): void {
  const done = verdicts.filter(({ applied }) => applied)
  paper.say(
    done.length > 0 ? `Done: ${plural(done.length, 'verdict')} applied.` : 'Nothing was changed.',
  )
  printUndo(paper, verdicts)
}

function printUndo(paper: Paper, verdicts: readonly Verdict[]): void {
  if (verdicts.some(({ action, applied }) => action === 'abandon' && !applied)) {
    paper.say('Dead runs are left to you: see `unstuck clean --dry-run`.')
  }
  const undoable = verdicts.find(({ action, applied }) => applied && isLeftAside(action))
  if (undoable) paper.say(`Undo: \`unstuck revert ${shortId(undoable.run)}\``)
  const stale = verdicts.filter(
    ({ applied, ...verdict }) => !applied && isDeed({ ...verdict, applied }),
  )
  if (stale.length > 0)
    paper.say(`${plural(stale.length, 'verdict')} not applied: somebody was faster.`)
}

function isLeftAside(action: string): boolean {
  return ['park', 'hold', 'fail', 'retry', 'abandon'].includes(action)
}
