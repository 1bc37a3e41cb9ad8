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

/** `--db`, else UNSTUCK_DB, else the config, else the default. The path in it, if it has one, is absolute. */
export async function findAddress({ flag, env, configured, folder }: Question): Promise<string> {
  if (flag !== undefined) return absoluteAddress(checked('--db', flag), folder)
  if (env) return absoluteAddress(checked('UNSTUCK_DB', env), folder)
  return absoluteAddress((await configured()) ?? DEFAULT_ADDRESS, folder)
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
