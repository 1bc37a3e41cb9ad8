import { humanizeDuration } from '../core/model/time.ts'

/** The facts of a verdict as JSON: without the row hashes that bind it to what was assessed. */
export function factsOf(evidence: unknown): Record<string, unknown> {
  if (!isRecord(evidence)) return {}
  const { seal: _seal, ...facts } = evidence
  return isRecord(facts['owner']) ? { ...facts, owner: factsOf(facts['owner']) } : facts
}

/** The same in sentences. Reads only fields it knows: the audit trail also has evidence of other kinds. */
export function evidenceSentences(evidence: unknown): string[] {
  if (!isRecord(evidence)) return []
  return 'presence' in evidence ? workerSentences(evidence) : runSentences(evidence)
}

function workerSentences(evidence: Record<string, unknown>): string[] {
  if ('label' in evidence) return rowSentences(evidence)
  const { presence, presenceKind, process, host, pid } = evidence
  const name = `Process ${text(pid)} on ${text(host)}`
  const seen = {
    alive: `${name} exists.`,
    gone: `${name} no longer exists.`,
    unknown: `${name} cannot be observed from here.`,
  }[text(process)]
  return [
    lockSentence(text(presenceKind), text(presence)),
    seen,
    heartbeatSentence(evidence),
    lagSentence(evidence),
  ].filter((one) => one !== undefined)
}

/** A worker that is known only from a row of a user's own table. */
function rowSentences(evidence: Record<string, unknown>): string[] {
  const { told, neverBeat, heartbeatAgeMs, leaseMs } = evidence
  if (told === 'alive') return ['The config’s alive() returned true.']
  if (told === 'gone') return ['The config’s alive() returned false.']
  const heartbeat =
    neverBeat === true
      ? 'It never sent a heartbeat.'
      : heartbeatSentence({ heartbeatAgeMs, leaseMs })
  return heartbeat === undefined ? [] : [heartbeat]
}

function lockSentence(kind: string, presence: string): string | undefined {
  if (kind === 'none') return 'It holds no lock: only heartbeats count.'
  if (presence === 'held') return 'Its lock is held.'
  if (presence === 'unknown') return 'Its lock cannot be observed from here.'
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
  return `Its last heartbeat was ${humanizeDuration(heartbeatAgeMs)} old${due}${lease}.`
}

/** A main thread that is busy for a second or more may explain missing heartbeats. */
function lagSentence({ loopLagMs }: Record<string, unknown>): string | undefined {
  return isNumber(loopLagMs) && loopLagMs >= 1_000
    ? `Its main thread had been busy for ${humanizeDuration(loopLagMs)} at that heartbeat.`
    : undefined
}

function runSentences(evidence: Record<string, unknown>): string[] {
  const { ageMs, idleMs, pages, extracted, skipped, hasProgress, owner } = evidence
  const sentences: string[] = []
  if (isNumber(ageMs)) {
    const idle = isNumber(idleMs)
      ? `; nothing of it has changed for ${humanizeDuration(idleMs)}`
      : ''
    sentences.push(`The run was ${humanizeDuration(ageMs)} old${idle}.`)
  }
  if (isNumber(pages) && isNumber(extracted) && isNumber(skipped)) {
    const progress = hasProgress
      ? 'there is progress to continue from'
      : 'there is no progress to continue from'
    sentences.push(
      `Pages saved: ${pages}, items extracted: ${extracted}, skipped: ${skipped}: ${progress}.`,
    )
  }
  if (owner === null) sentences.push('No owner is known.')
  return [...sentences, ...evidenceSentences(owner)]
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
