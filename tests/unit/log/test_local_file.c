/* Where a local log may lie and what may be in its file: refusals first. */
#include "tests/unit/log/local_log.h"

#include "common/log/local/file.h"
#include "common/sqlite/place.h"

#include <fcntl.h>

static baton_code try_open(struct place *place, struct baton_error *why)
{
    struct log *log = NULL;
    baton_code rc = log_open(&place->config, &log, why);
    log_close(log);
    return rc;
}

/* As somebody with the plain sqlite3 program would. */
static void tamper(const struct place *place, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_no_log(void **state)
{
    struct place *place = *state;
    struct baton_error why = {0};
    assert_int_equal(try_open(place, &why), BATON_E_service_unavailable);
    assert_non_null(strstr(why.text, "baton init"));
    assert_int_equal(access(place->path, F_OK), -1); /* looking makes nothing */
}

static void test_create_is_private_and_repeatable(void **state)
{
    struct place *place = *state;
    struct stat st;
    char path[128];
    char cluster[64];
    snprintf(path, sizeof(path), "%s/new/folder/log.db", place->dir);
    place->config.local_path = path;
    OK(log_create(&place->config, err));
    OK(log_open(&place->config, &place->log, err));
    snprintf(cluster, sizeof(cluster), "%s", log_cluster(place->log));
    place_topic(place, "topic", LOG_CLEANUP_delete, -1, 0);
    place_publish(place, "topic", 0, "k", "v");
    static const char *const files[] = {"log.db", "log.db-wal", "log.db-shm", "log.db.d/write.lock",
                                        "log.db.d/bells/t.topic"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/new/folder/%s", place->dir, files[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    snprintf(path, sizeof(path), "%s/new/folder", place->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);

    snprintf(path, sizeof(path), "%s/new/folder/log.db", place->dir);
    OK(log_create(&place->config, err)); /* does nothing */
    assert_int_equal(place_count(place, "topic", 0), 1);
    log_close(place->log);
    OK(log_open(&place->config, &place->log, err));
    assert_string_equal(log_cluster(place->log), cluster);
}

static void test_open_permissions(void **state)
{
    struct place *place = *state;
    struct baton_error why = {0};
    chmod(place->dir, 0750);
    assert_int_equal(log_create(&place->config, &why), BATON_E_bad_config);
    assert_non_null(strstr(why.text, "chmod 700"));
    chmod(place->dir, 0700);
    OK(log_create(&place->config, err));
    assert_int_equal(try_open(place, NULL), BATON_OK);
    chmod(place->path, 0640);
    assert_int_equal(try_open(place, &why), BATON_E_bad_config);
    assert_non_null(strstr(why.text, "chmod 600"));
    chmod(place->path, 0600);
    chmod(place->dir, 0701);
    assert_int_equal(try_open(place, NULL), BATON_E_bad_config);
    chmod(place->dir, 0700);
    assert_int_equal(try_open(place, NULL), BATON_OK);
}

static void test_not_a_file(void **state)
{
    struct place *place = *state;
    assert_int_equal(mkdir(place->path, 0700), 0);
    assert_int_equal(try_open(place, NULL), BATON_E_bad_config);
    assert_int_equal(rmdir(place->path), 0);
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_int_equal(try_open(place, NULL),
                     BATON_E_bad_config); /* and does not wait for a writer */
}

static void write_file(const struct place *place, const char *text)
{
    int fd = open(place->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void test_not_a_database(void **state)
{
    struct place *place = *state;
    char text[4096];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    write_file(place, text);
    assert_int_equal(try_open(place, NULL), BATON_E_store_failed);
    assert_int_equal(log_create(&place->config, NULL), BATON_E_store_failed);
}

/* Its maker was killed before the first transaction: no log yet, and made one by the next. */
static void test_empty_file(void **state)
{
    struct place *place = *state;
    write_file(place, "");
    assert_int_equal(try_open(place, NULL), BATON_E_service_unavailable);
    OK(log_create(&place->config, err));
    assert_int_equal(try_open(place, NULL), BATON_OK);
}

static void test_foreign_and_newer(void **state)
{
    struct place *place = *state;
    struct baton_error why = {0};
    write_file(place, "");
    tamper(place, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1);");
    assert_int_equal(log_create(&place->config, &why), BATON_E_store_failed);
    assert_int_equal(try_open(place, &why), BATON_E_store_failed);
    assert_non_null(strstr(why.text, "no log of Baton"));
    unlink(place->path);
    OK(log_create(&place->config, err));
    tamper(place, "PRAGMA user_version = 1000");
    assert_int_equal(try_open(place, &why), BATON_E_store_failed);
    assert_non_null(strstr(why.text, "newer program"));
    assert_int_equal(log_create(&place->config, NULL), BATON_E_store_failed);
}

/* Attack X20: what somebody planted is refused at open, whatever it is. */
static void test_X20_planted(void **state)
{
    struct place *place = *state;
    static const char *const plants[][3] = {
        {"CREATE TRIGGER planted AFTER INSERT ON record BEGIN DELETE FROM committed; END",
         "DROP TRIGGER planted", "planted"},
        {"CREATE VIEW planted AS SELECT * FROM record", "DROP VIEW planted", "planted"},
        {"CREATE TABLE planted (a)", "DROP TABLE planted", "planted"},
        {"CREATE INDEX planted ON record (at)", "DROP INDEX planted", "planted"},
        {"DROP INDEX record_key",
         "CREATE UNIQUE INDEX record_key ON record (compact, key) WHERE compact IS NOT NULL",
         "lacks index `record_key`"},
        {"DROP INDEX record_key; CREATE INDEX record_key ON record (compact, key)",
         "DROP INDEX record_key;"
         "CREATE UNIQUE INDEX record_key ON record (compact, key) WHERE compact IS NOT NULL",
         "another index `record_key`"},
    };
    OK(log_create(&place->config, err));
    for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
        struct baton_error why = {0};
        tamper(place, plants[i][0]);
        assert_int_equal(try_open(place, &why), BATON_E_store_failed);
        assert_non_null(strstr(why.text, plants[i][2]));
        tamper(place, plants[i][1]);
        assert_int_equal(try_open(place, NULL), BATON_OK);
    }
}

static void test_network_file_systems(void **state)
{
    (void)state;
    assert_true(file_system_is_remote(0x6969, ""));     /* nfs */
    assert_true(file_system_is_remote(0xff534d42, "")); /* cifs */
    assert_true(file_system_is_remote(0xfe534d42, "")); /* smb2 */
    assert_true(file_system_is_remote(0x65735546, "fuse.sshfs"));
    assert_true(file_system_is_remote(0x65735546, ""));         /* unknown FUSE */
    assert_false(file_system_is_remote(0x65735546, "fuseblk")); /* ntfs of this host */
    assert_false(file_system_is_remote(0xef53, ""));            /* ext4 */
    assert_false(file_system_is_remote(0x01021994, ""));        /* tmpfs */
    assert_false(file_system_is_remote(0x794c7630, ""));        /* overlayfs */
}

static void test_settings(void **state)
{
    struct place *place = *state;
    struct local_conn *conn = NULL;
    int64_t value = 0;
    OK(local_conn_take((struct local_log *)place->log, &conn, err));
    OK(db_pragma_int(&conn->db, "PRAGMA synchronous", &value, err));
    assert_int_equal(value, 2); /* FULL */
    OK(db_pragma_int(&conn->db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &value,
                     err));
    assert_int_equal(value, 1);
    OK(db_pragma_int(&conn->db, "PRAGMA trusted_schema", &value, err));
    assert_int_equal(value, 0);
    OK(db_pragma_int(&conn->db, "PRAGMA foreign_keys", &value, err));
    assert_int_equal(value, 1);
    int defensive = 0;
    sqlite3_db_config(conn->db.handle, SQLITE_DBCONFIG_DEFENSIVE, -1, &defensive);
    assert_int_equal(defensive, 1);
    assert_int_not_equal(
        sqlite3_exec(conn->db.handle, "ATTACH ':memory:' AS other", NULL, NULL, NULL), SQLITE_OK);
    local_conn_give(conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(test_no_log),
        PLACE_TEST(test_create_is_private_and_repeatable),
        PLACE_TEST(test_open_permissions),
        PLACE_TEST(test_not_a_file),
        PLACE_TEST(test_not_a_database),
        PLACE_TEST(test_empty_file),
        PLACE_TEST(test_foreign_and_newer),
        PLACE_TEST(test_X20_planted),
        cmocka_unit_test(test_network_file_systems),
        LOG_TEST(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
