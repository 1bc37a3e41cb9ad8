import * as v from 'valibot'
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
  undo,
}
