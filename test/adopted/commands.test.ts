import assert from 'node:assert/strict'
import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runUserSql } from '../../src/testing/user-tables.ts'
import { createUserProject, minutesAgo } from '../../src/testing/user-project.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'

/** What `run` of a list has as its id, by the row that it is. */
function idOf(items: readonly any[], key: string): string {
  return items.find(({ origin }) => origin.key === key).id
}

test('every read and operator command works on adopted rows, and writes only their mapped statuses', async () => {
  using project = await createUserProject()
  const { folder: cwd } = project
  const json = async (args: string[], code = 0): Promise<any> => {
    const said = await unstuck([...args, '--json'], { cwd })
    assert.equal(said.code, code, `${args.join(' ')}: ${said.stdout}${said.stderr}`)
    return JSON.parse(code === 1 ? said.stderr : said.stdout)
  }
  const [tenders, courses] = [await project.tenders(), await project.courses()]

  for (const verb of ['pause', 'run-now']) {
    const { error } = await json([verb, 'portal-a'], 1)
    assert.match(error.message, /^portal-a is in the table tenders, which your own programs work/)
  }

  // Unstuck's own database is made by the first look: there is something to look at.
  const { items, next } = await json(['runs', '--limit', '3'])
  assert.deepEqual(
    items.map(({ source, status, origin }: any) => [source, status, origin.table, origin.key]),
    [
      ['portal-b', 'running', 'tenders', '2'],
      ['portal-a', 'running', 'tenders', '1'],
      ['portal-a', 'succeeded', 'tenders', '3'],
    ],
  )
  const [stale, young] = [idOf(items, '1'), idOf(items, '2')]
  const looks = await Promise.all([
    json(['runs', '--after', next]),
    json(['status'], 3),
    json(['summary'], 3),
    json(['check', 'portal-b'], 5),
    json(['show', stale.slice(-8)]),
    json(['recover', '--dry-run'], 3),
    unstuck(['explain', stale], { cwd }),
  ])
  const [rest, status, summary, check, shown, planned, explained] = looks
  const dead = idOf(rest.items, 'c-1')
  assert.deepEqual([rest.items.length, rest.next], [1, null])
  assert.deepEqual(
    status.runs.map(({ origin: { key }, health }: any) => [key, health]),
    [
      ['1', 'orphaned'],
      ['c-1', 'dead'],
      ['2', 'healthy'],
    ],
  )
  assert.deepEqual(
    [summary.active.length, summary.resumable.length, summary.dead.map(({ id }: any) => id)],
    [2, 0, [dead]],
  )
  assert.deepEqual([check.action, check.run.id], ['wait', young])
  assert.deepEqual([shown.run.id, shown.run.origin], [stale, { table: 'tenders', key: '1' }])
  assert.deepEqual(
    planned.verdicts.map(({ run, action, outcome }: any) => [run, action, outcome]),
    [
      [stale, 'fail', 'planned'],
      [dead, 'abandon', 'needs-attention'],
    ],
  )
  assert.match(explained.stdout, /It is row 1 of tenders\.[^]*No owner is known/)
  assert.deepEqual(await project.tenders(), tenders, 'who looks changes nothing')

  const recovered = await json(['recover', '--yes'], 3)
  const cleaned = await json(['clean', '--yes'])
  const [failed, ...others] = await project.tenders()
  assert.deepEqual([recovered.applied, cleaned.cleaned.length], [1, 1])
  assert.deepEqual({ ...failed, completed_at: null }, { ...tenders[0], status: 'failed' })
  assert.ok(failed!['completed_at'] > failed!['started_at'])
  assert.deepEqual(others, tenders.slice(1), 'the young one and the ended one are as they were')
  const [course] = await project.courses()
  assert.equal(course!['status'], 'Timeout - Auto-cleaned')
  assert.match(course!['error'], /^Unstuck: .*no progress and no checkpoint/)

  const [retried, deleted] = await Promise.all([
    json(['retry', stale], 1),
    json(['clean', '--delete', dead, '--confirm', `delete ${dead.slice(-8)}`], 1),
  ])
  assert.match(
    retried.error.message,
    /row 1 of tenders.*map adopted\.tenders\.statuses\.queued in the config/,
  )
  assert.match(
    deleted.error.message,
    /Rows of courses are not deleted: set adopted\.courses\.delete/,
  )

  await json(['revert', stale])
  await json(['revert', dead])
  const history = await json(['history'])
  assert.deepEqual(await project.tenders(), tenders, 'exactly what stood there')
  assert.deepEqual(await project.courses(), courses)
  assert.deepEqual(
    history.items.map(({ action, run }: any) => [action, run]),
    [
      ['revert', dead],
      ['revert', stale],
      ['abandon', dead],
      ['fail', stale],
    ],
  )
  const again = await json(['recover', '--yes'])
  assert.equal(again.applied, 0, 'nothing automatic ends what a person took back')
})

