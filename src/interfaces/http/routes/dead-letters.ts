import * as v from 'valibot'
import { UsageError } from '../../../core/model/errors.ts'
import { DEAD_LETTER_STATUSES } from '../../../core/model/target.ts'
import { groupDeadLetters, listDeadLetters } from '../../../presenters/dead-letters.ts'
import { actionsOfTargets } from '../../../presenters/allowed-target-actions.ts'
import {
  deadLettersView,
  selectDeadLetters,
  previewReplan,
  REPLAN_MAX,
  replanDeadLetters,
} from '../../../presenters/dead-letter-replan.ts'
import { targetView } from '../../../presenters/view.ts'
import { acknowledgeDeadLetters } from '../../../presenters/acknowledge.ts'
import { actionResultView } from '../../../presenters/action-result.ts'
import { planChanged } from '../http-error.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { acknowledgeFields, afterId, limit, plan, source, wholeNumber } from '../request-fields.ts'

const fingerprint = v.pipe(v.string(), v.regex(/^[0-9a-f]{12}$/, 'is the fingerprint of a group'))

/** Without it, those that need attention are listed. */
const acknowledged = v.pipe(
  v.optional(v.picklist(['true', 'false'])),
  v.transform((text) => text === 'true'),
  v.description('`true`: those that an operator acknowledged; default: those that need attention'),
)

/** Targets that need attention, by the kind of their error. */
export const DEAD_LETTER_ROUTES = [
  defineRoute('GET /api/dead-letters', {
    summary: 'Failed, stuck and parked targets, grouped by the kind of their error.',
    query: v.strictObject({ source: v.optional(source), acknowledged }),
    response: 'deadLetters',
    isExpensive: true,
    handle: async ({ query, server: { store } }) =>
      deadLettersView(await groupDeadLetters(store, query), query),
  }),

  defineRoute('GET /api/dead-letters/:fingerprint/targets', {
    summary: 'The targets of one group.',
    params: v.strictObject({ fingerprint }),
    query: v.strictObject({ source: v.optional(source), acknowledged, limit, after: afterId }),
    response: 'deadLetterTargets',
    isExpensive: true,
    async handle({ params, query, server: { store } }) {
      const { source, acknowledged } = query
      const which = { fingerprint: params.fingerprint, source, acknowledged }
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

  defineRoute('POST /api/dead-letters/acknowledge', {
    summary: 'Mark dead letters as seen: they are kept, and no longer count as needing attention.',
    body: v.strictObject({
      fingerprint: v.optional(fingerprint),
      source: v.optional(source),
      ...acknowledgeFields,
    }),
    response: 'actionResult',
    async handle({ body: { fingerprint, source, ...options }, context, signal }) {
      const which = { fingerprint, source }
      return actionResultView(await acknowledgeDeadLetters(context, which, options, signal))
    },
  }),

  defineRoute('POST /api/dead-letters/replan', {
    summary: `Put dead letters back in the queue, each from its last saved page: ${REPLAN_MAX} in a call.`,
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
    response: 'deadLetterReplan',
    async handle({ body, context, signal }) {
      const { plan, count, dryRun, ...which } = body
      if (plan === undefined && count === undefined && !dryRun) {
        throw new UsageError('Which ones? Ask with dryRun first, then give its plan.')
      }
      const chosen = await selectDeadLetters(context.store, which, signal)
      const preview = await previewReplan(context, chosen)
      if (dryRun) return preview
      const { targets } = preview
      if ((plan ?? preview.plan) !== preview.plan || (count ?? targets) !== targets)
        throw planChanged(preview)
      return replanDeadLetters(context, chosen, signal)
    },
  }),
]
