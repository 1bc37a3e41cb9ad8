import { loadSettings } from '../../app/config.ts'
import { addFeatureRuns } from '../../app/open-database.ts'
import { UsageError } from '../../core/model/errors.ts'
import { checkCall } from '../../core/model/fields.ts'
import { newId } from '../../core/model/id.ts'
import { DEFAULT_POLICY, makePolicy } from '../../core/model/policy.ts'
import { openStore } from '../../core/store/open.ts'
import { databaseAddress } from '../../lib/files/config-file.ts'
import { FIELDS } from './option-fields.ts'
import type { OpenOptions } from './options.ts'
import type { Unstuck } from './types.ts'
import { UnstuckClient } from './unstuck.ts'

/**
 * Opens Unstuck in your own code, with the policies and tables of the config.
 * @throws {UsageError} with every problem of the options and the config.
 * @throws {DatabaseError}
 * @example await using unstuck = await open()
 */
export async function open(options: OpenOptions = {}): Promise<Unstuck> {
  checkCall('open()', options, FIELDS.open)
  const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
  if (mistakes.length > 0)
    throw new UsageError(`open() cannot use this policy: ${mistakes.join('; ')}.`)
  const { onEvent, signal, signals = true } = options
  const log = (line: string): void => void options.log?.(line)
  signal?.throwIfAborted()
  const settings = await loadSettings(process.cwd(), options.config)
  const db = databaseAddress(options.db, settings)
  const worker = newId()
  const ownStore = await openStore(db, { writer: worker })
  const store = await addFeatureRuns(ownStore, {
    settings,
    address: db,
    log: (message) => {
      onEvent?.({ type: 'store_error', message })
      log(message)
    },
  })
  const policyOptions = options.policy ?? {}
  const own = { ownStore, db, worker, policy, policyOptions, onEvent, log, signals }
  const client = new UnstuckClient(store, settings, own)
  if (!signal?.aborted) return client
  await client.close()
  throw signal.reason
}
