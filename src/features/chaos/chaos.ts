import { join } from 'node:path'
import process from 'node:process'
import { until } from './demo/pause.ts'
import type { Store } from '../../core/store/store.ts'
import { compare } from './compare.ts'
import { readOutcome } from './outcome.ts'
import { runReference, type Reference } from './reference.ts'
import { makeReport, type Report } from './report.ts'
import { makeScratch, type Place, type Scratch } from './scratch.ts'
import { KILLS, Storm, type Deeds } from './runner.ts'
import { Lives, type Problem, type Trial } from './trial.ts'

export type ChaosEnd = {
  /** Null when there was no reference to compare with. */
  readonly report: Report | null
  readonly problems: readonly Problem[]
  readonly kills: Deeds['kills']
  readonly engine: Store['engine']
  /** What is left to look at; null when it was removed. */
  readonly kept: Kept | null
}

export type Kept = {
  readonly folder: string
  /** Each phase that came so far, with the address of its database; null when that was dropped. */
  readonly places: readonly { readonly phase: Place['phase']; readonly address: string | null }[]
  /** Left on the server. */
  readonly databases: readonly string[]
}

/** A worker that is to stop gets 25 s. */
const LINGER_MS = 30_000
const LOOK_EVERY_MS = 50

/**
 * The command once without kills, then with kills, each in a database of its own; then the two are compared. No process
 * is left behind. Null when it was interrupted: then nothing else is left either.
 */
export async function runChaos(trial: Trial): Promise<ChaosEnd | null> {
  const scratch = makeScratch(trial.server)
  const lives = new Lives(trial.command)
  const atExit = (): void => {
    lives.killNow()
    scratch.removeFolder()
  }
  process.once('exit', atExit)
  let end: Ended | null = null
  try {
    end = await tryOut(trial, scratch, lives)
    if (trial.interrupted.aborted) end = null
  } finally {
    trial.progress.close()
    await lives.killAll()
    await scratch.close()
    if (end === null || !trial.keep) await scratch.dropDatabases()
    const isWanted = end !== null && (trial.keep || end.problems.length > 0)
    if (!isWanted) scratch.removeFolder()
    process.off('exit', atExit)
    if (end && isWanted) end.kept = keptOf(scratch, end.places)
  }
  return end
}

type Ended = { -readonly [K in keyof ChaosEnd]: ChaosEnd[K] } & { places: readonly Place[] }

async function tryOut(trial: Trial, scratch: Scratch, lives: Lives): Promise<Ended | null> {
  const calm = await scratch.open('reference')
  const ended = (places: readonly Place[]): Ended => {
    const { engine } = calm.store
    return { report: null, problems: [], kills: [], engine, kept: null, places }
  }
  const reference = await runReference(trial, calm, lives)
  if (reference === null) return null
  if ('what' in reference) return { ...ended([calm]), problems: [reference] }
  await settled(lives, trial)
  await lives.killAll()

  const wild = await scratch.open('kills')
  const deeds = await new Storm(trial, wild, lives, reference).play()
  if (trial.interrupted.aborted) return null
  const leftBehind = deeds.problem ? 0 : await settled(lives, trial)
  await lives.killAll()
  const report = await prove(trial, reference, wild, deeds, leftBehind)
  return { ...ended([calm, wild]), report, problems: report.problems, kills: deeds.kills }
}

async function prove(
  trial: Trial,
  reference: Reference,
  place: Place,
  deeds: Deeds,
  leftBehind: number,
): Promise<Report> {
  const { kills, forMs, output, ignoreData } = trial
  const path = output === undefined ? null : join(place.files, output)
  const result = await readOutcome(place.store, path)
  return makeReport({
    reference: reference.outcome,
    referenceMs: reference.tookMs,
    result,
    differences: compare(reference.outcome, result, { ignoreData }),
    deeds,
    killsAsked: kills ?? (forMs === undefined ? KILLS : null),
    inspection: await place.store.inspect(),
    leftBehind,
  })
}

/** Waits for processes that outlive the command for a while, as those whose parent was killed. Answers how many stay. */
async function settled(lives: Lives, { interrupted }: Trial): Promise<number> {
  await until(async () => lives.remaining() === 0, {
    everyMs: LOOK_EVERY_MS,
    atMostMs: LINGER_MS,
    over: interrupted,
  })
  return lives.remaining()
}

function keptOf({ folder, databases }: Scratch, places: readonly Place[]): Kept {
  return {
    folder,
    databases,
    places: places.map(({ phase, address, store: { engine } }) => ({
      phase,
      address: engine === 'sqlite' || databases.length > 0 ? address : null,
    })),
  }
}
