import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId, type RunId } from '../../../core/model/id.ts'
import { assertAllOk, beginOne, registerWorker, enqueueSingle } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { COMMAND_STORE, type Execution, type ExecutionEnd } from './store.ts'

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('the executions of a run are listed newest first, as they were recorded', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const [run, other] = [await enqueueSingle(store), await enqueueSingle(store, 'another')]
      const [first, second, third] = [newId(), newId(), newId()]
        .sort()
        .map((id) => ({ ...anExecution(run), id })) as [Execution, Execution, Execution]
      const another = anExecution(other)
      for (const execution of [second, first, another, third]) {
        await store.startExecution(execution)
      }

      await store.endExecution(second.id, END)

      assert.deepEqual(await store.executions([run], 10), [third, { ...second, end: END }, first])
      assert.deepEqual(await store.executions([run], 1), [third])
      assert.deepEqual(
        new Set(await store.executions([run, other, newId()], 1)),
        new Set([third, another]),
      )
      assert.deepEqual(await store.executions([newId()], 10), [])
    })

    test('a start that is recorded twice is one, and does not undo its end', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const run = await enqueueSingle(store)
      const execution = anExecution(run)

      await store.startExecution(execution)
      await store.endExecution(execution.id, END)
      await store.startExecution({ ...execution, log: 'another' })

      assert.deepEqual(await store.executions([run], 10), [{ ...execution, end: END }])
    })

    test('a command ends once: a later report of its end does not count', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const run = await enqueueSingle(store)
      const execution = anExecution(run)
      const killed = { ...END, exitCode: null, signal: 'SIGKILL', peakMemory: null, artifacts: 0 }
      await store.startExecution(execution)

      await store.endExecution(execution.id, killed)
      await store.endExecution(execution.id, END)
      await store.endExecution(newId(), END)

      assert.deepEqual(await store.executions([run], 10), [{ ...execution, end: killed }])
    })

    test('an execution that never started is recorded together with its end', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const run = await enqueueSingle(store)
      const end = { ...END, exitCode: 127, because: 'there is no such command' }
      const execution = { ...anExecution(run), end }

      await store.startExecution(execution)

      assert.deepEqual(await store.executions([run], 10), [execution])
    })

    test('command, log and reason may be any text', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const run = await enqueueSingle(store)
      const command = ['sh', '-c', `echo "it's" {$HOME}, \\ ü 🦊`, '']
      const execution = { ...anExecution(run), command, log: `/tmp/a "b"/ü.log` }
      await store.startExecution(execution)

      await store.endExecution(execution.id, { ...END, because: 'half a NUL \0 and \ud83d' })

      const [read] = await store.executions([run], 1)
      assert.deepEqual([read!.command, read!.log], [command, execution.log])
      assert.match(read!.end!.because, /^half a NUL/)
    })

    test('the end of leftover processes is in the audit trail of the run', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const run = await enqueueSingle(store)
      const ended = { run, source: 'portal', actor: 'the tests', because: 'process 4711 \0 ended' }
      await store.recordEndedProcesses(ended)

      const [entry] = await store.audit({ run, limit: 10 })
      assert.deepEqual([entry!.action, entry!.actor], ['end-processes', 'the tests'])
      assert.match(entry!.because, /^process 4711/)
    })

    test('deleting a run deletes its executions, and no others', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, COMMAND_STORE)
      const claimed = await beginOne(store, await registerWorker(store))
      const other = await enqueueSingle(store, 'another')
      await store.startExecution(anExecution(claimed.run))
      await store.startExecution(anExecution(other))
      assertAllOk(await store.finish([claimed]))
      await store.settle()

      await store.deleteRun({
        run: claimed.run,
        withItems: false,
        actor: 'the tests',
        because: 'asked',
      })

      const left = await db.raw(`SELECT run_id FROM ${db.table('execution')}`)
      assert.deepEqual(
        left.map((row) => row['run_id']),
        [other],
      )
    })
  })
}

const END: ExecutionEnd = {
  at: 1_800_000_123_456,
  exitCode: 3,
  signal: null,
  because: 'it ended by itself',
  artifacts: 12,
  peakMemory: 5_000_000_000,
}

function anExecution(run: RunId): Execution {
  return {
    id: newId(),
    run,
    worker: newId(),
    host: 'box',
    command: ['python', 'run.py'],
    outputDir: '/srv/out',
    log: '/srv/out/log',
    startedAt: 1_800_000_000_001,
    end: null,
  }
}
