import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Reads what the package exports from the declarations that `tsc` emits. Run directly, it writes the pinned list. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const PINNED_API = join(ROOT, 'test/public-api.txt')

export const ENTRY_POINTS = ['index', 'http', 'next', 'crawlee', 'metrics'] as const

/** One exported symbol: where it is declared and its declaration as emitted, with comments. */
export type Declaration = { readonly name: string; readonly file: string; readonly text: string }

export type PublicApi = {
  readonly byEntryPoint: ReadonlyMap<string, readonly Declaration[]>
  /** Names used in exported declarations that are declared in the package and not exported. */
  readonly unexported: readonly string[]
}

type Module = {
  readonly declared: ReadonlyMap<string, string>
  /** Local name → where it comes from. */
  readonly imported: ReadonlyMap<string, { readonly file: string; readonly name: string }>
  readonly exported: ReadonlyMap<string, { readonly file: string; readonly name: string }>
}

/** Emits the declarations into a temporary folder and reads them. */
export function readPublicApi(): PublicApi {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-api-'))
  try {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const args = ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--outDir', folder]
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...args], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stdout)
    return collect(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function collect(folder: string): PublicApi {
  const modules = new Map<string, Module>()
  const moduleOf = (file: string): Module => {
    const known = modules.get(file) ?? readModule(file)
    modules.set(file, known)
    return known
  }
  const resolveName = (file: string, name: string): Declaration | null => {
    const { declared, imported, exported } = moduleOf(file)
    const text = declared.get(name)
    if (text !== undefined) return { name, file, text }
    const from = exported.get(name) ?? imported.get(name)
    return from ? resolveName(from.file, from.name) : null
  }
  const byEntryPoint = new Map<string, Declaration[]>()
  const exported = new Set<string>()
  for (const entry of ENTRY_POINTS) {
    const file = join(folder, `${entry}.d.ts`)
    const module = moduleOf(file)
    const own = [...module.declared].flatMap(([name, text]) => (/^export /m.test(text) ? name : []))
    const declarations = [...own, ...module.exported.keys()].map((name) => {
      const found = resolveName(file, name)
      if (!found) throw new Error(`${entry} exports ${name}, whose declaration is not found`)
      exported.add(`${found.file} ${found.name}`)
      return { ...found, name, file: relative(folder, found.file) }
    })
    byEntryPoint.set(
      entry,
      declarations.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    )
  }
  const unexported = new Set<string>()
  for (const { name, file, text } of [...byEntryPoint.values()].flat()) {
    const path = join(folder, file)
    const { declared, imported } = moduleOf(path)
    for (const word of codeOf(text)
      .replace(/\btypeof \w+/g, '')
      .match(/[A-Za-z_$][\w$]*/g) ?? []) {
      if (!declared.has(word) && !imported.has(word)) continue
      const found = resolveName(path, word)
      if (found && !exported.has(`${found.file} ${found.name}`))
        unexported.add(`${word} in ${name}`)
    }
  }
  return { byEntryPoint, unexported: [...unexported].toSorted() }
}

/** Splits a declaration file into its top-level statements: each begins in the first column. */
function readModule(file: string): Module {
  const declared = new Map<string, string>()
  const imported = new Map<string, { file: string; name: string }>()
  const exported = new Map<string, { file: string; name: string }>()
  let comment = ''
  for (const statement of readFileSync(file, 'utf8').split(
    /\n(?=(?:export|import|declare|type|interface)\b|\/\*\*(?!(?:(?!\*\/)[^])*\*\/\s*\|))/,
  )) {
    if (statement.startsWith('/**')) {
      const end = statement.indexOf('*/') + 2
      comment = `${statement.slice(0, end)}\n`
      if (statement.slice(end).trim() === '') continue
    }
    const text = statement.startsWith('/**') ? statement.slice(comment.length).trim() : statement
    const list = /^(import|export) (?:type )?\{([^}]*)\}(?: from '(\.[^']+)')?/.exec(text)
    const all = /^export type \* from '(\.[^']+)'/.exec(text)?.[1]
    if (all !== undefined) {
      const other = resolve(dirname(file), all).replace(/\.ts$/, '.d.ts')
      for (const [name, found] of readModule(other).declared)
        if (/^export /m.test(found)) exported.set(name, { file: other, name })
    } else if (list) {
      const [, kind, names = '', from] = list
      const target = from ? resolve(dirname(file), from).replace(/\.ts$/, '.d.ts') : file
      for (const part of names.split(',').map((name) => name.trim().replace(/^type /, ''))) {
        const [name, alias = name] = part.split(' as ')
        if (!name || (kind === 'import' && !from)) continue
        ;(kind === 'import' ? imported : exported).set(alias!, { file: target, name })
      }
    } else {
      const name =
        /^(?:export )?(?:declare )?(?:abstract )?(?:function|class|const|type|interface) ([\w$]+)/.exec(
          text,
        )?.[1]
      if (name)
        declared.set(
          name,
          `${declared.has(name) ? `${declared.get(name)}\n` : ''}${comment}${text.trim()}`,
        )
    }
    comment = ''
  }
  return { declared, imported, exported }
}

/** The declaration without comments and private members. */
export function codeOf(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^ *(?:readonly )?#private;\n/gm, '')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trim()
}

/** The list that is pinned: every export of every entry point with its declared type. */
export function formatPublicApi({ byEntryPoint }: PublicApi): string {
  return [...byEntryPoint]
    .flatMap(([entry, declarations]) => [
      `# unstuck${entry === 'index' ? '' : `/${entry}`}`,
      ...declarations.map(({ text }) => codeOf(text)),
    ])
    .join('\n\n')
    .concat('\n')
}

if (import.meta.main) writeFileSync(PINNED_API, formatPublicApi(readPublicApi()))
