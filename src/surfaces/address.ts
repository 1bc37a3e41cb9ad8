import { addressMistake } from '../model/address.ts'
import { UsageError } from '../model/errors.ts'
import { absoluteAddress, defaultAddress } from '../runtime/config-file.ts'

type Question = {
  /** `--db` */
  readonly flag: string | undefined
  /** UNSTUCK_DB */
  readonly env: string | undefined
  /** The config's word; asked only when nothing else was said. */
  readonly configured: () => Promise<string | undefined>
  /** Where relative paths count from: the config's folder, so that cron and a shell elsewhere share one guard. */
  readonly folder: string
}

export type Located = {
  /** The path in it, if it has one, is absolute. */
  readonly address: string
  /** Who said so. */
  readonly from: '--db' | 'UNSTUCK_DB' | 'config' | 'default'
}

/** `--db`, else UNSTUCK_DB, else the config, else the default. */
export async function findAddress({ flag, env, configured, folder }: Question): Promise<Located> {
  const located = (address: string, from: Located['from']): Located => ({
    address: absoluteAddress(address, folder),
    from,
  })
  if (flag !== undefined) return located(checked('--db', flag), '--db')
  if (env) return located(checked('UNSTUCK_DB', env), 'UNSTUCK_DB')
  const address = await configured()
  if (address !== undefined) return located(address, 'config')
  return { address: defaultAddress(folder), from: 'default' }
}

function checked(from: string, address: string): string {
  const mistake = addressMistake(address)
  if (mistake) throw new UsageError(`${from} ${mistake}.`)
  return address
}
