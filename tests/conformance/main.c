/*
 * The conformance suite of the log: all its groups of tests, or one of the other processes of a
 * test. Which driver: the environment (fixture.h); with --kafka it must name a broker.
 * Another argument chooses tests by pattern. BATON_CONFORMANCE_VERBOSE: with what the driver logs.
 */
#include "common/base/diag.h"
#include "tests/conformance/actor.h"
#include "tests/conformance/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_SKIPPED 77

int main(int argc, char **argv)
{
    if (getenv("BATON_CONFORMANCE_VERBOSE") != NULL) {
        diag_open_stderr(DIAG_debug, DIAG_FORM_json);
    }
    if (argc == 6 && strcmp(argv[1], ACTOR_ARGUMENT) == 0) {
        actor_main(argv);
    }
    if (argc > 1 && strcmp(argv[1], "--kafka") == 0) {
        if (getenv(FIXTURE_BROKER) == NULL) {
            fprintf(stderr, "set " FIXTURE_BROKER " to the broker's host:port "
                            "(deploy/kafka/broker start prints one)\n");
            return EXIT_SKIPPED;
        }
        argc--;
        argv++;
    }
    if (argc == 2) {
        cmocka_set_test_filter(argv[1]);
    }
    return run_records() + run_groups() + run_commits() + run_crashes();
}
