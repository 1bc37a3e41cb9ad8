import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { CommandEntry } from '../../../contracts/command.ts'
import { shortId, type RunId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import { claimOne, enqueueCrawl, listTargets, registerWorker } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { cliCommand, unstuck, unstuckProcess } from '../../../testing/unstuck-cli.ts'
import { COMMANDS } from '../commands.ts'
import { declare, makeProgram } from '../program.ts'
import { readBashLine } from './bash-line.ts'
import { placeholderOf } from './complete.ts'
import { VALUES } from './values.ts'

/** However busy the machine is. */
const PATIENT = { UNSTUCK_COMPLETION_TIMEOUT: '10m' }
const BREAKS = ' \t\n"\'@><=;|&(:'
const folder = temporaryFolder()
after(() => folder[Symbol.dispose]())

/** Names that would run a command, or break a line, where a script takes them for more than text. */
const CANARY = join(folder.path, 'canary')
const HOSTILE = [
  `my shop's "best" of`,
  `my $(touch ${CANARY}) \`touch ${CANARY}\``,
  `my;touch ${CANARY}&|<>(){}[]*?!#~\\`,
  'my:portal=a/b',
]
const OMITTED = ['-my-dash', 'my\nline', 'my\u202Eeman']

async function fill(store: Store): Promise<{ run: RunId; failed: string; planned: string }> {
  for (const source of [...HOSTILE, ...OMITTED])
    await enqueueCrawl(store, [{ key: 'a', group: `${source} group` }], { source })
  const keys = ['a', 'b'].map((key) => ({ key, group: 'CA' }))
  const run = await enqueueCrawl(store, keys, { source: 'shop' })
  const worker = await registerWorker(store, { source: 'shop' })
  const claimed = await claimOne(store, worker, { source: 'shop' })
  await store.fail([{ ...claimed, error: 'no', becomes: 'failed' }])
  const [failed, planned] = (await listTargets(store, run)).map(({ id }) => shortId(id))
  return { run, failed: failed!, planned: planned! }
}

/** The words that complete a line, and what the shell adds to them. */
async function completed(line: string, env: NodeJS.ProcessEnv, shell = 'fish') {
  const words = shell === 'bash' ? [line, BREAKS] : line.split(' ')
  const result = await unstuck(['complete', shell, '--', ...words], {
    cwd: folder.path,
    env: { ...PATIENT, ...env },
  })
  assert.deepEqual([result.code, result.stderr], [0, ''])
  const [files, ...lines] = result.stdout.split('\n').slice(0, -1)
  return { files, values: lines.map((one) => one.split('\t')[0]!), lines }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    let database: TestDatabase
    let known: Awaited<ReturnType<typeof fill>>
    const values = async (line: string): Promise<string[]> =>
      (await completed(line, { UNSTUCK_DB: database.url })).values

    before(async () => {
      database = await engine.fresh()
      known = await fill(await database.open())
    })
    after(() => database[Symbol.asyncDispose]())

    test('sources, ids and groups are completed where a command takes them', async () => {
      const id = shortId(known.run)
      assert.deepEqual(await values('unstuck show sho'), ['shop'])
      const { lines } = await completed('unstuck show sho', { UNSTUCK_DB: database.url })
      assert.match(lines[0]!, /^shop\tsource, live run (running|interrupted)/)
      assert.deepEqual(await values(`unstuck show ${id.slice(0, 7)}`), [id])
      assert.deepEqual(await values('unstuck items sho'), ['shop'])
      assert.deepEqual(await values('unstuck items shop --run sho'), ['shop'])
      assert.deepEqual(await values('unstuck items shop --run=sho'), ['--run=shop'])
      assert.deepEqual(await values('unstuck cancel sho'), ['shop'])
      assert.deepEqual(await values('unstuck resume sho'), [], 'a live run is not resumed')
      assert.deepEqual(await values('unstuck runs --source shop my:'), [])
      assert.deepEqual(await values('unstuck targets shop --group '), ['CA'])
      assert.deepEqual(await values(`unstuck explain ${known.failed}`), [known.failed])
      assert.deepEqual(await values(`unstuck park ${known.planned}`), [known.planned])
      assert.deepEqual(await values('unstuck unpark '), [])
      assert.deepEqual(await values('unstuck reset-failed shop --target '), [known.failed])
      assert.deepEqual(await values(`unstuck --db ${database.url} show sho`), ['shop'])
    })

    test('a name of more than a word is completed as text, and an unusual one is left out', async () => {
      const offered = await values('unstuck show my')
      assert.deepEqual(offered.toSorted(), HOSTILE.toSorted())
      const all = await values('unstuck show ')
      for (const name of OMITTED) assert.ok(!all.includes(name), name)
    })
  })
}

