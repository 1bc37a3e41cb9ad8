import { Client } from 'pg'

/** Returns the plan that PostgreSQL keeps for a statement, whatever its values: as `EXPLAIN` prints it, or as JSON. */
export async function genericPlan(
  url: string,
  text: string,
  format: 'text' | 'json' = 'text',
): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('SET plan_cache_mode = force_generic_plan')
    await client.query(`PREPARE explained AS ${text}`)
    const count = Math.max(0, ...Array.from(text.matchAll(/\$(\d+)/g), ([, n]) => Number(n)))
    const values = count === 0 ? '' : `(${Array(count).fill('NULL').join()})`
    const { rows } = await client.query<{ 'QUERY PLAN': unknown }>(
      `EXPLAIN (COSTS OFF, FORMAT ${format}) EXECUTE explained${values}`,
    )
    return rows.map((row) => row['QUERY PLAN'])
  } finally {
    await client.end()
  }
}
