import { shortId } from '../../core/model/id.ts'
import { isLive, isRow, sayRow } from '../../core/model/run.ts'
import { inWords } from '../../core/model/time.ts'
import type { Explanation } from '../../presenters/explanation.ts'
import type { PolicySetting } from '../../app/policy-origin.ts'
import { runView } from '../../presenters/view.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { ago, doneOfTotal, plural, runStatus, targetStatus } from '../../presenters/format.ts'
import { printSettings } from './policy-text.ts'
import { printDeed } from './history-text.ts'

/** The settings that the verdict hangs on, and the name of the preset that some of them come from. */
export type Grounds = { readonly policy: readonly PolicySetting[]; readonly preset: string | null }

/** For a tired person: what it is, what is known, what that means, and what would change it. */
export function printExplanation(
  paper: Paper,
  explained: Explanation,
  { policy, preset }: Grounds,
): void {
  const { run, target, decision, outlook, trail, now } = explained
  if (target) printTarget(paper, explained)
  else printRun(paper, explained)

  paper.heading('What is known')
  printEvidence(paper, explained)

  paper.heading('Verdict')
  paper.say({ text: decision.action, ink: 'strong' }, `: ${decision.because}.`)

  if (outlook.changes.length > 0) paper.heading('What would change it')
  for (const change of outlook.changes) paper.say(`- ${change}`)

  if (policy.length > 0) {
    paper.heading('By this policy')
    printSettings(paper, policy, preset)
  }
  if (trail.length > 0) paper.heading('What was done so far, newest first')
  for (const entry of trail) {
    const isOther = !target && entry.target !== null && !isRow(run)
    printDeed(paper, entry, now, isOther ? `target ${shortId(entry.target)}` : '')
  }
}

function printRun(paper: Paper, { run, now }: Explanation): void {
  const { extracted, skipped } = runView(run)
  const { text, ink } = runStatus(run.status)
  paper.say(
    `Run ${shortId(run.id)} of `,
    { text: run.source, ink: 'strong' },
    ': ',
    { text, ink },
    '.',
  )
  if (run.adopted) paper.say(`It is ${sayRow(run.adopted)}.`)
  const pages = isRow(run) ? '' : ` ${plural(run.counts.pages, 'page')} saved,`
  paper.say(
    `It is ${inWords(now - run.createdAt)} old: ${doneOfTotal(run)} done,${pages} ` +
      `${plural(extracted, 'item')} extracted, ${skipped} skipped.`,
  )
  if (isRow(run) && run.artifacts > 0)
    paper.say('There is a checkpoint or a file of its output: something to go on from.')
  if (run.error !== null) paper.say({ text: `Error: ${run.error}`, ink: 'bad' })
  if (run.retryOf !== null)
    paper.say(`It follows run ${shortId(run.retryOf)} and began from nothing.`)
}

function printTarget(paper: Paper, { run, target }: Explanation): void {
  const { id, key, group, status, page, pageTarget, attempts, crashes, lastError } = target!
  const of = pageTarget === null ? '' : ` of ${pageTarget}`
  const { text, ink } = runStatus(run.status)
  paper.say(
    `Target ${shortId(id)}, `,
    { text: key, ink: 'strong' },
    group === null ? ': ' : `, of group ${group}: `,
    targetStatus(status),
    '.',
  )
  paper.say(`It is part of run ${shortId(run.id)} of ${run.source}: `, { text, ink }, '.')
  paper.say(
    `${page === 0 ? 'No page is saved' : `Page ${page}${of} is its last saved one`}; ` +
      `${plural(attempts, 'attempt')}, ${plural(crashes, 'worker')} lost on it since.`,
  )
  if (lastError !== null) paper.say({ text: `Last error: ${lastError}`, ink: 'bad' })
}

function printEvidence(paper: Paper, { run, target, owner, now }: Explanation): void {
  if (owner) {
    const { evidence, reading, worker } = owner
    paper.say(`${capital(reading.because)}. That is called ${reading.sign}.`)
    if (evidence.who === undefined)
      paper.say(
        `Its lock is ${lockWords(evidence.presence)}; its beats are due every ${inWords(evidence.heartbeatMs)}, ` +
          `and it counts as silent after ${inWords(evidence.leaseMs)}. It started ${ago(worker.startedAt, now)}.`,
      )
  } else if (isLive(run.status))
    paper.say(run.adopted ? 'Nobody is known to work on it.' : 'Nobody works on it.')
  else paper.say(`${target ? 'Its run' : 'It'} ended ${endOf(run, now)}.`)
  const last = (target ?? run).lastActivityAt
  paper.say(`Something of it last changed ${ago(last, now)}.`)
}

function endOf({ finishedAt }: Explanation['run'], now: number): string {
  const when = ago(finishedAt, now)
  return when === 'now' ? 'just now' : when
}

function lockWords(presence: 'held' | 'free' | 'unknown'): string {
  return { held: 'held', free: 'free', unknown: 'not to be seen from here' }[presence]
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
