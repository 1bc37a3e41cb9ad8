import * as v from 'valibot'
import { UsageError } from '../../../core/model/errors.ts'
import { DEAD_LETTER_STATUSES } from '../../../core/model/target.ts'
import { groupDeadLetters, listDeadLetters } from '../../../presenters/dead-letters.ts'
import { actionsOfTargets } from '../../../presenters/allowed-actions.ts'
import {
  deadLettersView,
  selectDeadLetters,
  previewRetry,
  RETRY_MAX,
  retryDeadLetters,
} from '../../../presenters/dead-letter-retry.ts'
import { targetView } from '../../../presenters/view.ts'
import { planChanged } from '../http-error.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { afterId, limit, plan, source, wholeNumber } from '../request-fields.ts'

const fingerprint = v.pipe(v.string(), v.regex(/^[0-9a-f]{12}$/, 'is the fingerprint of a group'))

/** Targets that need attention, by the kind of their error. */
export const DEAD_LETTER_ROUTES = [
  defineRoute('GET /api/dead-letters', {
    summary: 'Failed, stuck and parked targets, grouped by the kind of their error.',
    query: v.strictObject({ source: v.optional(source) }),
    response: 'deadLetters',
    isExpensive: true,
    handle: async ({ query, server: { store } }) =>
      deadLettersView(await groupDeadLetters(store, query), query),
  }),

  defineRoute('GET /api/dead-letters/:fingerprint/targets', {
    summary: 'The targets of one group.',
    params: v.strictObject({ fingerprint }),
    query: v.strictObject({ source: v.optional(source), limit, after: afterId }),
    response: 'deadLetterTargets',
    isExpensive: true,
    async handle({ params, query, server: { store } }) {
      const which = { fingerprint: params.fingerprint, source: query.source }
      const { items, next } = await listDeadLetters(store, which, query)
      const actions = await actionsOfTargets(store, items)
      return {
        items: items.map((one, index) => ({
          ...targetView(one),
          actions: actions[index]!.filter(({ name }) => name !== 'rewind'),
        })),
        next,
      }
    },
  }),

  defineRoute('POST /api/dead-letters/retry', {
    summary: `Put dead letters back in the queue, each from its last saved page: ${RETRY_MAX} in a call.`,
    body: v.strictObject({
      fingerprint: v.optional(fingerprint),
      source: v.optional(source),
      statuses: v.optional(v.pipe(v.array(v.picklist(DEAD_LETTER_STATUSES)), v.minLength(1))),
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
    response: 'deadLetterRetry',
    async handle({ body, context, signal }) {
      const { plan, count, dryRun, ...which } = body
      if (plan === undefined && count === undefined && !dryRun) {
        throw new UsageError('Which ones? Ask with dryRun first, then give its plan.')
      }
      const chosen = await selectDeadLetters(context.store, which, signal)
      const preview = await previewRetry(context, chosen)
      if (dryRun) return preview
      const { targets } = preview
      if ((plan ?? preview.plan) !== preview.plan || (count ?? targets) !== targets)
        throw planChanged(preview)
      return retryDeadLetters(context, chosen, signal)
    },
  }),
]
