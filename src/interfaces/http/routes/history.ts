import * as v from 'valibot'
import { iso, parseDuration } from '../../../core/model/time.ts'
import { presentHistory, readHistory } from '../../../presenters/history.ts'
import { findRun } from '../../../presenters/find.ts'
import { toJson } from '../../../presenters/presented.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { duration, limit, runRef, source, text } from '../request-fields.ts'
import { ACCESS_STORE } from '../../../features/access/store/store.ts'

/** Entries are numbered. */
const after = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^\d{1,15}$/, 'is the `next` of the last answer'),
    v.transform(Number),
  ),
)

/** The audit trail, and the operations over HTTP. */
export const HISTORY_ROUTES = [
  defineRoute('GET /api/history', {
    summary:
      'What was cleaned, recovered, reverted: counts by source, and entries with actor and reason.',
    query: v.strictObject({
      source: v.optional(source),
      run: v.optional(runRef),
      action: v.optional(text),
      since: v.optional(duration),
      limit,
      after,
    }),
    response: 'history',
    async handle({ query, server: { store } }) {
      const { source, action, limit, after } = query
      const ageMs = parseDuration(query.since)
      const now = await store.now()
      const filter = {
        ...(ageMs !== null && { since: now - ageMs }),
        ...(query.run !== undefined && { run: (await findRun(store, query.run, 'history')).id }),
        source,
        action,
      }
      return toJson(presentHistory(await readHistory(store, filter, { after, limit }), now))
    },
  }),

  defineRoute('GET /api/operations', {
    summary: 'Mutating requests over HTTP and their results, newest first.',
    query: v.strictObject({ limit, after }),
    response: 'operations',
    async handle({ query, server: { store } }) {
      const { items, next } = await (await store.extend(ACCESS_STORE)).operations(query)
      return { items: items.map(({ at, ...one }) => ({ ...one, at: iso(at) })), next }
    },
  }),
]
