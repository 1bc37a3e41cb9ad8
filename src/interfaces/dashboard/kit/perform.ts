import { ApiError, call, get } from '../api.ts'
import type { ActionResult, AllowedAction, Page, Target, Undo } from '../shapes.ts'
import { describeError, type Input, type UndoStep } from './action-state.ts'

/** Returns what an action would change now. */
export function loadPreview(
  { call: { preview, method, path, body } }: AllowedAction,
  input: Input,
): Promise<ActionResult> {
  return preview === null
    ? call(method, path, { body: { ...body, ...input, dryRun: true } })
    : get(preview)
}

/** Returns some of the targets that an action is about, where the preview has only their number. */
export async function loadSample({ call: { sample } }: AllowedAction): Promise<readonly Target[]> {
  return sample === null ? [] : (await get<Page<Target>>(sample)).items
}

/** Applies what was shown, or throws: the server refuses a plan that has changed. */
export function perform(
  { call: { method, path } }: AllowedAction,
  body: Record<string, unknown>,
): Promise<ActionResult> {
  return call(method, path, { body })
}

/** Returns the new preview that comes with a refused plan; null for another error. */
export function newPreviewOf({ code, body }: ApiError): ActionResult | null {
  if (code !== 'PLAN_CHANGED') return null
  return (body as { preview?: ActionResult } | null)?.preview ?? null
}

/** Makes the calls of an undo one after the other. `onStep` gets the progress after each. */
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

/** Returns null on success. After 429 it waits and tries again. */
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
