import {
  defaultsTo,
  option,
  SHARED_OPTIONS,
  type OptionValues,
} from '../../../contracts/options.ts'

/** Options of `run` and `work --exec`, about one execution of a command. */
export const commandOptions = {
  dbTimeout: SHARED_OPTIONS.dbTimeout,
  killTimeout: option.duration('TIME', 'from SIGTERM to SIGKILL', 30_000),
  maxDuration: defaultsTo("the policy's maxDuration", SHARED_OPTIONS.maxDuration(undefined)),
  maxMemory: option.size(
    'SIZE',
    'end it when all its processes together use more, as in 400M',
    undefined,
  ),
  waitReady: option.flag("it is ready when it calls its API, or Node's process.send('ready')"),
  readyTimeout: option.duration('TIME', 'how long --wait-ready waits', 30_000),
  logSize: option.size('SIZE', 'of the output kept per run, in four files', 40 * 1_024 ** 2),
  keepOutput: defaultsTo(
    'all',
    option.count('N', 'how many ended runs keep their output and files', undefined, {
      max: 10_000,
    }),
  ),
  socket: option.flag('the API on a Unix socket, UNSTUCK_SOCKET, instead of a local port'),
  quiet: option.flag('keep its output, but do not show it', '-q'),
}

export type CommandOptions = OptionValues<typeof commandOptions>
