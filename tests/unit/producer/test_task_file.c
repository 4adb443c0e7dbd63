/* Task files: which words name one, what each form says, and every mistake with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "producer/task_file.h"

static char folder[] = "/tmp/baton-task-XXXXXX";

static char *write_file(const char *name, const char *text)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    return path;
}

static void test_which_words_name_a_file(void **state)
{
    static const char *const files[] = {"task.md",   "a/b.yaml", "x.yml", "x.json",
                                        "notes.txt", "./t-41",   "../t",  "/t-41"};
    static const char *const ids[] = {"t-41", "team/t-41", "v1.2", "md", ".md", "owner/repo#12"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        assert_true(task_file_named(files[i]));
    }
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_false(task_file_named(ids[i]));
    }
}

static void test_a_text_is_summary_and_payload(void **state)
{
    struct task_file task = {.rev = 0};
    struct baton_error err = {BATON_OK, ""};
    (void)state;
    const char *path =
        write_file("Fix \xc3\xa4 parser!.md", "\n\n## Mend the parser  \r\n\nIt loops.\n");
    assert_int_equal(task_file_read(path, &task, NULL, &err), BATON_OK);
    assert_string_equal(task.id.s, "Fix-parser");
    assert_string_equal(task.summary, "Mend the parser");
    assert_non_null(strstr(task.payload.data, "\"media_type\":\"text/markdown\""));
    assert_non_null(strstr(task.payload.data, "It loops."));
    assert_int_equal(task.data.len, 0);
    task_file_done(&task);
    assert_int_equal(task_file_read(write_file("empty.txt", " \n"), &task, NULL, &err), BATON_OK);
    assert_null(task.summary);
    task_file_done(&task);
    assert_int_equal(task_file_read(write_file("!!.txt", "x"), &task, NULL, &err),
                     BATON_E_invalid_request);
    assert_non_null(strstr(err.text, "--task-id"));
}

static void check_both(const char *path)
{
    struct task_file task = {.rev = 0};
    struct baton_error err = {BATON_OK, ""};
    if (task_file_read(path, &task, NULL, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(task.id.s, "team/t-41");
    assert_int_equal(task.rev, 3);
    assert_string_equal(task.summary, "Mend the parser");
    buf_add_char(&task.data, '\0');
    assert_string_equal(task.data.data, "{\"branch\":\"main\",\"n\":\"7\"}");
    assert_non_null(strstr(task.payload.data, "\"text\":\"It loops.\""));
    task_file_done(&task);
}

static void test_yaml_and_json_say_the_same(void **state)
{
    (void)state;
    (void)write_file("body.txt", "It loops.");
    check_both(write_file("one.yaml", "id: team/t-41\nrev: 3\nsummary: Mend the parser\n"
                                      "data:\n  branch: main\n  n: 7\npayload: body.txt\n"));
    check_both(write_file(
        "one.json", "{\n\t\"id\": \"team/t-41\", \"rev\": 3, \"summary\": \"Mend the parser\",\n"
                    "\t\"data\": {\"branch\": \"main\", \"n\": 7}, \"text\": \"It loops.\"}\n"));
}

static void test_every_mistake_at_once(void **state)
{
    struct task_file task = {.rev = 0};
    struct baton_error err = {BATON_OK, ""};
    struct buf findings = BUF_INIT;
    (void)state;
    const char *path = write_file("bad.yaml", "id: a b\nrev: -1\nsumary: x\ndata:\n  k: [1]\n"
                                              "text: a\npayload: b\n");
    assert_int_equal(task_file_read(path, &task, &findings, &err), BATON_E_invalid_request);
    static const char *const said[] = {":1:1: id: 'a b'", ":2:1: rev: '-1'",
                                       "'sumary'",        "summary",
                                       ":5:3: data.k is", "either text or payload"};
    for (size_t i = 0; i < COUNT_OF(said); i++) {
        if (strstr(findings.data, said[i]) == NULL) {
            fail_msg("no '%s' in %s", said[i], findings.data);
        }
    }
    buf_done(&findings);
    assert_int_equal(task_file_read(write_file("list.yaml", "- a\n"), &task, NULL, &err),
                     BATON_E_invalid_request);
    assert_int_equal(task_file_read(write_file("syntax.json", "{\"id\": "), &task, NULL, &err),
                     BATON_E_invalid_request);
    assert_int_equal(task_file_read("/nowhere/t.md", &task, NULL, &err), BATON_E_invalid_request);
    path = write_file("gone.yaml", "payload: not-there.txt\n");
    assert_int_equal(task_file_read(path, &task, NULL, &err), BATON_E_invalid_request);
    assert_non_null(strstr(err.text, "not-there.txt"));
}

static int make(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int clear(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_words_name_a_file),
        cmocka_unit_test(test_a_text_is_summary_and_payload),
        cmocka_unit_test(test_yaml_and_json_say_the_same),
        cmocka_unit_test(test_every_mistake_at_once),
    };
    return cmocka_run_group_tests(tests, make, clear);
}
