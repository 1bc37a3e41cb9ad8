import { humanizeDuration } from '../../../core/model/time.ts'

/** What a verdict was made of, in sentences; empty where there is nothing to say. Reads only what it knows. */
export function evidenceSentences(evidence: unknown): string[] {
  if (!isRecord(evidence)) return []
  return 'presence' in evidence ? workerSentences(evidence) : runSentences(evidence)
}

/** `row 7 of jobs (host1)`: what a table of the user's own calls who had it; null for a worker of our own. */
export function rowOfEvidence(evidence: unknown): string | null {
  return isRecord(evidence) && typeof evidence['label'] === 'string' ? evidence['label'] : null
}

function workerSentences(evidence: Record<string, unknown>): string[] {
  if ('label' in evidence) return tableSentences(evidence)
  const { presence, presenceKind, process, host, pid } = evidence
  const who = `Process ${text(pid)} on ${text(host)}`
  const looked = {
    alive: `${who} exists.`,
    gone: `${who} no longer exists.`,
    unknown: `${who} cannot be looked at from here.`,
  }[text(process)]
  return [
    lockSentence(text(presenceKind), text(presence)),
    looked,
    heartbeatSentence(evidence),
    lagSentence(evidence),
  ].filter((one) => one !== undefined)
}

/** Of somebody who is known by a table of the user's own alone. */
function tableSentences(evidence: Record<string, unknown>): string[] {
  const { told, neverBeat, heartbeatAgeMs, leaseMs } = evidence
  if (told === 'alive') return ['The config’s alive() says that it lives.']
  if (told === 'gone') return ['The config’s alive() says that it has ended.']
  const said =
    neverBeat === true ? 'It has never beaten.' : heartbeatSentence({ heartbeatAgeMs, leaseMs })
  return said === undefined ? [] : [said]
}

function lockSentence(kind: string, presence: string): string | undefined {
  if (kind === 'none') return 'It holds no lock here: heartbeats decide alone.'
  if (presence === 'held') return 'Its lock is held.'
  if (presence === 'unknown') return 'Its lock cannot be seen from here.'
  if (presence !== 'free') return undefined
  return kind === 'file'
    ? 'The kernel has freed its lock, which only the end of the process does.'
    : 'Its database session has ended and freed its lock.'
}

function heartbeatSentence({
  heartbeatAgeMs,
  heartbeatMs,
  leaseMs,
}: Record<string, unknown>): string | undefined {
  if (!isNumber(heartbeatAgeMs)) return undefined
  const due = isNumber(heartbeatMs) ? `; one is due every ${humanizeDuration(heartbeatMs)}` : ''
  const lease = isNumber(leaseMs)
    ? `, and after ${humanizeDuration(leaseMs)} it counts as silent`
    : ''
  return `Its last beat was ${humanizeDuration(heartbeatAgeMs)} old${due}${lease}.`
}

/** A thread that is busy for a second or more may explain a silence. */
function lagSentence({ loopLagMs }: Record<string, unknown>): string | undefined {
  return isNumber(loopLagMs) && loopLagMs >= 1_000
    ? `Its main thread had been busy for ${humanizeDuration(loopLagMs)} at that beat.`
    : undefined
}

function runSentences(evidence: Record<string, unknown>): string[] {
  const { ageMs, idleMs, pages, extracted, skipped, hasProgress, owner } = evidence
  const said: string[] = []
  if (isNumber(ageMs)) {
    const idle = isNumber(idleMs)
      ? `; nothing of it has changed for ${humanizeDuration(idleMs)}`
      : ''
    said.push(`The run was ${humanizeDuration(ageMs)} old${idle}.`)
  }
  if (isNumber(pages) && isNumber(extracted) && isNumber(skipped)) {
    const progress = hasProgress ? 'there is progress to go on from' : 'nothing to go on from'
    said.push(
      `Pages saved: ${pages}, items extracted: ${extracted}, skipped: ${skipped}: ${progress}.`,
    )
  }
  if (owner === null) said.push('Nobody is known to have had it.')
  else said.push(...evidenceSentences(owner))
  return said
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?'
}
