/* What only the local log can show of members: slots, beats, bells, and who judges whom. */
#include "tests/unit/log/local_log.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Polls until an event of that kind comes, at most ten seconds. */
static struct log_event await(struct local_member *member, enum log_event_kind kind)
{
    struct log_event event = {0};
    for (int64_t end_ns = mono_ns() + 10000000000; mono_ns() < end_ns;) {
        OK(log_member_poll(&member->base, &event, err));
        if (event.kind == kind) {
            return event;
        }
        if (event.kind == LOG_EVENT_none) {
            struct pollfd waited = {.fd = log_member_fd(&member->base), .events = POLLIN};
            poll(&waited, 1, 100);
        }
    }
    fail_msg("event %d did not come", (int)kind);
    return event;
}

static void test_slots(void **state)
{
    struct place *place = *state;
    const struct local_log *log = (const struct local_log *)place->log;
    struct boot_id boots[3] = {boot_id_new(), boot_id_new(), boot_id_new()};
    struct slot slots[3];
    int32_t pid = 0;
    for (int i = 0; i < 3; i++) {
        OK(slot_take(log, &boots[i], 1000, &slots[i], err));
        assert_int_equal(slots[i].number, i);
    }
    assert_int_equal(slot_look(log, 1, boots[1].s, &pid), SLOT_alive);
    assert_int_equal(pid, getpid());
    assert_int_equal(slot_look(log, 1, boots[2].s, NULL), SLOT_dead); /* somebody else's */
    slot_free(&slots[1]);
    assert_int_equal(slot_look(log, 1, boots[1].s, &pid), SLOT_dead);
    assert_int_equal(pid, 0);
    OK(slot_take(log, &boots[1], 1000, &slots[1], err)); /* the first free one */
    assert_int_equal(slots[1].number, 1);

    assert_false(log_member_died(place->log, boots[1].s)); /* it holds its slot */
    slot_free(&slots[1]);
    assert_false(log_member_died(place->log, boots[1].s)); /* it left, and may live */
    OK(slot_take(log, &boots[1], 1000, &slots[1], err));
    munmap(slots[1].page, sizeof(*slots[1].page)); /* as its process's death does */
    close(slots[1].fd);
    assert_true(log_member_died(place->log, boots[1].s));
    OK(slot_take(log, &boots[0], 1000, &slots[1], err));
    assert_false(log_member_died(place->log, boots[1].s)); /* somebody else's since: not known */

    atomic_store(&slots[2].page->beat_ms, mono_now().v - 1001);
    assert_int_equal(slot_look(log, 2, boots[2].s, NULL), SLOT_silent);
    slot_beat(&slots[2]);
    assert_int_equal(slot_look(log, 2, boots[2].s, NULL), SLOT_alive);
    assert_int_equal(slot_look(log, 77, boots[2].s, NULL), SLOT_dead);
    for (int i = 0; i < 3; i++) {
        slot_free(&slots[i]);
    }
}

/* Without a bell (no watches left, or somebody deleted the file) records come all the same. */
static void test_deaf_member(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct log_batch batch = {0};
    char path[128];
    struct local_member *member = place_member(place, "w", &event);
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    snprintf(path, sizeof(path), "%s.d/bells/t.handoff", place->path);
    assert_int_equal(unlink(path), 0);
    OK(log_member_poll(&member->base, &event, err));
    assert_int_equal(member->bell_fd, -1);
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 0);

    int64_t start_ns = mono_ns();
    place_publish(place, "handoff", 0, "k", "v");
    while (batch.count == 0 && mono_ns() - start_ns < 10000000000) {
        struct pollfd waited = {.fd = log_member_fd(&member->base), .events = POLLIN};
        poll(&waited, 1, 1000);
        OK(log_member_poll(&member->base, &event, err));
        OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    }
    assert_int_equal(batch.count, 1);
    log_batch_free(&batch);
    log_member_close(&member->base, true, 1000);
}

/* An idle member asks the file for nothing between two heartbeats. */
static void test_idle_fetch_reads_nothing(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct log_batch batch = {0};
    struct local_member *member = place_member(place, "w", &event);
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_true(batch.at_end);
    assert_int_equal(member->fresh[0] & 1, 0);
    place_publish(place, "handoff", 0, "k", "v");
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 0); /* not heard yet: it is the poll that hears */
    OK(log_member_poll(&member->base, &event, err));
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 1);
    log_batch_free(&batch);
    log_member_close(&member->base, true, 1000);
}

