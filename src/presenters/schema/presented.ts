import * as v from 'valibot'
import { RUN_ACTIONS, TARGET_ACTIONS } from '../../core/decide/allowed-actions.ts'
import { SEVERITIES } from '../../core/decide/health.ts'

/** Calls of this API that revert what was just done, and the same on the command line. */
export const undo = v.nullable(
  v.object({
    label: v.string(),
    calls: v.array(
      v.object({
        method: v.picklist(['POST']),
        path: v.string(),
        body: v.record(v.string(), v.unknown()),
      }),
    ),
    command: v.string(),
  }),
)

/** An action that is accepted now, with all that an interface needs to offer, preview and call it. */
export const allowedAction = v.object({
  name: v.picklist([...RUN_ACTIONS, ...TARGET_ACTIONS, 'recover', 'clean', 'retry-dead-letters']),
  label: v.string(),
  title: v.string(),
  verb: v.string(),
  about: v.string(),
  isDestructive: v.boolean(),
  isCounted: v.boolean(),
  takesReason: v.boolean(),
  role: v.picklist(['operator', 'admin']),
  confirm: v.object({ text: v.string(), always: v.boolean() }),
  fields: v.array(
    v.object({
      name: v.string(),
      label: v.string(),
      initial: v.union([v.number(), v.boolean()]),
      max: v.nullable(v.number()),
    }),
  ),
  call: v.object({
    method: v.picklist(['POST', 'DELETE']),
    path: v.string(),
    body: v.record(v.string(), v.unknown()),
    preview: v.nullable(v.string()),
    sample: v.nullable(v.string()),
  }),
  command: v.string(),
})
export const actions = v.array(allowedAction)

export const sections = v.array(
  v.object({ heading: v.nullable(v.string()), sentences: v.array(v.string()) }),
)

/** What every presented answer has beside its data. */
export const presentedFields = {
  severity: v.picklist(SEVERITIES),
  /** One line. */
  summary: v.string(),
  /** The sentences that the command line prints. */
  sections,
  /** What can be done now. */
  actions,
  undo,
}
