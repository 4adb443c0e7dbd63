/* The groups of the conformance suite; each gives its number of failed tests. Called by main. */
#ifndef BATON_TESTS_CONFORMANCE_SUITE_H
#define BATON_TESTS_CONFORMANCE_SUITE_H

int run_records(void);
int run_groups(void);
int run_commits(void);
int run_crashes(void);

#endif
