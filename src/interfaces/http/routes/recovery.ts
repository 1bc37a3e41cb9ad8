import * as v from 'valibot'
import { STEADY } from '../../../core/decide/liveness.ts'
import { parseDuration } from '../../../core/model/time.ts'
import { cleanAll, sumUp, type Summed } from '../../../core/recovery/clean.ts'
import { REAL_CLOCK, type Clock } from '../../../core/host/clock.ts'
import { recover, runVerdict, type Door, type Recovery } from '../../../core/recovery/recover.ts'
import { cleaningView, onlyThese } from '../../../presenters/cleaning.ts'
import { boundedRecoveryView, planOf, sortOut } from '../../../presenters/recovery.ts'
import { revertibleRuns, undoByRevert } from '../../../presenters/undo.ts'
import { findRun } from '../../../presenters/find.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Verdict } from '../../../core/model/verdict.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { inLine } from '../limit-concurrency.ts'
import { planChanged } from '../http-error.ts'
import { defineRoute } from '../route.ts'
import { duration, id, several, source, text } from '../../../presenters/schema/common.ts'
import { cleaning, plan, recovery } from '../../../presenters/schema/recovery.ts'

const dryRun = v.optional(v.boolean(), false)
const many = <T extends v.BaseSchema<unknown, string, v.BaseIssue<unknown>>>(of: T) =>
  v.optional(v.pipe(v.array(of), v.maxLength(50)), [])

/** What would be recovered or cleaned, and doing it: what was looked at, or nothing. */
export const RECOVERY_ROUTES = [
  defineRoute({
    method: 'GET',
    path: '/api/recovery',
    summary: 'What recovery would do now.',
    role: 'viewer',
    query: v.strictObject({
      timeout: v.optional(duration),
      source: several(source),
      group: several(text),
    }),
    answer: recovery,
    handle: (call) =>
      inLine(call, async () => {
        const { query, door, signal } = call
        const which = { timeout: query.timeout, sources: query.source, groups: query.group }
        return recoveryAnswer(which, await look(door, which, signal), true)
      }),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/recovery',
    summary: 'Recover orphans now: what the dead and the silent held. Never touches the living.',
    role: 'operator',
    body: v.strictObject({
      timeout: v.optional(duration),
      sources: many(source),
      groups: many(text),
      plan: v.optional(plan),
      dryRun,
    }),
    answer: recovery,
    async handle({ body, door, signal }) {
      const seen = await look(door, body, signal)
      if (body.dryRun) return recoveryAnswer(body, seen, true)
      const { deeds, theirs } = sortOut(seen)
      if (body.plan !== undefined && planOf(deeds) !== body.plan) {
        throw planChanged(recoveryAnswer(body, seen, true))
      }
      // It has just listened: there is no need to do so again.
      const only = new Set(deeds.map(({ run, target }) => target ?? run))
      const { verdicts } = await recover(door, { ...selection(body), judge: STEADY, only })
      return recoveryAnswer(body, { ...seen, verdicts: [...verdicts, ...theirs] }, false)
    },
  }),

  defineRoute({
    method: 'GET',
    path: '/api/clean',
    summary: 'Resumable and dead runs side by side.',
    role: 'viewer',
    query: v.strictObject({ age: v.optional(duration) }),
    answer: cleaning,
    async handle({ query, door }) {
      const summed = await sumUp(door, parseDuration(query.age) ?? undefined)
      return cleaningAnswer(query, summed, [], true)
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/clean',
    summary: 'Mark the dead as “Timeout – auto-cleaned”. Nothing is deleted.',
    role: 'operator',
    body: v.strictObject({
      runs: v.optional(v.pipe(v.array(id), v.minLength(1), v.maxLength(500))),
      age: v.optional(duration),
      plan: v.optional(plan),
      dryRun,
    }),
    answer: cleaning,
    async handle({ body, door }) {
      const { runs, age, dryRun } = body
      const all = await sumUp(door, parseDuration(age) ?? undefined)
      const named = await Promise.all((runs ?? []).map((run) => findRun(door.store, run)))
      const { summed } = runs ? onlyThese(all, named, false) : { summed: all }
      const preview = cleaningAnswer(body, summed, [], true)
      if (dryRun) return preview
      if (body.plan !== undefined && preview.plan !== body.plan) throw planChanged(preview)
      return cleaningAnswer(body, summed, await cleanAll(door, summed.dead), false)
    },
  }),
]

type Which = {
  readonly timeout?: string | undefined
  readonly sources: readonly string[]
  readonly groups: readonly string[]
}

function selection({ timeout, sources, groups }: Which) {
  const olderThanMs = parseDuration(timeout)
  return { sources, groups, ...(olderThanMs !== null && { olderThanMs }) }
}

function look(door: Door, which: Which, signal: AbortSignal): Promise<Recovery> {
  return recover(door, { ...selection(which), clock: until(signal), dryRun: true })
}

/** Who has left need not be listened for, and must not be answered as if one had. */
function until(signal: AbortSignal): Clock {
  return {
    ...REAL_CLOCK,
    sleep: async (ms) => {
      await REAL_CLOCK.sleep(ms, signal)
      signal.throwIfAborted()
    },
  }
}

function recoveryAnswer(which: Which, seen: Recovery, dryRun: boolean) {
  const sorted = sortOut(seen)
  const { deeds } = sorted
  const { timeout, sources, groups } = which
  return {
    ...boundedRecoveryView(sorted, dryRun),
    plan: planOf(deeds),
    deeds: deeds.length,
    command: unstuckCommand('recover', [], { yes: true, timeout, source: sources, group: groups }),
    undo: dryRun ? null : undoByRevert(revertibleRuns(deeds)),
  }
}

function cleaningAnswer(
  {
    runs = [],
    age,
  }: { readonly runs?: readonly string[] | undefined; readonly age?: string | undefined },
  summed: Summed,
  cleaned: readonly Verdict[],
  dryRun: boolean,
) {
  const wanted = summed.dead.map((judged) => runVerdict(judged, false))
  return {
    ...cleaningView(summed, cleaned, dryRun),
    plan: planOf(wanted),
    command: unstuckCommand('clean', runs.map(shortId), { auto: true, age }),
    undo: dryRun ? null : undoByRevert(revertibleRuns(cleaned)),
  }
}
