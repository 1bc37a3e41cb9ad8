import type { Policy } from '../core/model/policy.ts'
import type { PolicyOf, PolicyOverrides, PolicySubject } from '../core/model/policy-of.ts'
import type { TextWriter } from '../lib/terminal/text-writer.ts'
import type { SourcePolicies } from '../presenters/policy-settings.ts'

/** A validated config, or the defaults if there is none. */
export type Settings = SourcePolicies & {
  /** Null: no config was found. */
  readonly path: string | null
  readonly db: string | undefined
  readonly connections: number | undefined
  readonly preset: string | null
  /** The address of the dashboard, for links. */
  readonly url: string | null
  /** Valid, but probably not intended. */
  readonly warnings: readonly string[]
  /** Values that no log may contain. */
  readonly secrets: readonly Secret[]
  /** The policies in the config, as plain JSON. */
  readonly overrides: PolicyOverrides
  /** Returns the policy that applies to a run now: the one stored with it and the overrides, which may be newer. */
  readonly policyOf: PolicyOf
  /** Names of the tables whose rows are runs. */
  readonly tables: readonly string[]
  /** Returns the validated section of a feature. */
  section<T>(section: ConfigSection<T>): T
}

/** A value that is redacted everywhere, and the setting that contains it. */
export type Secret = {
  readonly setting: string
  readonly value: string
  /** The config file may contain it: it is an address without a password. */
  readonly mayBeWritten?: boolean
}

/** A part of the config that belongs to a feature. */
export type ConfigSection<T> = {
  /** Its keys in the config file. */
  readonly keys: readonly string[]
  /** Validates the values of these keys. */
  read(values: Readonly<Record<string, unknown>>, context: ConfigContext): T
  secrets?(section: T): readonly Secret[]
  /** Tables that it defines: each is a source with a policy of its own. */
  readonly tables?: (
    section: T,
  ) => readonly { readonly name: string; readonly subject: TablePolicy }[]
  /** The section in `unstuck config show`. */
  view?(section: T, settings: Settings): Readonly<Record<string, unknown>>
  print?(section: T, settings: Settings, writer: TextWriter): void
}

export type TablePolicy = Omit<PolicySubject, 'source'>

/** All mistakes are reported at once: `read` adds to the lists and does not throw. */
export type ConfigContext = {
  readonly mistakes: string[]
  readonly warnings: string[]
  /** The defaults and the preset. */
  readonly policy: Policy
  /** The base of relative paths. */
  readonly folder: string
  readonly db: string | undefined
  /** Adds a warning if a policy fails runs early. */
  readonly warnIfRisky: (policy: Policy, setting: string) => void
}