test('commands, flags and their values are completed', async () => {
  const at = async (line: string) => completed(line, {})
  assert.deepEqual((await at('unstuck sho')).lines, [
    'show\tShow one run: facts, counts, what needs attention, and what recovery did.',
  ])
  assert.deepEqual((await at('unstuck help sho')).values, ['show'])
  assert.deepEqual((await at('unstuck journal ')).values, ['read', 'tail', 'compress'])
  assert.deepEqual((await at('unstuck journal read ')).files, 'files')
  assert.deepEqual((await at('unstuck init ')).files, 'folders')
  assert.deepEqual((await at('unstuck work ')).files, 'files')
  assert.deepEqual((await at('unstuck enqueue ')).files, 'files')
  assert.deepEqual((await at('unstuck run shop -- ')).files, 'files')
  assert.deepEqual((await at('unstuck completion ')).values, ['bash', 'zsh', 'fish'])
  assert.deepEqual((await at('unstuck init --for p')).values, ['pm2'])
  assert.deepEqual((await at('unstuck targets --status fa')).values, ['failed'])
  assert.deepEqual((await at('unstuck targets --status failed pa')).values, ['parked'])
  assert.deepEqual((await at('unstuck targets --status=fa')).values, ['--status=failed'])
  assert.deepEqual((await at('unstuck status --color n')).values, ['never'])
  const flags = (await at('unstuck status -')).values
  assert.deepEqual(flags.toSorted(), ['--color', '--db', '--debug', '--help', '--json', '--watch'])
  assert.deepEqual((await at('unstuck status --json --js')).values, [], 'it is given already')
  assert.deepEqual((await at('unstuck status -- -')).values, [])
  assert.deepEqual((await at('unstuck runs --limit ')).values, [])
  assert.deepEqual((await at('unstuck oops ')).files, 'none')
})

test('the name of every argument and value in the help says how it is completed', async () => {
  const unknown: string[] = []
  const visit = async (entries: readonly CommandEntry[], program = makeTree()): Promise<void> => {
    for (const entry of entries) {
      const sub = program.commands.find((one) => one.name() === entry.name)!
      await declare(sub)
      const named = [
        ...sub.registeredArguments.map((one) => (one.argChoices ? '' : one.name())),
        ...sub.options.map((flag) => (flag.argChoices ? '' : placeholderOf(flag))),
      ]
      unknown.push(...named.filter((name) => name !== '' && !(name in VALUES)))
      if ('commands' in entry) await visit(entry.commands, sub)
    }
  }
  await visit(COMMANDS)
  assert.deepEqual(unknown, [])
})

const makeTree = () => makeProgram(COMMANDS, process, async () => {})

test('where there is no database nothing is offered, printed or made', async () => {
  using empty = temporaryFolder()
  const call = (db: string) =>
    unstuck(['complete', 'fish', '--', 'unstuck', 'show', ''], {
      cwd: empty.path,
      env: { UNSTUCK_DB: db },
    })
  const nothing = { code: 0, stdout: 'none\n', stderr: '' }
  assert.deepEqual(await call(''), nothing)
  assert.deepEqual(await call(`sqlite:${empty.path}/sub/missing.db`), nothing)
  assert.deepEqual(await call('mysql://me:hunter2@h/x'), nothing)
  assert.deepEqual(await call('postgres://me:hunter2@127.0.0.1:1/x'), nothing)
  writeFileSync(join(empty.path, 'unstuck.config.ts'), 'export default { presett: 1 }')
  assert.deepEqual(await call(''), nothing)
  assert.deepEqual(readdirSync(empty.path), ['unstuck.config.ts'])
})

