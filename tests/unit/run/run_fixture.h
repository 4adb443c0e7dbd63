/* What the tests of runs share: cmocka's includes, and a run of a small workflow. */
#ifndef BATON_TESTS_RUN_FIXTURE_H
#define BATON_TESTS_RUN_FIXTURE_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "common/base/check.h"
#include "producer/handoff/handoff.h"
#include "producer/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Owner and two reviewers; a loop with a cap, a way without a verdict, a way with a hook, and slots that
 * declare nothing. */
static const char workflow_text[] =
    "version: 1\nname: small\nstart: dev\n"
    "nodes:\n  dev: {role: owner, service: one}\n"
    "  rev: {service: two, slots: {a: reviewer, b: reviewer}}\n  end: {role: arbiter, service: "
    "one}\n"
    "hooks:\n  check: {command: [true], data: [url], subject: url}\n"
    "  people: {command: [true], people_only: true}\n"
    "  off: {command: [true], enabled: false}\n"
    "  note: {command: [true], class: side_effect}\n"
    "transitions:\n"
    "  review: {from: dev, to: rev, when: [done]}\n"
    "  again: {from: rev.a, to: dev, when: [changes], max_cycles: 2}\n"
    "  ask: {from: rev.a, to: rev.b}\n"
    "  ask2: {from: rev.a, to: rev.b, when: [escalate]}\n"
    "  hooked: {from: dev, to: rev.a, when: [done_with_concerns], hook: check}\n"
    "  peopled: {from: dev, to: rev.b, hook: people}\n"
    "  offed: {from: dev, to: end, hook: off}\n"
    "  noted: {from: rev.b, to: dev, when: [changes], hook: note, requires_status: [in_review]}\n"
    "  denied: {from: rev.b, to: end, when: [escalate]}\n"
    "ends:\n  good: {from: rev.a, when: [approve], as: completed}\n"
    "channels:\n  - {from: dev, to: [rev, end]}\n  - {from: rev, to: [dev, rev]}\n";

static inline struct run *run_make(void)
{
    struct run *run = calloc(1, sizeof(*run));
    struct buf findings = BUF_INIT;
    assert_non_null(run);
    run->id = plain_id_of("r-1");
    run->epoch = 1;
    run->task_id = task_id_of("t-41");
    run->task_rev = 7;
    run->task_status = TASK_STATUS_active;
    run->state = RUN_active;
    run->by = plain_id_of("alice");
    run->summary = strdup("Mend it");
    run->started_at = (struct wall_ms){1000};
    run->updated_at = (struct wall_ms){1000};
    if (workflow_parse("small", workflow_text, strlen(workflow_text), NULL, &run->workflow,
                       &findings, NULL, NULL) != BATON_OK) {
        fail_msg("%s", findings.data);
    }
    return run;
}

static inline struct run_turn *turn_make(struct run *run, const char *id, const char *slot,
                                         const char *by)
{
    struct run_turn *turn = run_add_turn(run);
    assert_non_null(turn);
    turn->id = turn_id_of(id);
    turn->slot = plain_id_of(slot);
    turn->by = plain_id_of(by);
    turn->born = service_id_of("one");
    turn->service = service_id_of("one");
    turn->role = run->workflow->slots[run_slot(run, slot)].role;
    turn->attempt = 1;
    turn->begun_at = (struct wall_ms){2000};
    return turn;
}

#endif
