import type { ResolvedAddress } from '../contracts/database.ts'
import { addressMistake, withConnections } from '../lib/files/database-address.ts'
import { UsageError } from '../core/model/errors.ts'
import { absoluteAddress, defaultAddress } from '../lib/files/config-file.ts'

type AddressSources = {
  /** `--db` */
  readonly flag: string | undefined
  /** UNSTUCK_DB */
  readonly env: string | undefined
  /** The config's address; called only if there is no other. */
  readonly configured: () => Promise<string | undefined>
  /** PostgreSQL: the config's `connections`. */
  readonly connections?: () => Promise<number | undefined>
  /** The base of relative paths: the config's folder, so that cron and a shell in another folder share one database. */
  readonly folder: string
}

/** `--db`, else UNSTUCK_DB, else the config, else the default. */
export async function findDatabaseAddress(sources: AddressSources): Promise<ResolvedAddress> {
  const { address, from } = await chooseAddress(sources)
  const connections = address.startsWith('sqlite:') ? undefined : await sources.connections?.()
  return { address: withConnections(absoluteAddress(address, sources.folder), connections), from }
}

async function chooseAddress({
  flag,
  env,
  configured,
  folder,
}: AddressSources): Promise<ResolvedAddress> {
  if (flag !== undefined) return { address: checkAddress('--db', flag), from: '--db' }
  if (env) return { address: checkAddress('UNSTUCK_DB', env), from: 'UNSTUCK_DB' }
  const address = await configured()
  return address === undefined
    ? { address: defaultAddress(folder), from: 'default' }
    : { address, from: 'config' }
}

function checkAddress(from: string, address: string): string {
  const mistake = addressMistake(address)
  if (mistake) throw new UsageError(`${from} ${mistake}.`)
  return address
}