test('what a config prints is not taken for words', async () => {
  using project = temporaryFolder()
  writeFileSync(
    join(project.path, 'unstuck.config.ts'),
    `console.log('hello'); console.error('hello'); export default { db: '${db}' }`,
  )
  const words = ['complete', 'bash', '--', 'unstuck show sho', BREAKS]
  const { code, stdout } = await unstuckProcess(words, { cwd: project.path, env: PATIENT })
  assert.deepEqual([code, stdout], [0, 'none\nshop\n'])
})

test('a server that does not respond is not waited for', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  const { port } = silent.address() as { port: number }
  const env = { UNSTUCK_DB: `postgres://me@127.0.0.1:${port}/x?connect_timeout=600` }
  const words = ['complete', 'fish', '--', 'unstuck', 'show', '']
  const result = await unstuckProcess(words, { cwd: folder.path, env })
  assert.deepEqual(result, { code: 0, stdout: 'none\n', stderr: '' })
  silent.close()
})

test('a line of bash is read as text, and a value is written as the line goes on', () => {
  const read = (line: string) => readBashLine(line, BREAKS)
  const { words, current } = read(`A=1 unstuck "a \\"b" 'c d' e\\ f $(touch x)`)
  assert.deepEqual([words, current], [['unstuck', 'a "b', 'c d', 'e f', '$(touch'], 'x)'])
  const written = (line: string, value: string): string | null => read(line).insert(value)
  assert.equal(written('unstuck show my', 'my $(shop)'), 'my\\ \\$\\(shop\\)')
  assert.equal(written('unstuck show "my', 'my $(shop)'), 'my \\$(shop)')
  assert.equal(written("unstuck show 'my", 'my $(shop)'), 'my $(shop)')
  assert.equal(written("unstuck show 'my", "my 'shop'"), null)
  assert.equal(written('unstuck show "my', 'my shop!'), null)
  assert.equal(written('unstuck show my:po', 'my:portal'), 'portal')
  assert.equal(written('unstuck show my\\:po', 'my:portal'), 'my:portal')
  assert.equal(written('unstuck items --run=sh', '--run=shop'), 'shop')
  assert.equal(written('unstuck items --run="sh', '--run=shop'), 'shop')
})

/** A program `unstuck` on the path of a shell, a database with hostile names, and the script. */
async function prepareShell(shell: 'bash' | 'zsh' | 'fish') {
  const bin = join(folder.path, 'bin')
  mkdirSync(bin, { recursive: true })
  const { command, env } = cliCommand([])
  const program = join(bin, 'unstuck')
  writeFileSync(program, `#!/bin/sh\nexec ${command.map((one) => `'${one}'`).join(' ')} "$@"\n`)
  chmodSync(program, 0o755)
  const { stdout: script, code } = await unstuck(['completion', shell], { cwd: folder.path })
  assert.equal(code, 0)
  const path = join(folder.path, `completion.${shell}`)
  writeFileSync(path, script)
  const run = async (text: string): Promise<string> => {
    const given = {
      cwd: folder.path,
      env: { ...env, ...PATIENT, PATH: `${bin}:${env['PATH']}`, UNSTUCK_DB: db },
    }
    const args = { bash: ['--norc', '-c'], zsh: ['-f', '-c'], fish: ['--no-config', '-c'] }[shell]
    return (await promisify(execFile)(shell, [...args, text], given)).stdout
  }
  return { path, run }
}

