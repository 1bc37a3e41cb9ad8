import { hostname } from 'node:os'
import type { RunLogReader } from '../../contracts/feature.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { UsageError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { unstuckCommand } from '../../lib/text/shell-command.ts'
import { realFolder, runFolder } from '../../lib/files/data-folder.ts'
import { readLogPage } from './log-page.ts'
import { COMMAND_STORE } from './store/store.ts'

/** The output of a run's command, if it is on this machine. */
export const COMMAND_LOG: RunLogReader = {
  async read({ dataFolder }, { id }, after, limit) {
    if (!(await realFolder(dataFolder, 'runs', id))) return null
    try {
      const { lines, next, anew } = await readLogPage(
        runFolder(dataFolder, id).logPath,
        after,
        limit,
      )
      if (next === '') return null
      return {
        lines: lines.map(({ at, stream, text }) => ({
          at,
          stream: stream === 'run' ? 'event' : stream,
          text: safeText(redact(text)),
        })),
        next,
        anew,
      }
    } catch (error) {
      if (error instanceof UsageError) return null
      throw error
    }
  },

  async explainMissing({ store }, { id }) {
    const [newest] = await (await store.extend(COMMAND_STORE)).executions(id, 1)
    if (!newest) return null
    const command = unstuckCommand('logs', [shortId(id)])
    return newest.host === hostname()
      ? `It is not in the folder of this server: call \`${command}\` where it was started.`
      : `It was kept on ${newest.host}: call \`${command}\` there.`
  },
}
