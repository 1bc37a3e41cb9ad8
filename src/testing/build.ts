import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix, relative, resolve } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'vite'

/**
 * `npm run build`: writes what is published to `dist`, or to the folder given. The modules of each entry point are
 * bundled, what several entry points use is in `chunks`, and nothing is minified. Of the type declarations only those
 * are there that an exported type reaches.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SRC = join(ROOT, 'src')
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist'))

/** The exports of the package. */
const EXPORTS = ['index', 'http', 'next', 'next-edge', 'crawlee', 'metrics']
/** What is started by its path: the program and its commands, a thread, and two child processes. */
const STARTED = [
  'interfaces/cli/main',
  'core/heartbeat/thread',
  'features/commands/watchdog-process',
  'features/chaos/demo/crawl',
  ...globSync('interfaces/cli/commands/*.ts', { cwd: SRC })
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => file.slice(0, -'.ts'.length)),
]

const MODEL = 'core-model'

/** Modules find files by their own URL. In a bundle they get the one that they would have without it. */
const moduleUrls: Plugin = {
  name: 'module-urls',
  transform(code, id) {
    if (!id.startsWith(SRC)) return null
    const path = relative(SRC, id).replace(/\.ts$/, '.js')
    return { code: code.replaceAll('import.meta.url', `"module-url:${path}"`), map: null }
  },
  renderChunk(code, { fileName }) {
    const urlOf = (path: string): string => `./${posix.relative(posix.dirname(fileName), path)}`
    return {
      code: code.replaceAll(
        /"module-url:([^"]+)"/g,
        (_, path: string) => `new URL("${urlOf(path)}", import.meta.url).href`,
      ),
      map: null,
    }
  },
}

/**
 * An old Node links and parses everything before it evaluates the first module, which throws one sentence about its
 * version. So names that Node got lately are read from the module when it is evaluated, not linked.
 */
const linksOnOldNodes: Plugin = {
  name: 'links-on-old-nodes',
  renderChunk(code, { fileName, isEntry, name }) {
    const linked = code.replaceAll(
      /^import \{ ([^}]+) \} from "(node:[\w/]+)";$/gm,
      (_, names: string, module: string) => {
        const namespace = module.replaceAll(/\W/g, '_')
        return `import * as ${namespace} from "${module}";\nconst { ${names.replaceAll(' as ', ': ')} } = ${namespace};`
      },
    )
    const isChecked = isEntry && EXPORTS.includes(name) && name !== 'next-edge'
    const check = posix.relative(posix.dirname(`dist/${fileName}`), 'bin/assert-runtime.js')
    return { code: isChecked ? `import "${check}";\n${linked}` : linked, map: null }
  },
}

async function bundle(): Promise<void> {
  const entries = [...EXPORTS, ...STARTED].map((name) => [name, join(SRC, `${name}.ts`)] as const)
  await build({
    configFile: false,
    logLevel: 'warn',
    root: SRC,
    plugins: [moduleUrls, linksOnOldNodes],
    ssr: { external: true },
    build: {
      ssr: true,
      outDir: OUT,
      emptyOutDir: true,
      // What an old Node can parse too.
      target: 'es2022',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(entries),
        output: {
          // Small modules that almost everything imports: one file instead of twenty.
          codeSplitting: { groups: [{ name: MODEL, test: /src\/core\/model\// }] },
          entryFileNames: '[name].js',
          // Named after the last of its modules, which imports the others.
          chunkFileNames: ({ name, moduleIds: ids }) =>
            `chunks/${name === MODEL ? name : (nameOf(ids.findLast(isOwn)) ?? name)}.js`,
        },
      },
    },
  })
}

const isOwn = (id: string): boolean => id.startsWith(SRC)

/** `core-store-open` of `src/core/store/open.ts`. */
function nameOf(module: string | undefined): string | undefined {
  return module && relative(SRC, module).replace(/\.ts$/, '').replaceAll('/', '-')
}

function writeDeclarations(): void {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-types-'))
  try {
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc')
    execFileSync(tsc, ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', folder], {
      stdio: 'inherit',
    })
    for (const file of reachableDeclarations(folder)) {
      mkdirSync(join(OUT, dirname(file)), { recursive: true })
      copyFileSync(join(folder, file), join(OUT, file))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The declarations of the exports, and those that they import. */
function reachableDeclarations(folder: string): Set<string> {
  const found = new Set(EXPORTS.map((name) => `${name}.d.ts`))
  for (const file of found) {
    const text = readFileSync(join(folder, file), 'utf8')
    for (const [, path] of text.matchAll(/(?:from|import\() ?["'](\.[^"']+)\.ts["']/g)) {
      found.add(`${join(dirname(file), path!)}.d.ts`)
    }
  }
  return found
}

await bundle()
writeDeclarations()
