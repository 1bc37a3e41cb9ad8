import { Cron } from 'croner'
import { messageOf, UsageError } from '../../../core/model/errors.ts'

/** How long until the next time that a crontab line names; null without one. */
export function makeSchedule(
  expression: string | undefined,
  timezone: string | undefined,
): () => number | null {
  if (expression === undefined) {
    if (timezone !== undefined) throw new UsageError('--timezone goes with --cron.')
    return () => null
  }
  const cron = parse(expression, timezone)
  return () => {
    const next = cron.nextRun()
    // Croner rounds down to whole seconds: never the same moment twice.
    return next === null ? null : Math.max(1, next.getTime() - Date.now())
  }
}

function parse(when: string, timezone: string | undefined): Cron {
  try {
    const cron = new Cron(when, { paused: true, ...(timezone !== undefined && { timezone }) })
    if (cron.nextRun() !== null) return cron
  } catch (error) {
    throw new UsageError(
      `--cron ${JSON.stringify(when)} cannot be read: ${messageOf(error)}. Five fields, as in '0 3 * * *': minute, hour, day, month, weekday.`,
      { cause: error },
    )
  }
  throw new UsageError(`--cron ${JSON.stringify(when)} names no time that is still to come.`)
}
