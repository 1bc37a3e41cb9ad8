import { humanizeDuration } from '../../../core/model/time.ts'
import { pollUntil } from './pause.ts'
import type { Deploy, ScenarioContext } from './scenario-context.ts'

const TIMEOUT_MS = 20_000

/** SIGTERM to all at once, as a deploy does it; then the new ones go on. */
export async function deploy(context: ScenarioContext): Promise<Deploy> {
  const { workerPool, reporter, over, snapshot } = context
  const event = reporter.start('deploy, SIGTERM to all', 'each finishes the page in hand …')
  reporter.markAll('leaving')
  const asked = performance.now()
  const { finished } = await workerPool.deploy()
  const ended = performance.now()
  const stopped = `stopped in order after ${humanizeDuration(ended - asked)}`
  if (finished) {
    event.end(`${stopped}, with all work done`)
    return { stoppedMs: ended - asked, backMs: null }
  }
  const isBack = async (): Promise<boolean> => (await snapshot()).held.size > 0
  const back = await pollUntil(isBack, { everyMs: 25, timeoutMs: TIMEOUT_MS, signal: over })
  const backMs = back ? performance.now() - ended : null
  event.end(
    backMs === null
      ? stopped
      : `${stopped}; the new ones went on ${humanizeDuration(backMs)} later`,
  )
  return { stoppedMs: ended - asked, backMs }
}
