/* Every verb of this program's middle: its help has what people and scripts need, and names that
 * are its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "producer/cmd_coordinator.h"
#include "producer/cmd_dlq.h"
#include "producer/cmd_publish.h"
#include "producer/cmd_runs.h"
#include "producer/cmd_services.h"
#include "producer/cmd_turns.h"
#include "producer/cmd_workflow.h"
#include "topics/cmd_keys.h"
#include "topics/cmd_topics.h"

static const struct baton_command *const verbs[] = {
    &cmd_publish, &cmd_turns,    &cmd_dlq,         &cmd_services, &cmd_topics,
    &cmd_keys,    &cmd_workflow, &cmd_coordinator, &cmd_runs,     &cmd_handoff};

static void check_options(const struct baton_command *command)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const struct command_option *option = &command->options[i];
        assert_non_null(option->help);
        assert_true(strlen(option->help) > 0);
        assert_true((option->kind == OPTION_flag) == (option->argument == NULL));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(option->name, command->options[j].name);
            assert_true(option->letter == 0 || option->letter != command->options[j].letter);
        }
    }
}

static void check(const struct baton_command *command, const char *path)
{
    char name[128];
    snprintf(name, sizeof(name), "%s %s", path, command->name);
    if (command->summary == NULL || command->usage == NULL || command->description == NULL ||
        command->examples == NULL || strstr(command->examples, name) == NULL) {
        fail_msg("`%s` lacks a summary, usage, description, or an example of itself", name);
    }
    if (command->summary[strlen(command->summary) - 1] == '.') {
        fail_msg("`%s`: a summary ends without a dot", name);
    }
    if (command->run == NULL && command->n_subcommands == 0) {
        fail_msg("`%s` does nothing", name);
    }
    check_options(command);
    for (size_t i = 0; i < command->n_subcommands; i++) {
        check(command->subcommands[i], name);
    }
}

static void test_every_verb_has_an_example_and_its_options_a_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        check(verbs[i], "baton");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_verb_has_an_example_and_its_options_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