test('no action is offered or announced that needs an unmapped status', async () => {
  using project = await createUserProject()
  const config = join(project.folder, 'unstuck.config.ts')
  const words = "statuses: { active: 'running', failed: 'failed' }"
  const checkpoint = 'checkpoint: (row) => (row.id === 1 ? `at-${row.id}.json` : null)'
  writeFileSync(
    config,
    readFileSync(config, 'utf8').replace(
      '...tenderRuns.options.sqlite,',
      `...tenderRuns.options.sqlite, policy: { staleAfter: '5m', onStale: 'keep' }, ${words}, ${checkpoint},`,
    ),
  )
  writeFileSync(join(project.folder, 'at-1.json'), '{"page":3}')
  utimesSync(join(project.folder, 'at-1.json'), minutesAgo(10), minutesAgo(10))
  const { folder: cwd } = project
  const say = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await unstuck(args, { cwd, env: { COLUMNS: '200' } })
    return `${stdout}${stderr}`
  }
  const { items } = JSON.parse(await say('runs', '--json'))
  const kept = idOf(items, '1').slice(-8)
  const dead = idOf(items, 'c-1').slice(-8)
  const [dryRun, clean, check, summary, judged, explained, workers, shown] = await Promise.all([
    say('cancel', kept, '--dry-run'),
    say('clean', kept, '--yes'),
    say('check', 'portal-b'),
    say('summary'),
    say('summary', '--json'),
    say('explain', kept),
    say('workers'),
    say('config', 'show'),
  ])
  const { resumable, dead: deadOnes } = JSON.parse(judged)
  assert.match(
    dryRun,
    /No status is mapped for cancel on a run of tenders: map adopted\.tenders\.statuses\.cancelled/,
  )
  assert.match(clean, /`unstuck fail tenders:1` ends it whatever it is/)
  assert.match(check, /^wait: A process may be working on it\.\nportal-b: no owner is known;/)
  assert.match(summary, /Resumable: continue when your own program takes them up\n/)
  assert.match(summary, /^1 {4}portal-a \(tenders\).* yes /m)
  assert.deepEqual(
    [...resumable, ...deadOnes].map(({ checkpoint }: any) => checkpoint),
    [{ page: 0, pageTarget: null }, null],
  )
  assert.match(explained, /It has a checkpoint or an output file/)
  assert.match(workers, /^No worker runs\. Start one with `unstuck work crawl\.ts`\.\n/)
  assert.match(shown, /\nTable tenders\n/)

  assert.match(
    await say('clean', '--yes'),
    new RegExp(`1 run marked as ended[^]*run courses:c-1 of maths`),
  )
  assert.match(await say('revert', dead), /To end it again: `unstuck cancel/)
  await runUserSql(project.app, `UPDATE runs SET started_at = '2020-01-01 00:00:00' WHERE id = 2`)
  const young = idOf(items, '2').slice(-8)
  assert.match(await say('clean', young, '--yes'), /1 run marked as ended/)
  const reverted = await say('revert', young)
  assert.match(reverted, /To end it again: `unstuck fail tenders:2`/)
  assert.doesNotMatch(reverted, /`unstuck cancel/)
  assert.match(
    await say('explain', young),
    /It is not ended automatically until it has made progress\./,
  )
})

