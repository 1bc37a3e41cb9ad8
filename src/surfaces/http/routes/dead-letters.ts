import * as v from 'valibot'
import { UsageError } from '../../../model/errors.ts'
import { TROUBLED_STATUSES } from '../../../model/target.ts'
import { deadLetters, listDeadLetters, retryDeadLetters } from '../../answers/dead-letters.ts'
import { targetView } from '../../view.ts'
import { planChanged } from '../refusal.ts'
import { defineRoute } from '../route.ts'
import { retriedLetters } from '../schema/answers.ts'
import { afterId, limit, listOf, source } from '../schema/common.ts'
import * as overview from '../schema/overview.ts'
import { target } from '../schema/run.ts'

const fingerprint = v.pipe(v.string(), v.regex(/^[0-9a-f]{12}$/, 'is the fingerprint of a group'))

/** Targets that wait for a person, by the kind of their error. */
export const DEAD_LETTER_ROUTES = [
  defineRoute({
    method: 'GET',
    path: '/api/dead-letters',
    summary: 'Failed, held and parked targets, grouped by the kind of their error.',
    role: 'viewer',
    query: v.strictObject({ source: v.optional(source) }),
    answer: overview.deadLetters,
    handle: ({ query, ground: { store } }) => deadLetters(store, query),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/dead-letters/:fingerprint/targets',
    summary: 'The targets of one group.',
    role: 'viewer',
    params: v.strictObject({ fingerprint }),
    query: v.strictObject({ source: v.optional(source), limit, after: afterId }),
    answer: listOf(target),
    async handle({ params, query, ground: { store } }) {
      const which = { fingerprint: params.fingerprint, source: query.source }
      const { items, next } = await listDeadLetters(store, which, query)
      return { items: items.map(targetView), next }
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/dead-letters/retry',
    summary: 'Put dead letters back in line, each from its last saved page.',
    role: 'operator',
    body: v.strictObject({
      fingerprint: v.optional(fingerprint),
      source: v.optional(source),
      statuses: v.optional(v.pipe(v.array(v.picklist(TROUBLED_STATUSES)), v.minLength(1))),
      count: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.description(
            'The `targets` of the dry run: if it would be another number now, nothing is done',
          ),
        ),
      ),
      dryRun: v.optional(v.boolean(), false),
    }),
    answer: retriedLetters,
    async handle({ body, door, signal }) {
      const { count, dryRun, ...letters } = body
      if (count === undefined && !dryRun) {
        throw new UsageError('How many? Ask with dryRun first, then give its `targets` as count.')
      }
      const preview = await retryDeadLetters(door, letters, { dryRun: true, signal })
      if (dryRun) return preview
      if (preview.targets !== count) throw planChanged(preview)
      return retryDeadLetters(door, letters, { dryRun, signal })
    },
  }),
]
