import { fileURLToPath } from 'node:url'
import {
  API,
  SymbolFlags,
  type Checker,
  type Project,
  type Symbol,
  type Type,
} from 'typescript/unstable/sync'

/** Makes the JSON schemas of the responses from `presenters/responses.ts`: its types, with their comments. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CONFIG = `${ROOT}tsconfig.build.json`
const SOURCE = `${ROOT}src/presenters/responses.ts`

type Json = Record<string, unknown>

export type ResponseSchemas = {
  /** The schema of each response by its name in `Responses`. */
  readonly responses: Readonly<Record<string, Json>>
  /** The exported types that these refer to. */
  readonly definitions: Readonly<Record<string, Json>>
}

export function readResponseSchemas(): ResponseSchemas {
  const api = new API({ cwd: ROOT })
  try {
    const snapshot = api.updateSnapshot({ openProjects: [CONFIG] })
    return new SchemaWriter(snapshot.getProject(CONFIG)!).write()
  } finally {
    api.close()
  }
}

class SchemaWriter {
  readonly #project: Project
  readonly #checker: Checker
  /** Exported types that are objects, by name. */
  readonly #named = new Map<string, Type>()
  readonly #written = new Map<string, Json>()

  constructor(project: Project) {
    this.#project = project
    this.#checker = project.checker
  }

  write(): ResponseSchemas {
    const checker = this.#checker
    const module = checker.getSymbolAtLocation(this.#project.program.getSourceFile(SOURCE)!)!
    let responses: Type | undefined
    for (const symbol of checker.getExportsOfModule(module)) {
      const isAlias = (symbol.flags & SymbolFlags.Alias) !== 0
      const declared = isAlias ? checker.getAliasedSymbol(symbol) : symbol
      const type = checker.getDeclaredTypeOfSymbol(declared)
      if (symbol.name === 'Responses') responses = type
      else if (type.getAliasTypeArguments().length === 0 && this.#isObject(type))
        this.#named.set(symbol.name, type)
    }
    const properties = checker
      .getPropertiesOfType(responses!)
      .map((symbol) => [symbol.name, this.#typeSchema(checker.getTypeOfSymbol(symbol)!)])
    return {
      responses: Object.fromEntries(properties),
      definitions: Object.fromEntries([...this.#written].sort(([a], [b]) => (a < b ? -1 : 1))),
    }
  }

  #typeSchema(type: Type, written = ''): Json {
    const name = type.getAliasSymbol()?.name ?? ''
    if (this.#named.get(name)?.id === type.id) {
      if (!this.#written.has(name)) {
        this.#written.set(name, {})
        this.#written.set(name, this.#objectSchema(type))
      }
      return { $ref: `#/components/schemas/${name}` }
    }
    const checker = this.#checker
    switch (checker.typeToString(type)) {
      case 'unknown':
        return {}
      case 'string':
        return /\bTimestamp\b/.test(written)
          ? { type: 'string', format: 'date-time' }
          : { type: 'string' }
      // Rates are fractions; all other numbers are counts, ids and times.
      case 'number':
        return { type: /\bRate\b/.test(written) ? 'number' : 'integer' }
      case 'boolean':
        return { type: 'boolean' }
      case 'null':
        return { type: 'null' }
    }
    if (type.isUnionType()) return this.#unionSchema(type.getTypes(), written)
    if (type.isLiteralType()) return { enum: [type.value], type: typeof type.value }
    if (checker.isArrayType(type) && type.isTypeReference())
      return { type: 'array', items: this.#typeSchema(checker.getTypeArguments(type)[0]!) }
    return this.#objectSchema(type)
  }

  #unionSchema(types: readonly Type[], written: string): Json {
    const given = types.filter((type) => type !== this.#checker.getUndefinedType())
    const literals = given.filter((type) => type.isLiteralType())
    const strings = literals.filter((type) => type.isStringLiteralType())
    const others = given.filter((type) => !type.isLiteralType())
    const isBoolean = literals.length - strings.length === 2
    const schemas = [
      ...(strings.length > 0 ? [{ enum: strings.map(({ value }) => value), type: 'string' }] : []),
      ...(isBoolean ? [{ type: 'boolean' }] : []),
      ...others.map((type) => this.#typeSchema(type, written)),
    ]
    if (!isBoolean && literals.length > strings.length)
      schemas.push({ enum: [true], type: 'boolean' })
    return schemas.length === 1 ? schemas[0]! : { anyOf: schemas }
  }

  #objectSchema(type: Type): Json {
    const checker = this.#checker
    const properties = checker.getPropertiesOfType(type)
    const [index] = checker.getIndexInfosOfType(type)
    const isOptional = (symbol: Symbol): boolean => (symbol.flags & SymbolFlags.Optional) !== 0
    const comment = type.getAliasSymbol()?.getDocumentationComment(checker)
    return {
      type: 'object',
      ...(comment && { description: comment }),
      ...(properties.length > 0 && {
        properties: Object.fromEntries(properties.map((one) => [one.name, this.#property(one)])),
        required: properties.filter((one) => !isOptional(one)).map(({ name }) => name),
      }),
      ...(index && { additionalProperties: this.#typeSchema(index.valueType) }),
    }
  }

  #property(symbol: Symbol): Json {
    const declaration = symbol.declarations[0]?.resolve(this.#project)
    const written = declaration && 'type' in declaration ? textOf(declaration.type) : ''
    const schema = this.#typeSchema(this.#checker.getTypeOfSymbol(symbol)!, written)
    const description = symbol.getDocumentationComment(this.#checker)
    return { ...schema, ...(description && { description }) }
  }

  #isObject(type: Type): boolean {
    return type.isObjectType() || type.isIntersectionType()
  }
}

function textOf(node: unknown): string {
  return (node as { getText?(): string }).getText?.() ?? ''
}
