import { NotFound, UsageError } from '../../model/errors.ts'
import { shortId } from '../../model/id.ts'
import type { Run } from '../../model/run.ts'
import type { Store } from '../../store/store.ts'

const HOW = '`unstuck runs` lists them.'

/** The run a person means: by its full id, or by the last 8 digits that every list shows. */
export async function findRun(store: Store, text: string): Promise<Run> {
  const id = text.toLowerCase()
  if (!/^[0-9a-f-]{8,36}$/.test(id)) {
    throw new UsageError(
      `${JSON.stringify(text)} is not the id of a run: give its last 8 digits, or all of it. ${HOW}`,
    )
  }
  const [found, another] = await store.runsEnding(id)
  if (found === undefined) throw new NotFound(`run ${text}`, HOW)
  if (another !== undefined) {
    throw new UsageError(
      `Several runs end in ${shortId(text)}, ${found} and ${another} among them. Give the full id.`,
    )
  }
  const run = await store.run(found)
  if (!run) throw new NotFound(`run ${text}`, HOW)
  return run
}
