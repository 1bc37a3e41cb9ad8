import { NotFoundError, UsageError } from '../core/model/errors.ts'
import { isId, shortId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import type { Store } from '../core/store/store.ts'

const RUNS_HINT = '`unstuck runs` lists them.'

/** Finds a target by its id. Short ids are searched among all targets. */
export async function findTarget(store: Store, text: string): Promise<Target> {
  const hint = '`unstuck show RUN` lists those that need attention.'
  const id = parseId(text, 'target', hint)
  const [found, another] = isId(id) ? [id] : await store.idsEnding(id, 'target')
  if (another !== undefined) throw ambiguous('targets', text, found!, another)
  const target = found === undefined ? null : await store.target(found)
  if (!target) throw new NotFoundError(`target ${text}`, hint)
  return target
}

/** Finds several targets; one that is named twice is returned once. */
export async function findTargets(store: Store, texts: readonly string[]): Promise<Target[]> {
  const found = new Map<string, Target>()
  for (const text of texts) {
    const target = await findTarget(store, text)
    found.set(target.id, target)
  }
  return [...found.values()]
}

/** Finds the run, or else the target, with this id. */
export async function findRunOrTarget(store: Store, text: string): Promise<Run | Target> {
  const hint = '`unstuck runs` lists runs, `unstuck show RUN` its targets in trouble.'
  const id = parseId(text, 'run or a target', hint)
  const whole = isId(id) && ((await store.run(id)) ?? (await store.target(id)))
  if (whole) return whole
  if ((await store.idsEnding(id, 'run')).length > 0) return findRun(store, text)
  if ((await store.idsEnding(id, 'target')).length > 0) return findTarget(store, text)
  throw new NotFoundError(`run or target ${text}`, hint)
}

/** Finds a run by its full id, or by the last 8 digits that every list shows. */
export async function findRun(store: Store, text: string): Promise<Run> {
  const id = parseId(text, 'run', RUNS_HINT)
  const [found, another] = isId(id) ? [id] : await store.idsEnding(id, 'run')
  if (another !== undefined) throw ambiguous('runs', text, found!, another)
  const run = found === undefined ? null : await store.run(found)
  if (!run) throw new NotFoundError(`run ${text}`, RUNS_HINT)
  return run
}

/** Finds a run by its id, or the newest run of a source by its name. */
export async function findRunOrNewest(store: Store, text: string): Promise<Run> {
  const id = text.toLowerCase()
  const isKnown = ID.test(id) && (await store.idsEnding(id, 'run')).length > 0
  if (isKnown) return findRun(store, text)
  const [newest] = (await store.runs({ source: text, limit: 1 })).items
  if (!newest) throw new NotFoundError(`run or source ${text}`, RUNS_HINT)
  return newest
}

const ID = /^[0-9a-f-]{8,36}$/

function parseId(text: string, what: string, hint: string): string {
  const id = text.toLowerCase()
  if (ID.test(id)) return id
  throw new UsageError(
    `${JSON.stringify(text)} is not the id of a ${what}: give its last 8 digits, or all of it. ${hint}`,
  )
}

function ambiguous(what: string, text: string, one: string, another: string): UsageError {
  return new UsageError(
    `Several ${what} end in ${shortId(text)}, ${one} and ${another} among them. Give the full id.`,
  )
}
