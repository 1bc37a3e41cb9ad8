/** Any schema that follows standardschema.dev v1 (Zod, Valibot, ArkType …). Copied, not imported: no dependency. */
export type StandardSchema<In = unknown, Out = In> = {
  /** The interface that every library implements. */
  readonly '~standard': {
    /** The version of the interface. */
    readonly version: 1
    /** The library's name. */
    readonly vendor: string
    /** Carries the types; not there at run time. */
    readonly types?: { readonly input: In; readonly output: Out } | undefined
    /** Returns the value, converted, or what is wrong with it. */
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>
  }
}

/** The result of a validation. */
export type SchemaResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** One thing that does not fit. */
export type SchemaIssue = {
  /** What is wrong. */
  readonly message: string
  /** Where, from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** Returns the value as the schema converts it, or what does not fit, as one sentence. */
export async function applySchema<Out>(
  schema: StandardSchema<unknown, Out>,
  value: unknown,
): Promise<{ value: Out } | { mistake: string }> {
  const result = await schema['~standard'].validate(value)
  if (!result.issues) return { value: result.value }
  const mistakes = result.issues.map(({ message, path = [] }) => {
    const keys = path.map((key) => String(typeof key === 'object' ? key.key : key))
    return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
  })
  return { mistake: mistakes.join('; ') }
}

export function isSchema(value: unknown): boolean {
  const standard = (value as Partial<StandardSchema> | null | undefined)?.['~standard']
  return typeof standard === 'object' && typeof standard?.validate === 'function'
}
