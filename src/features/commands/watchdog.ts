import { fork, type ChildProcess } from 'node:child_process'
import type { Claim } from '../../core/model/claim.ts'
import { EXIT, UnstuckError } from '../../core/model/errors.ts'
import type { CaretakerOptions } from '../../core/heartbeat/service.ts'
import type { FromCaretaker } from '../../core/heartbeat/message-service.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { SignsOfLife, type LifeHost } from '../../core/heartbeat/client.ts'
import { endTree } from '../../core/host/end-tree.ts'
import type {
  CommandSpec,
  FromGuardian,
  FromWard,
  ToGuardian,
  WardEnd,
} from './watchdog-messages.ts'
import type { Tracking } from './start-tagged.ts'

/** How a command is heard while it runs. */
export type CommandHost = {
  onMemory(bytes: number): void
  /** It has ended by itself; what it left behind is being ended. */
  onExit(): void
  onReady(): void
  /** It runs, and its processes are found in this way. */
  onTracked(tracking: Tracking): void
  log(message: string): void
}

/** A command in the guardian's care, seen from Unstuck. */
export type Charge = {
  /** Resolves when every process of it is gone; rejects with `CommandRefused` when it could not be started. */
  readonly over: Promise<WardEnd>
  end(now: boolean): void
  /** Its run has ended before it did. */
  settled(): void
  /** Its run was claimed again. */
  claimed(claim: Claim): void
}

/** The program is not there, or may not be executed. */
export class CommandRefused extends UnstuckError {
  constructor(command: string, code: string, text: string) {
    const isMissing = code === 'ENOENT'
    super(
      'E_COMMAND',
      isMissing ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE,
      isMissing
        ? `There is no program ${JSON.stringify(command)} (or no such working folder). Check the name and the PATH; after -- comes the program itself, not a shell line.`
        : `${JSON.stringify(command)} could not be started: ${text}. Check that it may be executed.`,
    )
  }
}

/** Nobody holds the source any more, and nobody looks after the command but us. */
export class GuardianLost extends UnstuckError {
  constructor(how: string) {
    super('E_GUARDIAN', EXIT.failed, `The guardian process ${how}.`)
  }
}

/** As shells say it. */
const COMMAND_NOT_FOUND = 127
const COMMAND_NOT_EXECUTABLE = 126

/** Unstuck's side of the guardian: the process that beats for it and holds its commands. */
export class Guardian {
  readonly life: SignsOfLife
  readonly #process: ChildProcess
  readonly #charges = new Map<string, { spec: CommandSpec; host: CommandHost; over: Settle }>()
  readonly #ended = Promise.withResolvers<void>()
  #heard: (message: FromCaretaker) => void = () => {}
  #isGone = false

  constructor(db: string, caretaker: CaretakerOptions, host: LifeHost) {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const guardian = fork(new URL(`./watchdog-process.${extension}`, import.meta.url), {
      // Out of reach of what is sent to Unstuck's own group.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#process = guardian
    guardian.on('message', (message: FromGuardian) => this.#hear(message))
    this.life = new SignsOfLife(
      {
        tell: (message) => this.#tell(message),
        listen: (heard, ended) => {
          this.#heard = heard
          const gone = (how: string): void => {
            this.#isGone = true
            this.#orphan()
            this.#ended.resolve()
            ended(new GuardianLost(how))
          }
          guardian.once('exit', (code, signal) => gone(`ended (${signal ?? `exit code ${code}`})`))
          guardian.on('error', (error) => {
            // One that never started has no exit either.
            if (guardian.pid === undefined) gone(`could not be started: ${error.message}`)
          })
        },
        // It is always stopped by hand: a program that wraps a command does not just run out of things to do.
        ref: () => {},
        unref: () => {},
      },
      caretaker,
      host,
    )
    this.#tell({ type: 'begin', db, caretaker })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  run(spec: CommandSpec, host: CommandHost): Charge {
    const over = Promise.withResolvers<WardEnd>()
    this.#charges.set(spec.id, { spec, host, over })
    if (this.#isGone) this.#orphan()
    else this.#tell({ type: 'run', spec })
    return {
      over: over.promise,
      end: (now) => this.#tell({ type: 'end', id: spec.id, now }),
      settled: () => this.#tell({ type: 'settled', id: spec.id }),
      claimed: (claim) => this.#tell({ type: 'claimed', id: spec.id, claim }),
    }
  }

  /** Lets go of the presence. The guardian ends by itself. */
  async stop(): Promise<void> {
    await this.life.stop()
    await this.#ended.promise
  }

  #hear(message: FromGuardian): void {
    switch (message.type) {
      case 'refused':
      case 'tracked':
      case 'exited':
      case 'ready':
      case 'memory':
      case 'stubborn':
      case 'over':
        return this.#hearOfCharge(message)
      default:
        return this.#heard(message)
    }
  }

  #hearOfCharge(message: FromWard): void {
    const charge = this.#charges.get(message.id)
    if (!charge) return
    const { spec, host, over } = charge
    switch (message.type) {
      case 'tracked':
        return host.onTracked(message.tracking)
      case 'exited':
        return host.onExit()
      case 'ready':
        return host.onReady()
      case 'memory':
        return host.onMemory(message.bytes)
      case 'stubborn':
        return host.log(`killed, but still there: processes ${message.pids.join(', ')}`)
      case 'refused':
        this.#charges.delete(message.id)
        return over.reject(new CommandRefused(spec.command[0]!, message.code, message.text))
      case 'over':
        this.#charges.delete(message.id)
        return over.resolve(message)
    }
  }

  /** The guardian died: its commands have nobody who would end them but us. */
  #orphan(): void {
    for (const [id, { spec, over }] of this.#charges) {
      this.#charges.delete(id)
      const roots = { cookie: spec.cookie, execution: id }
      void endTree(roots, { killTimeoutMs: 0, clock: REAL_CLOCK }).then(
        (killed) => over.resolve({ ...UNKNOWN_END, killed }),
        over.reject,
      )
    }
  }

  #tell(message: ToGuardian): void {
    if (this.#process.connected) this.#process.send(message, () => {})
  }
}

type Settle = PromiseWithResolvers<WardEnd>

const UNKNOWN_END: WardEnd = {
  exitCode: null,
  signal: 'SIGKILL',
  oomKills: 0,
  artifacts: 0,
  peakMemory: null,
  killed: 0,
}
