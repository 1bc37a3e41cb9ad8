import { UsageError } from '../model/errors.ts'
import { absoluteAddress } from '../runtime/config-file.ts'

const DEFAULT_ADDRESS = 'sqlite:.unstuck/unstuck.db'

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
  return address === undefined ? located(DEFAULT_ADDRESS, 'default') : located(address, 'config')
}

/** What is wrong with an address, or null. Never repeats it: it may hold a password. */
export function addressMistake(address: string): string | null {
  if (/^sqlite:\/\/[^/]/.test(address)) return 'has two slashes after sqlite:; write sqlite:PATH'
  if (/^(postgres(ql)?:\/\/|sqlite:)./.test(address)) return null
  const isFile = /^[^:@]+\.(db|sqlite3?)$/.test(address)
  const hint = isFile ? `; did you mean sqlite:${address}?` : ', as in sqlite:.unstuck/unstuck.db'
  return `must be sqlite:PATH or postgres://HOST/NAME${hint}`
}

function checked(from: string, address: string): string {
  const mistake = addressMistake(address)
  if (mistake) throw new UsageError(`${from} ${mistake}.`)
  return address
}
