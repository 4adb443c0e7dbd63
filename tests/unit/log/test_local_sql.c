/* Every statement of the local log: prepared, and no table read from end to end (STYLE Q9). */
#include "tests/unit/log/local_log.h"

#include "common/log/local/queries.h"

/* Small by nature: the names of all topics, the schema itself. */
static bool may_scan(int number)
{
    return number == TOPIC_LIST || number == SCHEMA_LIST || number == SCHEMA_COUNT;
}

static void test_Q9_no_scan(void **state)
{
    struct place *place = *state;
    struct local_conn *conn = NULL;
    OK(local_conn_take((struct local_log *)place->log, &conn, err));
    for (int number = 0; number < LOCAL_SQL_COUNT; number++) {
        char *sql = NULL;
        sqlite3_stmt *stmt = NULL;
        assert_true(asprintf(&sql, "EXPLAIN QUERY PLAN %s", local_sql[number]) > 0);
        if (sqlite3_prepare_v2(conn->db.handle, sql, -1, &stmt, NULL) != SQLITE_OK) {
            fail_msg("%s: %s", local_sql_names[number], sqlite3_errmsg(conn->db.handle));
        }
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *plan = (const char *)sqlite3_column_text(stmt, 3);
            bool scans = strncmp(plan, "SCAN ", 5) == 0 && strstr(plan, "SCAN (") == NULL &&
                         strstr(plan, "subquery") == NULL && strstr(plan, "CONSTANT ROW") == NULL;
            if (scans && !may_scan(number)) {
                fail_msg("%s: %s", local_sql_names[number], plan);
            }
        }
        sqlite3_finalize(stmt);
        free(sql);
    }
    local_conn_give(conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {LOG_TEST(test_Q9_no_scan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