let db = ''
let shells: TestDatabase
before(async () => {
  shells = await sqliteEngine.fresh()
  db = shells.url
  await fill(await shells.open())
})
after(() => shells[Symbol.asyncDispose]())

const missing = (shell: string): string | false =>
  spawnSync(shell, ['-c', 'true']).error ? `there is no ${shell}` : false

test('bash completes commands, sources and hostile names, and runs nothing', async () => {
  const { path, run } = await prepareShell('bash')
  const replies = await run(`
    source '${path}'
    reply() {
      COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
      _unstuck unstuck "" ""
      for word in "\${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
      echo .
    }
    complete -p unstuck
    reply 'unstuck sho'
    reply 'unstuck targets --status=pla'
    reply 'unstuck show $(touch ${CANARY}) sh'
    reply 'unstuck show my:po'
    reply 'unstuck show "my $'
    reply 'unstuck show my'
  `)
  const blocks = replies.split('.\n').map((block) => block.split('\n').filter(Boolean))
  assert.deepEqual(blocks.slice(0, 5), [
    ['complete -F _unstuck unstuck', 'show'],
    ['planned'],
    [],
    ['portal=a/b'],
    [`my \\$(touch ${CANARY}) \\\`touch ${CANARY}\\\``],
  ])
  assert.equal(existsSync(CANARY), false)
  // Each word stands for the name as it is, and for nothing else.
  const inserted = blocks[5]!
  const echoed = await run(inserted.map((word) => `printf '%s\\0' ${word}`).join('\n'))
  assert.deepEqual(echoed.split('\0').slice(0, -1).toSorted(), HOSTILE.toSorted())
  assert.equal(existsSync(CANARY), false)
})

test('fish completes them too', { skip: missing('fish') }, async () => {
  const { path, run } = await prepareShell('fish')
  const replies = async (line: string) =>
    (await run(`source '${path}'; complete -C '${line}'`)).split('\n').filter(Boolean)
  assert.match((await replies('unstuck sho')).join(), /^show\tShow one run/)
  assert.deepEqual(await replies('unstuck targets --status=pla'), ['--status=planned'])
  assert.equal((await replies('unstuck show my')).length, HOSTILE.length)
  assert.match((await replies('unstuck show my\\ shop')).join(), /^my/)
  await replies(`unstuck show (touch ${CANARY}) sh`)
  assert.ok((await replies('unstuck journal read ')).some((line) => line.startsWith('bin/')))
  assert.equal(existsSync(CANARY), false)
})

test('zsh completes them too', { skip: missing('zsh') }, async () => {
  const { path, run } = await prepareShell('zsh')
  // An inner zsh with a line editor; its Tab completes and prints the line.
  const buffers = async (line: string) =>
    run(`
      zmodload zsh/zpty
      zpty z zsh -f -i
      until_line() { local chunk; while zpty -r z chunk; do print -r -- $chunk; [[ $chunk == *$1* ]] && return; done }
      zpty -w z $'PS1=; stty cols 400 -echo; autoload -U compinit; compinit -u -D; source ${path}
        probe() { zle complete-word; print -r -- "BUFFER=<$BUFFER>"; zle kill-whole-line }; zle -N probe; bindkey "^I" probe
        zle-line-init() { print "REA""DY" }; zle -N zle-line-init'
      until_line READY >/dev/null
      zpty -w -n z ${JSON.stringify(line)}$'\\t'
      until_line 'BUFFER=<'
      zpty -d z
    `)
  assert.match(await buffers('unstuck sho'), /BUFFER=<unstuck show >/)
  assert.match(
    await buffers('unstuck targets --status=pla'),
    /BUFFER=<unstuck targets --status=planned >/,
  )
  assert.match(await buffers('unstuck show my:po'), /BUFFER=<unstuck show my:portal=a\/b >/)
  assert.match(
    await buffers('unstuck show my\\ s'),
    /BUFFER=<unstuck show my\\ shop\\'s\\ \\"best\\"\\ of >/,
  )
  assert.equal(existsSync(CANARY), false)
})
