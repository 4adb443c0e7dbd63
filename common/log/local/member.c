/*
 * A member of a group: opening, closing, its place in the inputs, fetching. Called by common/log/log.c.
 *
 * Out: membership.c (its place in the group), commit.c; poll.c has what happens to it.
 */
#include "common/log/local/internal.h"

#include "common/base/check.h"
#include "common/log/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SESSION_MS_MIN 200 /* shorter, and a busy host declares its own processes dead */
#define SESSION_MS_MAX 1800000

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void member_free(struct local_member *member)
{
    if (member == NULL) {
        return;
    }
    for (size_t i = 0; i < member->n_peers; i++) {
        close(member->peers[i].pidfd);
    }
    free(member->peers);
    close_fd(member->bell_fd);
    close_fd(member->timer_fd);
    close_fd(member->wake_fd);
    close_fd(member->epoll_fd);
    slot_free(&member->slot);
    local_conn_give(member->conn);
    member_forget_unsure(member);
    for (int input = 0; input < LOG_INPUTS; input++) {
        free(member->inputs[input]);
    }
    free(member->group);
    free(member->worker);
    free(member);
}

static baton_code check_spec(const struct log_member_spec *spec, struct baton_error *err)
{
    if (spec->session_ms < SESSION_MS_MIN || spec->session_ms > SESSION_MS_MAX ||
        spec->heartbeat_ms < 10 || spec->heartbeat_ms * 2 > spec->session_ms) {
        return baton_fail(err, BATON_E_bad_config,
                          "group %s: session %lld ms with heartbeat %lld ms: a session is %d to %d "
                          "ms and at least two heartbeats",
                          spec->group, (long long)spec->session_ms, (long long)spec->heartbeat_ms,
                          SESSION_MS_MIN, SESSION_MS_MAX);
    }
    if (!plain_id_valid(spec->worker, strlen(spec->worker)) || !local_name_valid(spec->group)) {
        return baton_fail(err, BATON_E_bad_config,
                          "group %.100s, worker %.100s: names are made of [a-z0-9._-]", spec->group,
                          spec->worker);
    }
    return BATON_OK;
}

/* Copies the specification. */
static struct local_member *member_new(const struct log_member_spec *spec)
{
    struct local_member *member = calloc(1, sizeof(*member));
    if (member == NULL) {
        return NULL;
    }
    member->base.ops = &local_ops;
    member->slot.fd = -1;
    member->epoll_fd = member->bell_fd = member->timer_fd = member->wake_fd = -1;
    member->watch_group = -1;
    member->boot = spec->boot;
    member->session_ms = spec->session_ms;
    member->heartbeat_ms = spec->heartbeat_ms;
    member->group = strdup(spec->group);
    member->worker = strdup(spec->worker);
    bool copied = member->group != NULL && member->worker != NULL;
    for (int input = 0; input < LOG_INPUTS; input++) {
        member->watch_inputs[input] = -1;
        member->inputs[input] = strdup(spec->inputs[input]);
        copied = copied && member->inputs[input] != NULL;
    }
    if (!copied) {
        member_free(member);
        return NULL;
    }
    return member;
}

static baton_code find_inputs(struct local_member *member, struct baton_error *err)
{
    for (int input = 0; input < LOG_INPUTS; input++) {
        struct local_topic topic;
        baton_code rc = local_topic_find(member->conn, member->inputs[input], &topic, err);
        if (rc != BATON_OK) {
            return rc;
        }
        if (input > 0 && topic.about.partitions != member->partitions) {
            return baton_fail(
                err, BATON_E_topic_missing,
                "topic %s has %d partitions and %s has %d: the inputs of a group have "
                "the same number; make them anew with `baton topics apply`",
                member->inputs[0], member->partitions, member->inputs[input],
                topic.about.partitions);
        }
        member->partitions = topic.about.partitions;
        member->first_part[input] = topic.first_part;
    }
    return BATON_OK;
}

