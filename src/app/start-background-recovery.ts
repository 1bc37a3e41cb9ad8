import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../core/model/errors.ts'
import type { UnstuckEvent } from '../core/model/event.ts'
import { describeEvent } from '../presenters/event.ts'
import { safeText } from '../lib/text/safe-text.ts'
import { BackgroundRecovery } from './background-recovery.ts'
import { REAL_CLOCK, type Clock } from '../core/host/clock.ts'
import { databaseAddress } from '../lib/files/config-file.ts'
import type { Store } from '../core/store/store.ts'
import { loadSettings } from './config.ts'
import { openAll } from './open-database.ts'
import { startServices } from './start-services.ts'
import { recoverOnStart, type RecoverOnStartOptions } from './recover-on-start.ts'

/** Options of `register`. */
export type BackgroundRecoveryOptions = RecoverOnStartOptions & {
  /** Keep recovering while the process lives; `false`: only at its start. @default true */
  monitor?: boolean | undefined
}

/**
 * For a server that nobody tells when it ends: recovers what is dead at its start, then looks after workers, runs and
 * adopted tables and sends alerts for as long as the process lives. Never throws, and keeps no process from ending.
 */
export async function startBackgroundRecovery(
  options: BackgroundRecoveryOptions = {},
): Promise<void> {
  const { monitor = true, ...atStart } = options
  const { db, config, dryRun = false, log = toStdout } = atStart
  const { error } = await recoverOnStart({ ...atStart, log })
  if (!monitor || dryRun) return
  const logSafely = (line: string): void => void Promise.try(() => log(line)).catch(() => {})
  try {
    const settings = await loadSettings(process.cwd(), config)
    const address = databaseAddress(db, settings)
    const emit = (event: UnstuckEvent): void => {
      const text = describeEvent(event)
      if (text !== null) logSafely(text)
    }
    let store: Promise<Store> | undefined
    const open = (): Promise<Store> =>
      (store ??= openAll({ settings, address, log: logSafely }, { connections: 1 }).catch(
        (failure: unknown) => {
          // The next call tries again.
          store = undefined
          throw failure
        },
      ))
    const backgroundRecovery = new BackgroundRecovery(
      address,
      settings.overrides,
      emit,
      UNREF_CLOCK,
    )
    backgroundRecovery.start()
    await startServices({
      process: 'server',
      recovers: true,
      settings,
      open,
      worker: () => backgroundRecovery.worker,
      emit,
      log: logSafely,
      clock: UNREF_CLOCK,
    })
  } catch (failure) {
    // A config that cannot be used was told of by the recovery at the start.
    if (messageOf(failure) !== error?.message)
      logSafely(`nobody is looked after: ${messageOf(failure)}`)
  }
}

/** A pause that nobody waits for does not keep a server alive that has closed. */
const UNREF_CLOCK: Clock = {
  ...REAL_CLOCK,
  sleep: async (ms, wake) => {
    const options = { ref: false, ...(wake && { signal: wake }) }
    await sleep(Math.max(0, ms), undefined, options).catch(() => {})
  },
}

function toStdout(line: string): void {
  process.stdout.write(`[unstuck] ${safeText(line)}\n`)
}
