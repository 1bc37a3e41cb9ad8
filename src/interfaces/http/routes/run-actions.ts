import * as v from 'valibot'
import { Refused, UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import type { Run } from '../../../core/model/run.ts'
import { sumUp } from '../../../core/recovery/clean.ts'
import type { Door } from '../../../core/recovery/recover.ts'
import { onlyThese } from '../../../presenters/cleaning.ts'
import { deleteDoomed, planDeletion } from '../../../presenters/deletion.ts'
import { doneView, type Done } from '../../../presenters/action-result.ts'
import { cancel, resume, retry, revert, type Asked } from '../../../presenters/run-actions.ts'
import { resetFailed, unpark } from '../../../presenters/target-actions.ts'
import { findRun, findTargets } from '../../../presenters/find.ts'
import { defineRoute } from '../route.ts'
import { deletion } from '../../../presenters/schema/results.ts'
import { because, fullId, id, text, wholeNumber } from '../../../presenters/schema/common.ts'
import { done } from '../../../presenters/schema/recovery.ts'

const theRun = v.strictObject({ run: id })
const dryRun = v.optional(v.boolean(), false)
const groups = v.optional(v.pipe(v.array(text), v.minLength(1), v.maxLength(50)))
const TARGETS_MAX = 500

/** What people do to one run. */
export const RUN_DEED_ROUTES = [
  onRun(
    cancel,
    'cancel',
    'End a live run. Whoever works on it stops at the end of the page in hand.',
  ),
  onRun(resume, 'resume', 'Open an ended run again: it goes on from its last saved pages.'),
  onRun(
    retry,
    'retry',
    'Queue a new run that follows this one from nothing. What was saved stays saved.',
  ),
  onRun(revert, 'revert', 'Take back the last clean, cancel, fail or recovery of a run.'),

  defineRoute({
    method: 'POST',
    path: '/api/runs/:run/reset-failed',
    summary: 'Put failed targets back in line, from their last saved pages.',
    role: 'operator',
    params: theRun,
    body: v.strictObject({
      groups,
      maxAttempts: v.optional(wholeNumber(1)),
      dryRun,
    }),
    answer: done,
    async handle({ params, body, door }) {
      const run = await findRun(door.store, params.run)
      return doneView(await resetFailed(door, run.id, body))
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/runs/:run/unpark',
    summary: 'Put parked and held targets back in line, from their last saved pages.',
    role: 'operator',
    params: theRun,
    body: v.strictObject({
      targets: v.optional(v.pipe(v.array(fullId), v.minLength(1), v.maxLength(TARGETS_MAX))),
      groups,
      dryRun,
    }),
    answer: done,
    async handle({ params, body, door }) {
      const run = await findRun(door.store, params.run)
      const targets = body.targets && (await findTargets(door.store, body.targets))
      for (const target of targets ?? []) {
        if (target.run === run.id) continue
        throw new UsageError(`Target ${shortId(target.id)} is not one of run ${shortId(run.id)}.`)
      }
      return doneView(await unpark(door, run.id, { ...body, targets }))
    },
  }),

  defineRoute({
    method: 'DELETE',
    path: '/api/runs/:run',
    summary: 'Delete a dead or ended run for good, with its targets and files.',
    role: 'admin',
    params: theRun,
    body: v.strictObject({
      confirm: v.optional(
        v.pipe(text, v.description('`delete ` and the last 8 digits of the run’s id')),
      ),
      withItems: v.optional(v.boolean(), false),
      dryRun,
    }),
    answer: deletion,
    async handle({ params, body, door, ground: { dataFolder: base } }) {
      const { withItems, dryRun } = body
      const run = await findRun(door.store, params.run)
      const chosen = onlyThese(await sumUp(door), [run], true)
      const doomed = await planDeletion(door.store, [run], { base, withItems })
      const command = unstuckCommand('clean', [shortId(run.id)], { delete: true, withItems })
      const [{ targets, items, folders }] = doomed as [(typeof doomed)[number]]
      if (dryRun) {
        const plan = { run: run.id, source: run.source, targets, items, folders: [...folders] }
        return { ...plan, failures: [], dryRun, command }
      }
      const words = `delete ${shortId(run.id)}`
      if (body.confirm !== words) {
        throw new UsageError(`Nothing was deleted. To mean it, say so: confirm must be "${words}".`)
      }
      const { dead } = chosen.summed
      const { deleted, failures } = await deleteDoomed(door, doomed, { dead, withItems })
      const [gone] = deleted
      if (!gone) {
        throw new Refused(`Run ${shortId(run.id)} changed meanwhile: it was left alone.`)
      }
      return { ...gone, failures, dryRun, command }
    },
  }),
]

/** The four that take a run and nothing but a reason. */
function onRun(
  act: (door: Door, run: Run, asked: Asked) => Promise<Done>,
  verb: string,
  summary: string,
) {
  return defineRoute({
    method: 'POST',
    path: `/api/runs/:run/${verb}`,
    summary,
    role: 'operator',
    params: theRun,
    body: v.strictObject({ dryRun, because }),
    answer: done,
    handle: async ({ params, body, door }) =>
      doneView(await act(door, await findRun(door.store, params.run), body)),
  })
}