static bool add_to_epoll(const struct local_member *member, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd >= 0 && epoll_ctl(member->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool listen_to_bells(struct local_member *member)
{
    const struct local_log *log = member->conn->log;
    member->bell_fd = bell_open();
    if (member->bell_fd < 0) {
        return false;
    }
    member->watch_group = bell_watch(log, member->bell_fd, BELL_group, member->group);
    bool heard = member->watch_group >= 0;
    for (int input = 0; input < LOG_INPUTS; input++) {
        member->watch_inputs[input] =
            bell_watch(log, member->bell_fd, BELL_topic, member->inputs[input]);
        heard = heard && member->watch_inputs[input] >= 0;
    }
    return heard && add_to_epoll(member, member->bell_fd);
}

void member_set_timer(const struct local_member *member)
{
    int64_t period_ms = member->bell_fd >= 0 || member->heartbeat_ms < LOCAL_DEAF_MS
                            ? member->heartbeat_ms
                            : LOCAL_DEAF_MS;
    struct timespec period = {period_ms / 1000, period_ms % 1000 * 1000000};
    struct itimerspec timer = {.it_interval = period, .it_value = period};
    timerfd_settime(member->timer_fd, 0, &timer, NULL);
}

static baton_code open_descriptors(struct local_member *member, struct baton_error *err)
{
    member->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    member->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    member->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (member->epoll_fd < 0 || !add_to_epoll(member, member->timer_fd) ||
        !add_to_epoll(member, member->wake_fd)) {
        return baton_fail(err, BATON_E_service_unavailable,
                          "group %s: no descriptors left: %m; raise the limit of open files",
                          member->group);
    }
    if (!listen_to_bells(member)) {
        close_fd(member->bell_fd); /* no watches left on this host: look by the clock */
        member->bell_fd = -1;
    }
    member_set_timer(member);
    return BATON_OK;
}

baton_code local_member_open(struct log *base, const struct log_member_spec *spec,
                             struct log_member **ret_member, struct baton_error *err)
{
    struct local_log *log = (struct local_log *)base;
    struct local_member *member = NULL;
    baton_code rc = check_spec(spec, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if ((member = member_new(spec)) == NULL) {
        return baton_fail(err, BATON_E_no_memory, "%s: out of memory", log->path);
    }
    if ((rc = local_conn_take(log, &member->conn, err)) != BATON_OK ||
        (rc = find_inputs(member, err)) != BATON_OK ||
        (rc = slot_take(log, &member->boot, member->session_ms, &member->slot, err)) != BATON_OK ||
        (rc = open_descriptors(member, err)) != BATON_OK ||
        (rc = member_join(member, LOCAL_WAIT_MS, err)) != BATON_OK) {
        member_free(member);
        return rc;
    }
    member->state = MEMBER_waiting;
    member->duties_at = mono_now().v;
    member_wake(member);
    *ret_member = &member->base;
    return BATON_OK;
}

void local_member_close(struct log_member *base, bool leave_group, int64_t timeout_ms)
{
    struct local_member *member = (struct local_member *)base;
    if (member->state != MEMBER_out) {
        /* If it fails, the lock that goes with the slot tells the others all the same. */
        baton_code ignored = member_leave(member, leave_group, timeout_ms, NULL);
        (void)ignored;
    }
    member_free(member);
}

int local_member_fd(const struct log_member *base)
{
    return ((const struct local_member *)base)->epoll_fd;
}

void member_wake(struct local_member *member)
{
    uint64_t one = 1;
    ssize_t n = write(member->wake_fd, &one, sizeof(one));
    (void)n; /* full: it is readable already */
}

baton_code local_member_committed(struct log_member *base, const int32_t *partitions, size_t count,
                                  int64_t timeout_ms, int64_t (*ret_offsets)[LOG_PARTITIONS_MAX],
                                  struct baton_error *err)
{
    struct local_member *member = (struct local_member *)base;
    (void)timeout_ms; /* a transaction that is open is not seen, so there is nothing to wait for */
    for (int input = 0; input < LOG_INPUTS; input++) {
        for (size_t i = 0; i < count; i++) {
            BATON_PRE(partitions[i] >= 0 && partitions[i] < member->partitions);
            baton_code rc = group_committed(member->conn, member->group_id,
                                            member->first_part[input] + partitions[i],
                                            &ret_offsets[input][i], err);
            if (rc != BATON_OK) {
                return rc;
            }
        }
    }
    return BATON_OK;
}

baton_code local_member_seek(struct log_member *base, int input, int32_t partition, int64_t offset,
                             struct baton_error *err)
{
    struct local_member *member = (struct local_member *)base;
    BATON_PRE(partition >= 0 && partition < member->partitions && offset >= 0);
    (void)err;
    member->pos[input][partition] = offset;
    member->fresh[input] |= (uint64_t)1 << partition & member->assigned;
    return BATON_OK;
}

baton_code local_member_fetch(struct log_member *base, int input, int32_t partition, size_t max,
                              size_t bytes_max, struct log_batch *batch, struct baton_error *err)
{
    struct local_member *member = (struct local_member *)base;
    BATON_PRE(partition >= 0 && partition < member->partitions);
    uint64_t bit = (uint64_t)1 << partition;
    int64_t *pos = &member->pos[input][partition];

    if ((member->fresh[input] & bit) == 0 || *pos == LOG_OFFSET_NONE) {
        if (!batch_begin(batch, member->inputs[input], partition)) {
            return baton_fail(err, BATON_E_no_memory, "%s: out of memory", member->conn->log->path);
        }
        batch->next_offset = *pos;
        batch->at_end = *pos != LOG_OFFSET_NONE;
        return BATON_OK;
    }
    baton_code rc =
        local_read(member->conn, member->inputs[input], partition,
                   member->first_part[input] + partition, pos, max, bytes_max, batch, err);
    if (rc == BATON_OK && batch->at_end) {
        member->fresh[input] &= ~bit;
    }
    return rc;
}

int64_t local_member_end(struct log_member *base, int input, int32_t partition)
{
    struct local_member *member = (struct local_member *)base;
    int64_t low = 0;
    int64_t next = 0;
    BATON_PRE(partition >= 0 && partition < member->partitions);
    return local_part_marks(member->conn, member->first_part[input] + partition, &low, &next,
                            NULL) == BATON_OK
               ? next
               : LOG_OFFSET_NONE;
}