/* Who was stopped himself (a host that slept) removes nobody before his next beat. */
static void test_who_slept_does_not_judge(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct local_member *a = place_member(place, "a", &event);
    struct log_member_spec spec = {.group = "group",
                                   .worker = "b",
                                   .boot = boot_id_new(),
                                   .inputs = {"handoff", "control"},
                                   .session_ms = 600,
                                   .heartbeat_ms = 100};
    struct log_member *b = NULL;
    OK(log_member_open(place->log, &spec, &b, err));
    await(a, LOG_EVENT_revoked);
    event = await(a, LOG_EVENT_assigned);
    assert_int_equal(event.count, 1);
    event = await((struct local_member *)b, LOG_EVENT_assigned);
    assert_int_equal(event.count, 1);

    usleep(700000); /* both are silent for more than a session */
    struct log_event quiet = {0};
    for (int i = 0; i < 20; i++) { /* polled often, but within one heartbeat */
        OK(log_member_poll(&a->base, &quiet, err));
        assert_int_equal(quiet.kind, LOG_EVENT_none);
    }
    assert_false(a->judges);
    OK(log_member_poll(b, &quiet, err)); /* the other one is heard in time */
    assert_int_equal(quiet.kind, LOG_EVENT_none);

    /* Now only b stays silent: gone after a session. */
    await(a, LOG_EVENT_revoked);
    event = await(a, LOG_EVENT_assigned);
    assert_int_equal(event.count, 2);
    await((struct local_member *)b, LOG_EVENT_lost);
    log_member_close(b, true, 1000);
    log_member_close(&a->base, true, 1000);
}

/* Somebody deletes the slots: the members take each other for dead, come back once with others, and
 * stay. */
