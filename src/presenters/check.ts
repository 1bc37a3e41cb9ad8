import type { Severity } from '../core/decide/health.ts'
import type { StartAction } from '../core/decide/start.ts'
import { shortId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import { describeOrigin } from '../core/model/traits.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import type { Millis } from '../core/model/time.ts'
import { isLost, type Owner } from '../core/recovery/assess.ts'
import type { StartAdvice } from './advise-start.ts'
import type { Sentence } from '../lib/text/sentence.ts'
import { formatAgo, formatProcess } from './format.ts'
import type { Presented } from './presented.ts'
import { checkpointView, ownerView, runView } from './view.ts'

/** The advice where there is no database yet. */
export const NOTHING_RAN: StartAdvice = {
  action: 'start',
  because: 'nothing has run yet',
  run: null,
  target: null,
  owner: null,
}

/** `check`: whether a source may start, and why. */
export function presentCheck(source: string, advice: StartAdvice, now: Millis) {
  const { action, because, blockedBy = null, run, target, owner } = advice
  const meaning = describeAdvice(advice)
  const sentences: Sentence[] = [
    [{ text: action, style: action === 'wait' ? 'warn' : 'good' }, `: ${meaning}`],
    [`${source}: ${because}.`],
  ]
  if (run) sentences.push(runSentence(run, target?.page ?? 0, now))
  if (owner) sentences.push(ownerSentence(owner, now))
  if (run && action !== 'start') {
    const command = unstuckCommand('explain', [shortId(run.id)])
    sentences.push([{ text: `More: \`${command}\``, style: 'dim' }])
  }
  return {
    view: {
      source,
      action,
      because,
      blockedBy,
      run: run && runView(run),
      checkpoint: target && target.seq > 0 ? checkpointView(target) : null,
      owner: owner && ownerView(owner),
    },
    severity: (action === 'clean' ? 'stuck' : 'ok') as Severity,
    summary: `${source}: ${action}. ${meaning}`,
    sections: [{ heading: null, sentences }],
  } satisfies Presented<object>
}

const MEANING: Record<StartAction, string> = {
  start: 'It can start.',
  resume: 'It continues after its last saved page.',
  clean: 'A dead run is in the way: it is ended when the new one begins.',
  wait: 'A worker holds it.',
}

/** A row of a user's own table is neither continued nor ended when another begins. */
const ROW_MEANING: Record<StartAction, string> = {
  start: 'It can start.',
  resume: 'There is progress to continue from; your own program takes it up.',
  clean: 'A dead row is in the way: `unstuck recover` or `unstuck clean` ends it.',
  wait: 'A process may be working on it.',
}

function describeAdvice({ action, blockedBy, run, owner }: StartAdvice): string {
  if (blockedBy !== undefined)
    return `A dead row is in the way, and it cannot be ended here. ${blockedBy}.`
  const isKnown = action === 'wait' && owner !== null
  return run?.traits.ownerIsKnown === false && !isKnown ? ROW_MEANING[action] : MEANING[action]
}

function runSentence(run: Run, page: number, now: Millis): Sentence {
  const { startedAt, createdAt, status, traits } = run
  const row = traits.origin ? `, ${describeOrigin(traits.origin)},` : ''
  const since = startedAt === null ? '' : `, started ${formatAgo(startedAt, now)}`
  const saved = page > 0 ? `, page ${page} is saved` : ''
  return [
    `Run ${shortId(run.id)}${row} is ${status}, created ${formatAgo(createdAt, now)}${since}${saved}.`,
  ]
}

function ownerSentence({ assessment, evidence, worker }: Owner, now: Millis): Sentence {
  const held = isLost(assessment) ? 'Last held' : 'Held'
  const heartbeat = formatAgo(worker.lastHeartbeatAt, now)
  return [`${held} by ${formatProcess(evidence)}, last heartbeat ${heartbeat}.`]
}
