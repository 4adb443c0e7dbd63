/* The conformance suite of the log: all its groups of tests, or one of the other processes of a
 * test. */
#include "tests/conformance/actor.h"
#include "tests/conformance/suite.h"

#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], ACTOR_ARGUMENT) == 0) {
        actor_main(argv);
    }
    if (argc == 2) {
        cmocka_set_test_filter(argv[1]);
    }
    return run_records() + run_groups() + run_commits() + run_crashes();
}
