import { inWords } from '../../../core/model/time.ts'
import { until } from './pause.ts'
import type { Deploy, Stage } from './scenario-context.ts'

const PATIENCE_MS = 20_000

/** SIGTERM to all at once, as a deploy does it; then the new ones go on. */
export async function deploy(stage: Stage): Promise<Deploy> {
  const { crew, narrator, over, look } = stage
  const event = narrator.begin('deploy, SIGTERM to all', 'each finishes the page in hand …')
  narrator.markAll('leaving')
  const asked = performance.now()
  const { finished } = await crew.deploy()
  const ended = performance.now()
  const stopped = `stopped in order after ${inWords(ended - asked)}`
  if (finished) {
    event.end(`${stopped}, with all work done`)
    return { stoppedMs: ended - asked, backMs: null }
  }
  const isBack = async (): Promise<boolean> => (await look()).held.size > 0
  const back = await until(isBack, { everyMs: 25, atMostMs: PATIENCE_MS, over })
  const backMs = back ? performance.now() - ended : null
  event.end(backMs === null ? stopped : `${stopped}; the new ones went on ${inWords(backMs)} later`)
  return { stoppedMs: ended - asked, backMs }
}
