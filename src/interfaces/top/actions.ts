import { STEADY } from '../../core/decide/liveness.ts'
import { NotFound, Refused } from '../../core/model/errors.ts'
import { shortId, type RunId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { cleanAll, sumUp } from '../../core/recovery/clean.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import { recover, type Door } from '../../core/recovery/recover.ts'
import { chooseLetters, previewRetry, retryLetters } from '../../presenters/dead-letter-retry.ts'
import { NOTHING_CHANGED } from '../../presenters/action-result.ts'
import { sortOut } from '../../presenters/recovery.ts'
import { cancel, revert } from '../../presenters/run-actions.ts'
import { revertibleRuns } from '../../presenters/undo.ts'
import { plural } from '../../presenters/format.ts'
import { printPlan } from '../cli/recovery-text.ts'
import { printSummary } from '../cli/summary-text.ts'
import type { Deed, Plan } from './state.ts'

/** What became of a deed: a sentence, and the runs that it can be taken back from. */
export type Done = { readonly said: string; readonly undo: readonly RunId[] }

/** Looks what a deed would do, and changes nothing. */
export async function planDeed(door: Door, deed: Deed, signal: AbortSignal): Promise<Plan> {
  switch (deed.kind) {
    case 'recover': {
      const plan = sortOut(await recover(door, { dryRun: true, clock: leaving(signal) }))
      const now = await door.store.now()
      const { deeds } = plan
      return {
        deed,
        text: (paper) => printPlan(paper, plan, now),
        question: deeds.length === 0 ? null : doThese(deeds.length),
        only: new Set(deeds.map(({ run, target }) => target ?? run)),
      }
    }
    case 'clean': {
      const summed = await sumUp(door)
      const now = await door.store.now()
      const { dead } = summed
      const areRows = dead.every(({ run }) => run.adopted)
      const mark = areRows ? 'with the words of their own tables' : 'as “Timeout – auto-cleaned”'
      const question = `Mark ${plural(dead.length, 'dead run')} ${mark}?`
      return {
        deed,
        text: (paper) => printSummary(paper, summed, now),
        question: dead.length === 0 ? null : question,
        only: new Set(dead.map(({ run }) => run.id)),
      }
    }
    case 'cancel': {
      const { said } = await cancel(door, await theRun(door, deed.run), { dryRun: true })
      return asPlan(deed, said, 'Cancel it?', [deed.run])
    }
    case 'revert': {
      const said: string[] = []
      for (const run of deed.runs)
        said.push(...(await revert(door, await theRun(door, run), { dryRun: true })).said)
      const question = deed.runs.length === 1 ? 'Take it back?' : 'Take them back?'
      return asPlan(deed, said, question, deed.runs)
    }
    case 'retry': {
      const chosen = await chooseLetters(door.store, { fingerprint: deed.fingerprint }, signal)
      const { targets, runs, left, plan } = await previewRetry(door, chosen)
      const said = runs.map(({ run, targets: some, refused }) =>
        refused === null
          ? `- ${plural(some, 'target')} of run ${shortId(run)} would be put back in line.`
          : `- Run ${shortId(run)} is left alone: ${refused}`,
      )
      if (left > 0) said.push(`- ${plural(left, 'more target')} would be left for another time.`)
      const question = targets > 0 ? `Put ${plural(targets, 'target')} back in line?` : null
      return asPlan({ ...deed, plan }, said, question, [])
    }
  }
}

/** Who leaves does not wait until it has listened long enough. */
function leaving(signal: AbortSignal): Clock {
  return { ...REAL_CLOCK, sleep: (ms) => REAL_CLOCK.sleep(ms, signal) }
}

function asPlan(
  deed: Deed,
  said: readonly string[],
  question: string | null,
  runs: readonly RunId[],
): Plan {
  const text: Plan['text'] = (paper) => {
    for (const sentence of said) if (sentence !== NOTHING_CHANGED) paper.say(sentence)
  }
  return { deed, text, question, only: new Set(runs) }
}

function doThese(count: number): string {
  return count === 1 ? 'Do this?' : `Do these ${count} things?`
}

/** Does what the plan showed, as far as it is still so, and nothing else. */
export async function carryOut(
  door: Door,
  { deed, only }: Plan,
  signal: AbortSignal,
): Promise<Done> {
  switch (deed.kind) {
    case 'recover': {
      // The plan has just listened: there is no need to do so again.
      const { verdicts } = await recover(door, { judge: STEADY, only })
      const applied = verdicts.filter((verdict) => verdict.applied).length
      return { said: sayDone('Recovery', applied, only.size), undo: revertibleRuns(verdicts) }
    }
    case 'clean': {
      const { dead } = await sumUp(door)
      const cleaned = await cleanAll(
        door,
        dead.filter(({ run }) => only.has(run.id)),
      )
      const runs = cleaned.filter(({ applied }) => applied).map(({ run }) => run)
      return { said: sayDone('Cleaning', runs.length, only.size), undo: runs }
    }
    case 'cancel': {
      const { said } = await cancel(door, await theRun(door, deed.run), { dryRun: false })
      return { said: said.join(' '), undo: [deed.run] }
    }
    case 'revert': {
      const said: string[] = []
      for (const run of deed.runs)
        said.push((await revert(door, await theRun(door, run), { dryRun: false })).said[0]!)
      return { said: said.join(' '), undo: [] }
    }
    case 'retry': {
      const chosen = await chooseLetters(door.store, { fingerprint: deed.fingerprint }, signal)
      if (chosen.plan !== deed.plan) {
        throw new Refused('Nothing was changed: they are not the same ones now. Look again with r.')
      }
      const { targets, left } = await retryLetters(door, chosen, signal)
      const rest = left > 0 ? ` ${left} are left: r again.` : ''
      return { said: `${plural(targets, 'target')} back in line.${rest}`, undo: [] }
    }
  }
}

function sayDone(what: string, applied: number, planned: number): string {
  const late = applied < planned ? `; ${planned - applied} had changed meanwhile` : ''
  return `${what}: ${applied} of ${plural(planned, 'thing')} done${late}.`
}

async function theRun({ store }: Door, id: RunId): Promise<Run> {
  const run = await store.run(id)
  if (!run) throw new NotFound(`run ${shortId(id)}`, 'It was deleted meanwhile.')
  return run
}
