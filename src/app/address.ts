import { addressMistake, withConnections } from '../core/model/address.ts'
import { UsageError } from '../core/model/errors.ts'
import { absoluteAddress, defaultAddress } from './config-file.ts'

type Question = {
  /** `--db` */
  readonly flag: string | undefined
  /** UNSTUCK_DB */
  readonly env: string | undefined
  /** The config's word; asked only when nothing else was said. */
  readonly configured: () => Promise<string | undefined>
  /** PostgreSQL: the config's `connections`. */
  readonly connections?: () => Promise<number | undefined>
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
export async function findAddress(question: Question): Promise<Located> {
  const { address, from } = await choose(question)
  const connections = address.startsWith('sqlite:') ? undefined : await question.connections?.()
  return { address: withConnections(absoluteAddress(address, question.folder), connections), from }
}

async function choose({ flag, env, configured, folder }: Question): Promise<Located> {
  if (flag !== undefined) return { address: checked('--db', flag), from: '--db' }
  if (env) return { address: checked('UNSTUCK_DB', env), from: 'UNSTUCK_DB' }
  const address = await configured()
  return address === undefined
    ? { address: defaultAddress(folder), from: 'default' }
    : { address, from: 'config' }
}

function checked(from: string, address: string): string {
  const mistake = addressMistake(address)
  if (mistake) throw new UsageError(`${from} ${mistake}.`)
  return address
}