test('a verdict blocked by an unmapped status is reported with that reason by every command, and never advised', async () => {
  using project = await createUserProject()
  const config = join(project.folder, 'unstuck.config.ts')
  const written = readFileSync(config, 'utf8')
  writeFileSync(config, written.replaceAll('options.sqlite,', `options.sqlite, ${ONLY_ACTIVE},`))
  const { folder: cwd } = project
  const say = (...args: string[]) => unstuck(args, { cwd, env: { COLUMNS: '400' } })
  const json = async (...args: string[]): Promise<any> =>
    JSON.parse((await say(...args, '--json')).stdout)
  const { items } = await json('runs')
  const dead = idOf(items, 'c-1').slice(-8)
  const tender = 'No status is mapped for fail on a run of tenders'
  const course =
    'No status is mapped for abandon on a run of courses: map adopted.courses.statuses.abandoned or adopted.courses.statuses.failed in the config'

  const [cleaned, planned, recovered, explained, checked, examined] = await Promise.all([
    say('clean', '--yes'),
    say('clean', '--dry-run'),
    say('recover', '--yes'),
    say('explain', dead),
    say('check', 'maths'),
    say('doctor'),
  ])
  assert.equal(cleaned.code, 3)
  assert.match(cleaned.stdout, new RegExp(`courses:c-1 of maths.*\\. ${course}\\.`))
  assert.match(planned.stdout, /Nothing was changed\. No dead run can be marked\./)
  assert.equal(recovered.code, 3)
  assert.match(
    recovered.stdout,
    new RegExp(`Needs a decision[^]*fail run tenders:1 [^]*${tender}: map`),
  )
  assert.match(explained.stdout, new RegExp(`What would change it\n- ${course}\\.\n`))
  assert.match(checked.stdout, new RegExp(`^clean: .* it cannot be ended here\\. ${course}\\.`))
  assert.equal(examined.code, 3)
  assert.match(examined.stdout, new RegExp(`${tender}: map adopted\\.tenders\\.statuses\\.failed`))
  const all = [cleaned, planned, recovered, explained, checked].map(({ stdout }) => stdout).join()
  assert.doesNotMatch(all, /meanwhile|faster|`unstuck (clean|recover)`/)

  const [clean, recover, explain, check] = [
    await json('clean', '--yes'),
    await json('recover', '--yes'),
    await json('explain', dead),
    await json('check', 'maths'),
  ]
  assert.deepEqual(
    [clean.dead[0], clean.cleaned[0], explain.verdict, check].map(({ blockedBy }) => blockedBy),
    [course, course, course, course],
  )
  assert.match(recover.verdicts[0].blockedBy, new RegExp(tender))
  assert.deepEqual([recover.applied, clean.cleaned[0].outcome], [0, 'blocked'])
})

/** They end rows in other ways than by words. */
const ONLY_ACTIVE = "statuses: { active: 'running' }"

test('doctor names missing tables, unmapped statuses, and unusable timestamps', async () => {
  using project = await createUserProject()
  await runUserSql(project.app, `UPDATE runs SET status = 'zombie' WHERE id = 3`)
  await runUserSql(project.app, 'DROP TABLE crawl_runs')
  const ahead = new Date(Date.now() + 3 * 3_600_000).toISOString()
  await runUserSql(project.app, `UPDATE runs SET started_at = '${ahead}' WHERE id = 1`)
  await runUserSql(project.app, `UPDATE runs SET started_at = 'gestern' WHERE id = 2`)

  const [status, recovery] = await Promise.all([
    unstuck(['status'], { cwd: project.folder }),
    unstuck(['recover', '--dry-run', '--json'], { cwd: project.folder }),
  ])
  assert.match(status.stdout, /^Not all can be seen: courses cannot be read/)
  assert.deepEqual([status.code, recovery.code], [3, 3])
  assert.match(JSON.parse(recovery.stdout).unreadable[0].because, /crawl_runs/)
  assert.doesNotMatch(recovery.stdout, /"rowHash"/)

  const { code, stdout } = await unstuck(['doctor', '--json'], { cwd: project.folder })
  const found = JSON.parse(stdout).checks.filter(({ check }: any) => check === 'adopted')

  assert.equal(code, 2)
  assert.deepEqual(
    found.map(({ result }: any) => result),
    ['warning', 'problem'],
  )
  assert.equal(found[0].found, 'tenders: runs exists, with 3 rows, 2 active.')
  assert.match(found[0].details.join('\n'), /"zombie"/)
  assert.match(
    found[0].details.join('\n'),
    /Active rows have no readable time \(2\).*\n.*in the future \(1\)/,
  )
  assert.match(found[1].found, /crawl_runs/)
})
