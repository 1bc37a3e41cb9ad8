import * as v from 'valibot'
import { UsageError } from '../../../core/model/errors.ts'
import { TROUBLED_STATUSES } from '../../../core/model/target.ts'
import { deadLetters, listDeadLetters } from '../../../presenters/dead-letters.ts'
import {
  chooseLetters,
  previewRetry,
  RETRIED_MAX,
  retryLetters,
} from '../../../presenters/dead-letter-retry.ts'
import { targetView } from '../../../presenters/view.ts'
import { inLine } from '../limit-concurrency.ts'
import { planChanged } from '../http-error.ts'
import { defineRoute } from '../route.ts'
import { retriedLetters } from '../../../presenters/schema/results.ts'
import { afterId, limit, listOf, source, wholeNumber } from '../../../presenters/schema/common.ts'
import * as overview from '../../../presenters/schema/overview.ts'
import { plan } from '../../../presenters/schema/recovery.ts'
import { target } from '../../../presenters/schema/run.ts'

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
    handle: (call) => inLine(call, () => deadLetters(call.ground.store, call.query)),
  }),

  defineRoute({
    method: 'GET',
    path: '/api/dead-letters/:fingerprint/targets',
    summary: 'The targets of one group.',
    role: 'viewer',
    params: v.strictObject({ fingerprint }),
    query: v.strictObject({ source: v.optional(source), limit, after: afterId }),
    answer: listOf(target),
    handle: (call) =>
      inLine(call, async () => {
        const { params, query, ground } = call
        const which = { fingerprint: params.fingerprint, source: query.source }
        const { items, next } = await listDeadLetters(ground.store, which, query)
        return { items: items.map(targetView), next }
      }),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/dead-letters/retry',
    summary: `Put dead letters back in line, each from its last saved page: ${RETRIED_MAX} in a call.`,
    role: 'operator',
    body: v.strictObject({
      fingerprint: v.optional(fingerprint),
      source: v.optional(source),
      statuses: v.optional(v.pipe(v.array(v.picklist(TROUBLED_STATUSES)), v.minLength(1))),
      plan: v.optional(
        v.pipe(plan, v.description('Of the dry run: if it would be others now, nothing is done')),
      ),
      count: v.optional(
        v.pipe(
          wholeNumber(0),
          v.description('The `targets` of the dry run, where that is enough to go by'),
        ),
      ),
      dryRun: v.optional(v.boolean(), false),
    }),
    answer: retriedLetters,
    async handle({ body, door, signal }) {
      const { plan, count, dryRun, ...which } = body
      if (plan === undefined && count === undefined && !dryRun) {
        throw new UsageError('Which ones? Ask with dryRun first, then give its plan.')
      }
      const chosen = await chooseLetters(door.store, which, signal)
      const preview = await previewRetry(door, chosen)
      if (dryRun) return preview
      const { targets } = preview
      if ((plan ?? preview.plan) !== preview.plan || (count ?? targets) !== targets)
        throw planChanged(preview)
      return retryLetters(door, chosen, signal)
    },
  }),
]