static void test_deleted_slots(void **state)
{
    struct place *place = *state;
    struct log_event event;
    char path[128];
    struct local_member *members[2] = {place_member(place, "a", &event), NULL};
    struct log_member_spec spec = {.group = "group",
                                   .worker = "b",
                                   .boot = boot_id_new(),
                                   .inputs = {"handoff", "control"},
                                   .session_ms = 600,
                                   .heartbeat_ms = 100};
    OK(log_member_open(place->log, &spec, (struct log_member **)&members[1], err));
    await(members[0], LOG_EVENT_revoked);
    await(members[0], LOG_EVENT_assigned);
    await(members[1], LOG_EVENT_assigned);

    snprintf(path, sizeof(path), "%s.d/members", place->path);
    assert_int_equal(nftw(path, place_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    int losses = 0;
    for (int64_t end_ns = mono_ns() + 2000000000; mono_ns() < end_ns; usleep(1000)) {
        for (int i = 0; i < 2; i++) {
            OK(log_member_poll(&members[i]->base, &event, err));
            losses += event.kind == LOG_EVENT_lost ? 1 : 0;
        }
    }
    assert_in_range(losses, 1, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(members[i]->state, MEMBER_told);
        assert_true(members[i]->assigned == 1 || members[i]->assigned == 2);
    }
    assert_int_equal(members[0]->generation, members[1]->generation);
    log_member_close(&members[0]->base, true, 1000);
    log_member_close(&members[1]->base, true, 1000);
}

/* A file that was put in the log's place (a backup) is seen within a heartbeat; nothing goes on in
 * the old one. */
static void test_replaced_log(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct baton_error why;
    char other[128];
    baton_code rc = BATON_OK;
    struct local_member *member = place_member(place, "a", &event);

    snprintf(other, sizeof(other), "%s.old", place->path);
    assert_int_equal(rename(place->path, other), 0);
    for (int64_t end_ns = mono_ns() + 10000000000; rc == BATON_OK && mono_ns() < end_ns;
         usleep(1000)) {
        rc = log_member_poll(&member->base, &event, &why);
    }
    assert_int_equal(rc, BATON_E_topic_missing);
    assert_non_null(strstr(why.text, "replaced"));
    FILE *file = fopen(place->path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_not_equal(local_log_there((struct local_log *)place->log, &why), BATON_OK);
    assert_int_equal(rename(other, place->path), 0);
    OK(local_log_there((struct local_log *)place->log, err));
    log_member_close(&member->base, true, 1000);
}

/* An end of waiting that lies in an earlier life of the host does not keep a place for ever. */
static void test_away_before_the_host_started(void **state)
{
    struct place *place = *state;
    const struct local_log *log = (const struct local_log *)place->log;
    int64_t now = mono_now().v;
    struct group_row row = {.worker = "w", .session_ms = 1000, .away_until = now + 500};
    assert_true(group_row_stays(log, &row, true));
    row.away_until = now - 1;
    assert_false(group_row_stays(log, &row, true));
    row.away_until = now + 100000;
    assert_false(group_row_stays(log, &row, true));
}

#define SLOW_MS 20000 /* a heartbeat so slow that only events can be in time */

static struct log_member *slow_member(struct log *log, const char *worker)
{
    struct log_member_spec spec = {.group = "group",
                                   .worker = worker,
                                   .boot = boot_id_new(),
                                   .inputs = {"handoff", "control"},
                                   .session_ms = 3 * SLOW_MS,
                                   .heartbeat_ms = SLOW_MS};
    struct log_member *member = NULL;
    OK(log_member_open(log, &spec, &member, err));
    return member;
}

/* A ring is heard at once, not at the next heartbeat. */
static void test_bells_wake(void **state)
{
    struct place *place = *state;
    struct log_batch batch = {0};
    struct log_member *member = slow_member(place->log, "w");
    struct pollfd waited = {.fd = log_member_fd(member), .events = POLLIN};
    struct log_event event = await((struct local_member *)member, LOG_EVENT_assigned);
    for (size_t i = 0; i < event.count; i++) {
        OK(log_member_seek(member, 1, event.partitions[i], 0, err));
    }
    OK(log_member_fetch(member, 1, 1, 1, SIZE_MAX, &batch, err));
    assert_int_equal(poll(&waited, 1, 0), 0);
    place_publish(place, "control", 1, "k", "v");
    assert_int_equal(poll(&waited, 1, SLOW_MS / 4), 1);
    OK(log_member_poll(member, &event, err));
    OK(log_member_fetch(member, 1, 1, 1, SIZE_MAX, &batch, err));
    assert_int_equal(batch.count, 1);
    assert_int_equal(poll(&waited, 1, 0), 0);
    place_publish(place, "outcomes", 1, "k", "v"); /* no input of this group */
    assert_int_equal(poll(&waited, 1, 0), 0);
    log_batch_free(&batch);
    log_member_close(member, true, 1000);
}

/* A ring may die with the process that was to ring it: the next heartbeat finds the record. */
static void test_lost_ring(void **state)
{
    struct place *place = *state;
    struct log_event event;
    struct log_batch batch = {0};
    struct local_conn *conn = NULL;
    struct append_place where;
    struct log_record record = {.topic = "handoff", .partition = 0, .value = "v", .value_len = 1};
    struct local_member *member = place_member(place, "w", &event);
    struct log_reader *reader = NULL;
    OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    OK(log_reader_open(place->log, "handoff", 0, 0, LOG_READ_committed, &reader, err));
    OK(log_reader_next(reader, 1, 1, &batch, err)); /* listens from now on */

    OK(local_conn_take((struct local_log *)place->log, &conn, err));
    struct append append = {.conn = conn};
    OK(local_begin(conn, 1000, err));
    OK(append_record(&append, &record, wall_now(), &where, err));
    OK(append_finish(&append, err));
    OK(local_commit(conn, NULL, err));
    append_done(&append); /* without append_ring */
    local_conn_give(conn);

    OK(log_reader_next(reader, 1, 10000, &batch, err));
    assert_int_equal(batch.count, 1);
    batch.count = 0;
    for (int64_t end_ns = mono_ns() + 10000000000; batch.count == 0 && mono_ns() < end_ns;) {
        struct pollfd waited = {.fd = log_member_fd(&member->base), .events = POLLIN};
        poll(&waited, 1, 1000);
        OK(log_member_poll(&member->base, &event, err));
        OK(log_member_fetch(&member->base, 0, 0, 1, SIZE_MAX, &batch, err));
    }
    assert_int_equal(batch.count, 1);
    log_reader_close(reader);
    log_batch_free(&batch);
    log_member_close(&member->base, true, 1000);
}

/* In a process of its own, forked before SQLite was used: opens the log, joins, and waits. */
static _Noreturn void be_other(struct place *place, int go)
{
    char byte;
    struct log_event event;
    struct log *log = NULL;
    struct log_member *member = NULL;
    struct log_member_spec spec = {.group = "group",
                                   .worker = "other",
                                   .boot = boot_id_new(),
                                   .inputs = {"handoff", "control"},
                                   .session_ms = 3 * SLOW_MS,
                                   .heartbeat_ms = SLOW_MS};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(go, &byte, 1) != 1 || log_open(&place->config, &log, NULL) != BATON_OK ||
        log_member_open(log, &spec, &member, NULL) != BATON_OK ||
        log_member_poll(member, &event, NULL) != BATON_OK) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

/* A death is an event: the partitions move at once, long before a heartbeat or a session is over.
 */
static void test_death_is_an_event(void **state)
{
    struct place *place = *state;
    int go[2];
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        be_other(place, go[0]);
    }
    OK(log_create(&place->config, err));
    OK(log_open(&place->config, &place->log, err));
    place_topic(place, "handoff", LOG_CLEANUP_delete, -1, 0);
    place_topic(place, "control", LOG_CLEANUP_delete, -1, 0);
    struct local_member *member = (struct local_member *)slow_member(place->log, "here");
    assert_int_equal(await(member, LOG_EVENT_assigned).count, 2);
    assert_int_equal(write(go[1], "g", 1), 1);
    await(member, LOG_EVENT_revoked);
    assert_int_equal(await(member, LOG_EVENT_assigned).count, 1);

    int status = 0;
    int64_t start_ns = mono_ns();
    kill(pid, SIGKILL);
    await(member, LOG_EVENT_revoked);
    assert_int_equal(await(member, LOG_EVENT_assigned).count, 2);
    assert_true(mono_ns() - start_ns < (int64_t)SLOW_MS / 4 * 1000000);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(go[0]);
    close(go[1]);
    log_member_close(&member->base, true, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(test_slots),
        LOG_TEST(test_bells_wake),
        LOG_TEST(test_lost_ring),
        PLACE_TEST(test_death_is_an_event),
        LOG_TEST(test_deaf_member),
        LOG_TEST(test_idle_fetch_reads_nothing),
        LOG_TEST(test_who_slept_does_not_judge),
        LOG_TEST(test_deleted_slots),
        LOG_TEST(test_replaced_log),
        LOG_TEST(test_away_before_the_host_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
