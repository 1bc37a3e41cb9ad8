import * as v from 'valibot'
import {
  AlreadyRunningError,
  NotFoundError,
  RefusedError,
  StoreUnavailableError,
  UsageError,
} from '../core/model/errors.ts'
import { planChanged } from '../interfaces/http/http-error.ts'
import { defineRoute, type Route } from '../contracts/route.ts'

const FAILURES: Readonly<Record<string, () => Error>> = {
  missing: () => new NotFoundError('run 1', '`unstuck runs` lists them.'),
  wrong: () => new UsageError('Give the full id.'),
  refused: () => new RefusedError('It has ended.'),
  running: () => new AlreadyRunningError('a', null, { owner: 'another worker' }),
  away: () => new StoreUnavailableError('The database does not answer.'),
  changed: () => planChanged({ plan: '0123456789abcdef' }),
}

/** Calls that say back what reached them, to look at the frame around every call. */
export const TEST_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute('GET /api/look/:name', {
    summary: 'Says who asks for what.',
    params: v.object({ name: v.pipe(v.string(), v.regex(/^[a-z]+$/, 'is a word')) }),
    query: v.object({
      limit: v.optional(
        v.pipe(v.string(), v.regex(/^\d+$/, 'is a whole number'), v.transform(Number)),
      ),
      status: v.optional(v.picklist(['good', 'bad'])),
    }),
    response: 'openApi',
    handle: async ({ params, query, caller, context }) => ({
      params,
      query,
      caller,
      actor: context.actor,
    }),
  }),
  defineRoute('POST /api/act', {
    summary: 'Acts.',
    body: v.object({
      because: v.optional(v.string()),
      dryRun: v.optional(v.boolean()),
      plan: v.optional(v.string()),
      count: v.optional(v.pipe(v.number(), v.integer())),
    }),
    response: 'openApi',
    handle: async ({ body }) => ({
      sections: [{ heading: null, sentences: ['It was done.'] }],
      body,
    }),
  }),
  defineRoute('POST /api/fall/:how', {
    summary: 'Fails.',
    params: v.object({ how: v.string() }),
    response: 'openApi',
    handle: async ({ params }) => {
      const error = FAILURES[params.how]
      throw error ? error() : new Error('/secret/path: SELECT 1 at postgres://me:canary@host/db')
    },
  }),
]
