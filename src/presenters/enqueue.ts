import { UsageError } from '../core/model/errors.ts'
import { newId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import { checkSource } from '../core/model/source.ts'
import type { Store } from '../core/store/store.ts'
import type { SourcePolicies } from './policy-origin.ts'

/** It is passed in an environment variable, whose limit on Linux is 128 KB. */
const INPUT_MAX = 100_000

/** Queues a run of a command's source. `input`: any JSON, for its command. */
export async function enqueueSource(
  store: Store,
  settings: SourcePolicies,
  source: string,
  input: unknown,
): Promise<Run> {
  checkSource(source)
  if (Buffer.byteLength(JSON.stringify(input) ?? '') > INPUT_MAX) {
    throw new UsageError(
      'The input is larger than 100 KB. Put it into a file, and its path into the input.',
    )
  }
  const id = newId()
  await store.enqueue({ id, source, kind: 'single', policy: settings.policyFor(source), input })
  return (await store.run(id))!
}
