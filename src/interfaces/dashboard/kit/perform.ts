import { ApiError, call, get } from '../api.ts'
import type { Page, Target, Undo } from '../shapes.ts'
import type { ActionResult } from './action-result.ts'
import { describeError, type UndoStep } from './action-state.ts'
import type { Action, Input } from './actions.ts'

/** What an action would do now. */
export async function loadPreview(action: Action, input: Input): Promise<ActionResult> {
  const { preview, method, path } = action
  if (preview !== null) return action.toResult(await get(preview))
  const body = { ...action.body(input, null), dryRun: true }
  return action.toResult(await call(method, path, { body }))
}

/** Some of the targets that it is about, where there is only a count of them. */
export async function loadSample({ sample }: Action): Promise<Target[]> {
  return sample === null ? [] : (await get<Page<Target>>(sample)).items
}

/** Does what was shown, or throws: a plan that no longer fits is refused by the server. */
export async function perform(
  action: Action,
  body: Record<string, unknown>,
): Promise<ActionResult> {
  return action.toResult(await call(action.method, action.path, { body }))
}

/** The new preview that came with a refused plan; null when it is another error. */
export function newPreviewOf(action: Action, error: unknown): ActionResult | null {
  if (!(error instanceof ApiError) || error.code !== 'PLAN_CHANGED') return null
  const preview = (error.body as { preview?: unknown } | null)?.preview
  return preview ? action.toResult(preview) : null
}

/** Makes the calls of an undo one after the other, and tells after each how far it is. */
export async function undoAll(
  { calls }: NonNullable<Undo>,
  onStep: (steps: readonly UndoStep[], isOver: boolean) => void,
): Promise<void> {
  const steps: UndoStep[] = calls.map(() => null)
  onStep(steps, false)
  for (const [index, { method, path, body }] of calls.entries()) {
    steps[index] = { path, error: await errorOf(() => call(method, path, { body })) }
    onStep(steps, index === calls.length - 1)
  }
}

const RETRIES_MAX = 3

/** Null when it worked. Who is asked to slow down waits and goes on. */
async function errorOf(make: () => Promise<unknown>): Promise<string | null> {
  for (let tries = 1; ; tries++) {
    try {
      await make()
      return null
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status !== 429 || tries === RETRIES_MAX) return describeError(error, true)
      const { retryAfter } = error
      await new Promise((resolve) => setTimeout(resolve, (retryAfter ?? 2) * 1_000))
    }
  }
}
