import { STEADY } from '../../core/decide/liveness.ts'
import { LIVE_STATUSES, RUN_STATUSES, isLive } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import { HELD_MAX, storedPolicy } from '../../core/recovery/assess.ts'
import { recover, type Door } from '../../core/recovery/recover.ts'
import type { AuditEntry, Held } from '../../core/store/store.ts'
import {
  deadLetters,
  type GroupedLetters,
  type LetterGroup,
} from '../../presenters/dead-letters.ts'
import { explainEither, type Explained } from '../../presenters/explain.ts'
import { listRuns, type ListedRun } from '../../presenters/runs.ts'
import { sortOut, type Sorted } from '../../presenters/recovery.ts'
import { openRunPage, type RunPage } from '../../presenters/run.ts'
import type { Settings } from '../../app/config.ts'
import { isStuck } from '../../presenters/health.ts'
import { rollCall } from '../../presenters/workers.ts'
import { surveyStore } from '../../presenters/status.ts'
import type { WorkerView } from '../../presenters/view.ts'
import type { TopState, View } from './state.ts'

/** What was seen at one moment: the answer that is always shown, and what the view in front needs. */
export type Look = {
  readonly now: Millis
  readonly where: string
  /** "Is anything stuck?", in one line. */
  readonly summary: string
  readonly mood: 'bad' | 'warn' | 'good'
  readonly seen: Seen
  /** Of the row that is open; null while none is, or it is gone. */
  readonly detail: { readonly row: string; readonly page: Detail } | null
}

export type Seen =
  | { readonly view: 'runs'; readonly runs: readonly ListedRun[] }
  | { readonly view: 'workers'; readonly workers: readonly WorkerView[] }
  | { readonly view: 'recovery'; readonly recovery: Sorted }
  | ({ readonly view: 'letters' } & Pick<GroupedLetters, 'groups' | 'isPartial'>)
  | { readonly view: 'history'; readonly entries: readonly AuditEntry[] }

export type Detail =
  | { readonly of: 'run'; readonly page: RunPage }
  | { readonly of: 'worker'; readonly worker: WorkerView; readonly held: readonly Held[] }
  | { readonly of: 'verdict'; readonly explained: Explained; readonly preset: string | null }
  | { readonly of: 'letter'; readonly group: LetterGroup; readonly isPartial: boolean }
  | { readonly of: 'entry'; readonly entry: AuditEntry }

/** By what is looked: the door, and the settings that explain a verdict. */
export type Ground = { readonly door: Door; readonly settings: Settings }

const LIVE_MAX = 500
const ENDED_MAX = 100
const ENTRIES_MAX = 500
const ENDED_STATUSES = RUN_STATUSES.filter((status) => !isLive(status))

/** Looks once. Only what the view in front shows is asked for. */
export async function lookOnce(ground: Ground, { view, screen }: TopState): Promise<Look> {
  const { store, policyOf = storedPolicy } = ground.door
  const { data, live, now } = await surveyStore(store, policyOf)
  const stuck = live.some(({ health }) => isStuck(health))
  const seen = await see(ground, view, now)
  return {
    now,
    where: store.where,
    summary: data.summary,
    mood: stuck ? 'bad' : data.attention.length > 0 ? 'warn' : 'good',
    seen,
    detail: screen.show === 'detail' ? await openRow(ground, seen, screen.row) : null,
  }
}

async function openRow(ground: Ground, seen: Seen, row: string): Promise<Look['detail']> {
  const page = await open(ground, seen, row)
  return page && { row, page }
}

async function see({ door }: Ground, view: View, now: Millis): Promise<Seen> {
  const { store, policyOf = storedPolicy } = door
  switch (view) {
    case 'runs': {
      const [live, ended] = await Promise.all([
        listRuns(store, policyOf, { statuses: LIVE_STATUSES, limit: LIVE_MAX }),
        listRuns(store, policyOf, { statuses: ENDED_STATUSES, limit: ENDED_MAX }),
      ])
      return { view, runs: [...live.items, ...ended.items] }
    }
    case 'workers':
      return { view, workers: await rollCall(store, now) }
    case 'recovery':
      // A look changes nothing, so it need not listen first; the plan behind R does.
      return { view, recovery: sortOut(await recover(door, { dryRun: true, judge: STEADY })) }
    case 'letters':
      return { view, ...(await deadLetters(store, {})) }
    case 'history':
      return { view, entries: await store.audit({ newestFirst: true, limit: ENTRIES_MAX }) }
  }
}

async function open(ground: Ground, seen: Seen, row: string): Promise<Detail | null> {
  const { store, policyOf } = ground.door
  switch (seen.view) {
    case 'runs': {
      const run = await store.run(row)
      return run && { of: 'run', page: await openRunPage(store, run, policyOf) }
    }
    case 'workers': {
      const worker = seen.workers.find(({ id }) => id === row)
      return worker ? { of: 'worker', worker, held: await store.heldBy(row, null, HELD_MAX) } : null
    }
    case 'recovery': {
      const found = (await store.target(row)) ?? (await store.run(row))
      if (!found) return null
      const explained = await explainEither(ground.door, ground.settings, found)
      return { of: 'verdict', explained, preset: ground.settings.preset }
    }
    case 'letters': {
      const group = seen.groups.find(({ fingerprint }) => fingerprint === row)
      return group ? { of: 'letter', group, isPartial: seen.isPartial } : null
    }
    case 'history': {
      const entry = seen.entries.find(({ id }) => String(id) === row)
      return entry ? { of: 'entry', entry } : null
    }
  }
}
