/* RECORD.md section 5: the rights of each principal on a Kafka cluster, against a golden list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <ftw.h>

#include "common/base/buf.h"
#include "common/record/keys.h"
#include "topics/acl.h"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

struct folders {
    char dir[64];
    char keys[80];
    char trust[80];
    struct trust *trusted;
};

static void principal(struct folders *f, const char *name, const struct keys_wish *wish)
{
    struct keys_folders folders = {f->keys, f->trust};
    struct keys_made made;
    struct baton_error err = {BATON_OK, ""};
    if (keys_generate(&folders, name, wish, false, &made, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
}

/* Every kind of right, and names of which one begins with the other. */
static void setup(struct folders *f)
{
    static const char *const pass[] = {"codex-review=reviewer"};
    static const char *const create[] = {"claude=owner"};
    static const char *const everywhere[] = {"*=all"};
    static const char *const operate[] = {"claude-review"};
    static const char *const operate_all[] = {"*"};
    static const char *const all[] = {"all"};
    static const char *const touch[] = {"touch"};
    char fleet[160];
    struct baton_error err = {BATON_OK, ""};
    memset(f, 0, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/baton-unit-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->keys, sizeof(f->keys), "%s/keys", f->dir);
    snprintf(f->trust, sizeof(f->trust), "%s/trust", f->dir);
    assert_int_equal(mkdir(f->keys, 0700), 0);
    assert_int_equal(mkdir(f->trust, 0755), 0);
    snprintf(fleet, sizeof(fleet), "%s/fleet.yaml", f->trust);
    FILE *file = fopen(fleet, "w");
    assert_non_null(file);
    fputs("version: 1\nfleet: prod\n", file);
    fclose(file);
    principal(f, "claude", &(struct keys_wish){.serve = "all", .pass = pass, .n_pass = 1});
    principal(f, "claude-review", &(struct keys_wish){.serve = "reviewer"});
    principal(f, "coordinator",
              &(struct keys_wish){
                  .kind = "program", .coordinate = true, .create = everywhere, .n_create = 1});
    principal(f, "alice",
              &(struct keys_wish){.create = create,
                                  .n_create = 1,
                                  .operate = operate,
                                  .n_operate = 1,
                                  .request = touch,
                                  .n_request = 1});
    principal(f, "root-of-all",
              &(struct keys_wish){.create = create,
                                  .n_create = 1,
                                  .operate = operate_all,
                                  .n_operate = 1,
                                  .request = all,
                                  .n_request = 1});
    principal(f, "watcher",
              &(struct keys_wish){.kind = "person", .request = touch, .n_request = 1});
    if (trust_load(f->trust, &f->trusted, NULL, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
}

static void teardown(struct folders *f)
{
    trust_free(f->trusted);
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct acl_list list_of(const struct folders *f)
{
    struct acl_list list;
    struct baton_error err = {BATON_OK, ""};
    if (acl_of_trust(f->trusted, "baton", &list, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return list;
}

static void test_x27_golden_rights(void **state)
{
    (void)state;
    struct folders f;
    struct buf lines = BUF_INIT;
    char path[1024];
    char golden[32768];
    setup(&f);
    struct acl_list list = list_of(&f);
    for (size_t i = 0; i < list.count; i++) {
        const struct acl *acl = &list.rights[i];
        buf_printf(&lines, "%s %s %s %s %s\n", acl->principal, acl_resource_word(acl->resource),
                   acl->prefixed ? "prefixed" : "literal", acl->name.s,
                   acl_operation_word(acl->operation));
        assert_true(acl->why != NULL && acl->why[0] != '\0');
    }
    snprintf(path, sizeof(path), "%.*s/../../golden/topics/acl.txt",
             (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(golden, 1, sizeof(golden) - 1, file);
    fclose(file);
    golden[len] = '\0';
    assert_true(buf_ok(&lines));
    if (strcmp(golden, lines.data) != 0) {
        fail_msg("%s is not what comes out:\n%s", path, lines.data);
    }
    buf_done(&lines);
    acl_list_done(&list);
    teardown(&f);
}

static bool may(const struct acl_list *list, const char *who, enum acl_resource resource,
                const char *name, enum acl_operation operation)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct acl *acl = &list->rights[i];
        if (strcmp(acl->principal, who) == 0 && acl->resource == resource &&
            acl->operation == operation &&
            (acl->prefixed ? strncmp(name, acl->name.s, strlen(acl->name.s)) == 0
                           : strcmp(name, acl->name.s) == 0)) {
            return true;
        }
    }
    return false;
}

/* What a broker must refuse: said apart from the golden list, so that nobody mends that by mistake.
 */
static void test_x27_no_service_reaches_into_another(void **state)
{
    (void)state;
    struct folders f;
    setup(&f);
    struct acl_list list = list_of(&f);
    static const char *const topics[] = {"baton.handoff.claude-review",
                                         "baton.control.claude-review",
                                         "baton.turns.claude-review",
                                         "dlq.baton.handoff.claude-review",
                                         "baton.requests",
                                         "baton.runs"};
    for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
        for (int operation = 0; operation < ACL_OPERATION_COUNT; operation++) {
            assert_false(
                may(&list, "claude", ACL_RESOURCE_topic, topics[i], (enum acl_operation)operation));
        }
    }
    assert_false(
        may(&list, "claude", ACL_RESOURCE_group, "baton.worker.claude-review", ACL_OPERATION_Read));
    assert_false(may(&list, "claude", ACL_RESOURCE_transactional, "baton.worker.claude-review.w1",
                     ACL_OPERATION_Write));
    assert_true(may(&list, "claude", ACL_RESOURCE_transactional, "baton.worker.claude.w1",
                    ACL_OPERATION_Write)); /* of a dead one of the same service, too */
    assert_true(may(&list, "claude", ACL_RESOURCE_topic, "baton.handoff.codex-review",
                    ACL_OPERATION_Write));
    assert_false(
        may(&list, "claude", ACL_RESOURCE_topic, "baton.handoff.codex-review", ACL_OPERATION_Read));
    assert_false(may(&list, "claude", ACL_RESOURCE_topic, "baton.outcomes", ACL_OPERATION_Read));
    assert_false(may(&list, "alice", ACL_RESOURCE_topic, "baton.turns.claude", ACL_OPERATION_Read));
    assert_false(
        may(&list, "root-of-all", ACL_RESOURCE_topic, "baton.turns.claude", ACL_OPERATION_Write));
    for (size_t i = 0; i < list.count; i++) { /* trimming is for those who take in */
        const struct acl *acl = &list.rights[i];
        if (acl->operation == ACL_OPERATION_Delete) {
            assert_false(acl->prefixed);
            assert_true(
                may(&list, acl->principal, ACL_RESOURCE_topic, acl->name.s, ACL_OPERATION_Read));
        }
    }
    acl_list_done(&list);
    teardown(&f);
}

/* A right that a broader one covers is not said twice, nor one that comes from two grants. */
static void test_nothing_is_said_twice(void **state)
{
    (void)state;
    struct folders f;
    setup(&f);
    struct acl_list list = list_of(&f);
    for (size_t i = 0; i < list.count; i++) {
        for (size_t j = 0; j < list.count; j++) {
            const struct acl *a = &list.rights[i];
            const struct acl *b = &list.rights[j];
            bool covers = a->prefixed && strncmp(b->name.s, a->name.s, strlen(a->name.s)) == 0;
            covers = covers || (a->prefixed == b->prefixed && strcmp(a->name.s, b->name.s) == 0);
            if (i != j && strcmp(a->principal, b->principal) == 0 && a->resource == b->resource &&
                a->operation == b->operation && covers) {
                fail_msg("%s %s %s: %s covers it", b->principal, b->name.s,
                         acl_operation_word(b->operation), a->name.s);
            }
        }
    }
    acl_list_done(&list);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_x27_golden_rights),
        cmocka_unit_test(test_x27_no_service_reaches_into_another),
        cmocka_unit_test(test_nothing_is_said_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
