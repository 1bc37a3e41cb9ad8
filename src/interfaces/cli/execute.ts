import process from 'node:process'
import { UsageError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { safeJson } from '../../lib/text/safe-text.ts'
import { findDatabaseAddress } from '../../app/address.ts'
import { configFolder } from '../../lib/files/config-file.ts'
import { loadOnce } from '../../lib/load-once.ts'
import { loadSettings } from '../../app/config.ts'
import type { Settings } from '../../contracts/settings.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { openContext } from '../../app/open-context.ts'
import { makeDatabase } from '../../app/open-database.ts'
import { makeOutput, onClosedStdout, type ColourChoice, type Streams } from './output.ts'
import { kebab, type Flags } from './program.ts'
import { watch } from './watch.ts'
import type { CliContext, Command, CommandResult, Output } from '../../contracts/command.ts'
import type { Database } from '../../contracts/database.ts'
import type { Option } from '../../contracts/options.ts'

/** Runs one command with the setup that all commands share. Returns the exit code. */
export async function execute(
  command: Command<any, any>,
  args: readonly unknown[],
  flags: Flags,
  streams: Streams,
): Promise<number> {
  const output = makeOutput((flags['color'] as ColourChoice | undefined) ?? 'auto', streams)
  const json = flags['json'] === true
  const cwd = process.cwd()
  const configured = loadOnce(() => loadSettings(cwd))
  const database = commandDatabase(flags['db'] as string | undefined, cwd, configured, (line) =>
    output.note(`[unstuck] ${line}`),
  )
  const context: CliContext<any, any> = {
    args: readArguments(command, args),
    options: readOptions(command, flags),
    json,
    database,
    settings: loadOnce(async () => withWarnings(await configured(), output)),
    openContext: async () => openContext(await database.openExisting(), context.settings),
    async openContextIfExists() {
      const store = await database.openIfExists()
      return store && openContext(store, context.settings)
    },
    output,
    async startServices(log, worker) {
      const { startServices } = await import('../../app/background-recovery.ts')
      return startServices({
        process: 'worker',
        recovers: false,
        settings: await context.settings(),
        // If nothing else has opened the store, one connection is enough.
        open: () => database.openAll({ connections: 1 }),
        worker,
        emit: () => {},
        log,
        clock: REAL_CLOCK,
      })
    },
    openDashboard: async (store, dataFolder) =>
      (await import('./commands/serve.ts')).openDashboard(store, dataFolder),
  }
  if (command.ignoresClosedPipe) onClosedStdout(true)
  try {
    if (flags['watch'] === true)
      return await watch(async () => command.run(context), { json, output })
    const result = await command.run(context)
    return typeof result === 'object' ? await print(result, json, output) : (result ?? EXIT.done)
  } finally {
    await database.close()
  }
}

/** Returns the database of a command that was called in a folder, with this `--db`. */
export function commandDatabase(
  flag: string | undefined,
  cwd: string,
  settings: () => Promise<Settings>,
  log: (line: string) => void,
): Database {
  return makeDatabase({
    locate: () =>
      findDatabaseAddress({
        flag,
        env: process.env['UNSTUCK_DB'],
        configured: async () => (await settings()).db,
        // With an address of its own, a command works without the config.
        connections: () =>
          settings().then(
            ({ connections }) => connections,
            () => undefined,
          ),
        folder: configFolder(cwd),
      }),
    settings,
    log,
  })
}

/** Only for commands that use the policies, not for those that need the address alone. */
function withWarnings(settings: Settings, output: Output): Settings {
  for (const warning of settings.warnings) output.note(`Warning: ${warning}`)
  return settings
}

async function print(result: CommandResult, json: boolean, output: Output): Promise<number> {
  if (json) {
    await output.write(`${safeJson(result.data, 2)}\n`)
  } else {
    const writer = output.makeWriter()
    result.print(writer)
    await output.write(writer.toString())
  }
  return result.exitCode ?? EXIT.done
}

function readArguments(
  command: Command<any, any>,
  args: readonly unknown[],
): Record<string, unknown> {
  return Object.fromEntries(Object.keys(command.args ?? {}).map((name, i) => [name, args[i]]))
}

/** Reports all mistakes at once. */
function readOptions(command: Command<any, any>, flags: Flags): Record<string, unknown> {
  const mistakes: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, option] of Object.entries<Option<unknown>>(command.options ?? {})) {
    const given = flags[name]
    if (given === undefined) values[name] = option.defaultValue
    else if (typeof given === 'boolean') values[name] = given
    else {
      const texts = option.many ? (given as string[]) : [given as string]
      const read = texts.flatMap((text) => {
        const one = option.parse(text)
        if ('value' in one) return one.value
        mistakes.push(`--${kebab(name)} ${one.mistake}, not ${JSON.stringify(text)}.`)
        return []
      })
      values[name] = option.many ? read : read[0]
    }
  }
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
  return values
}
