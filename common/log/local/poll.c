/*
 * A member's poll: what has happened to the group, and the duties of a heartbeat. Called by common/log/log.c.
 *
 *      out --join--> waiting --assigned--> told --revoked--> waiting
 *       ^                                   |
 *       +---------------lost----------------+
 *
 * The descriptor is an epoll over the bells of the group and of both inputs, a timer, the pidfds of
 * the other members and a wake-up to itself. Only the poll takes anything off them, and the fetches
 * that follow it look by the bits it has set: what comes after the poll keeps the descriptor
 * readable.
 */
#include "common/log/local/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 16
#define KEEP_SOON_MS 1000

static void all_fresh(struct local_member *member)
{
    for (int input = 0; input < LOG_INPUTS; input++) {
        member->fresh[input] = member->assigned;
    }
}

static void hear_bells(struct local_member *member)
{
    int watch = 0;
    bool gone = false;
    while (member->bell_fd >= 0 && bell_heard(member->bell_fd, &watch, &gone)) {
        if (gone) {
            /* Somebody has deleted the bell: from now on this member looks by itself. */
            close(member->bell_fd);
            member->bell_fd = -1;
            member_set_timer(member);
            break;
        }
        if (watch == member->watch_group || watch < 0) {
            member->look = true;
        }
        for (int input = 0; input < LOG_INPUTS; input++) {
            if (watch == member->watch_inputs[input] || watch < 0) {
                member->fresh[input] = member->assigned;
            }
        }
    }
}

static void peer_died(struct local_member *member, int pidfd)
{
    for (size_t i = 0; i < member->n_peers; i++) {
        if (member->peers[i].pidfd == pidfd) {
            close(pidfd);
            member->peers[i] = member->peers[--member->n_peers];
            member->bury = true;
            return;
        }
    }
}

/* Takes everything off the descriptor. */
static void hear(struct local_member *member)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(member->epoll_fd, events, EVENTS_AT_ONCE, 0);
    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        uint64_t count;
        if (fd == member->bell_fd) {
            hear_bells(member);
        } else if (fd == member->timer_fd || fd == member->wake_fd) {
            ssize_t got = read(fd, &count, sizeof(count));
            (void)got; /* it only had to become unreadable */
        } else {
            peer_died(member, fd);
        }
    }
    if (member->bell_fd < 0) {
        member->look = true;
        all_fresh(member);
    }
}

static bool peer_known(const struct local_member *member, const struct group_row *row)
{
    for (size_t i = 0; i < member->n_peers; i++) {
        if (member->peers[i].slot == row->slot && strcmp(member->peers[i].boot, row->boot) == 0) {
            return true;
        }
    }
    return false;
}

/* Watches the process of another member. Without a pidfd (another pid namespace) the duties see. */
static void peer_watch(struct local_member *member, const struct group_row *row)
{
    int32_t pid = 0;
    struct member_peer peer = {.slot = row->slot, .pidfd = -1};
    memcpy(peer.boot, row->boot, sizeof(peer.boot));
    slot_look(member->conn->log, row->slot, row->boot, &pid);
    if (pid <= 0 || pid == getpid() || (peer.pidfd = pidfd_open(pid, 0)) < 0) {
        return;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.fd = peer.pidfd};
    struct member_peer *peers =
        realloc(member->peers, (member->n_peers + 1) * sizeof(*member->peers));
    if (peers != NULL) {
        member->peers = peers;
    }
    if (peers == NULL || epoll_ctl(member->epoll_fd, EPOLL_CTL_ADD, peer.pidfd, &event) != 0) {
        close(peer.pidfd);
        return;
    }
    member->peers[member->n_peers++] = peer;
}

static bool row_is_peer(const struct group_row *rows, size_t count, const struct member_peer *peer)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].slot == peer->slot && strcmp(rows[i].boot, peer->boot) == 0) {
            return true;
        }
    }
    return false;
}

/* Looks at all members: watches the new, forgets the gone, notes who must be removed. */
static baton_code look_around(struct local_member *member, struct baton_error *err)
{
    struct group_row *rows = NULL;
    size_t count = 0;
    baton_code rc = group_rows(member->conn, member->group_id, &rows, &count, err);
    if (rc != BATON_OK) {
        return rc;
    }
    for (size_t i = 0; i < member->n_peers;) {
        if (row_is_peer(rows, count, &member->peers[i])) {
            i++;
        } else {
            close(member->peers[i].pidfd);
            member->peers[i] = member->peers[--member->n_peers];
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].worker, member->worker) == 0) {
            continue;
        }
        if (!group_row_stays(member->conn->log, &rows[i], member->judges)) {
            member->bury = true;
        } else if (rows[i].away_until == 0 && !peer_known(member, &rows[i])) {
            peer_watch(member, &rows[i]);
        }
    }
    free(rows);
    return BATON_OK;
}

/* What may work later is tried later: neither a full disk nor a busy log ends a membership. */
static baton_code later(baton_code rc)
{
    return baton_code_class(rc) == BATON_CLASS_retry ? BATON_OK : rc;
}

static baton_code keep_house(struct local_member *member, int64_t now_ms, struct baton_error *err)
{
    bool more = false;
    if (now_ms < member->keep_at) {
        return BATON_OK;
    }
    baton_code rc = local_keep(member->conn, &member->keep_cursor, &more, err);
    member->keep_at = now_ms + (more ? KEEP_SOON_MS : KEEP_EVERY_MS);
    db_rest(&member->conn->db); /* what a busy hour has cached; under load it is back in a moment */
    return later(rc);
}

/*
 * Once a heartbeat: this member is heard, looks at everything itself (a ring may have been lost),
 * and at the others. Who was stopped for longer than two heartbeats has not given them time to be
 * heard (the whole host may have slept), and judges nobody before its next beat.
 */
static baton_code duties(struct local_member *member, struct baton_error *err)
{
    int64_t now_ms = mono_now().v;
    int64_t pause_ms = now_ms - member->duties_at;
    slot_beat(&member->slot);
    if (pause_ms >= 0 && pause_ms < member->heartbeat_ms) {
        return BATON_OK;
    }
    member->judges = pause_ms >= 0 && pause_ms < 2 * member->heartbeat_ms;
    member->duties_at = now_ms;
    member->look = true;
    all_fresh(member);
    baton_code rc = local_log_there(member->conn->log, err);
    if (rc != BATON_OK || member->state == MEMBER_out) {
        return rc;
    }
    rc = look_around(member, err);
    return rc == BATON_OK ? keep_house(member, now_ms, err) : rc;
}

static baton_code bury(struct local_member *member, struct baton_error *err)
{
    baton_code rc = member_bury(member, err);
    if (rc == BATON_OK) {
        member->bury = false;
        member->look = true;
    } else if (rc == BATON_E_timed_out) {
        member_wake(member); /* somebody writes: once more, at once */
    }
    return later(rc);
}

static void tell_assigned(struct local_member *member, const struct standing *standing,
                          struct log_event *event)
{
    event->kind = LOG_EVENT_assigned;
    event->generation = standing->generation;
    for (int32_t no = 0; no < LOG_PARTITIONS_MAX; no++) {
        if ((standing->owned >> no & 1) != 0) {
            event->partitions[event->count++] = no;
        }
        for (int input = 0; input < LOG_INPUTS; input++) {
            member->pos[input][no] = LOG_OFFSET_NONE;
        }
    }
    member->state = MEMBER_told;
    member->generation = standing->generation;
    member->assigned = standing->owned;
    memset(member->fresh, 0, sizeof(member->fresh));
}

static void tell_gone(struct local_member *member, enum log_event_kind kind,
                      struct log_event *event)
{
    event->kind = kind;
    event->generation = member->generation;
    for (int32_t no = 0; no < LOG_PARTITIONS_MAX; no++) {
        if ((member->assigned >> no & 1) != 0) {
            event->partitions[event->count++] = no;
        }
    }
    member->state = kind == LOG_EVENT_lost ? MEMBER_out : MEMBER_waiting;
    member->assigned = 0;
    member_wake(member); /* the next poll has more to tell */
}

/* One step of the diagram above. */
static baton_code step(struct local_member *member, struct log_event *event,
                       struct baton_error *err)
{
    struct standing standing;
    baton_code rc;

    if (member->state == MEMBER_out) {
        rc = slot_keep(member->conn->log, &member->boot, member->session_ms, &member->slot, err);
        if (rc != BATON_OK) {
            return later(rc); /* the timer comes back to it */
        }
        rc = member_join(member, LOCAL_POLL_WAIT_MS, err);
        if (rc == BATON_E_timed_out) {
            member_wake(member);
            return BATON_OK;
        }
        if (rc != BATON_OK) {
            return rc;
        }
        member->state = MEMBER_waiting;
    }
    if (member->state == MEMBER_told && !member->look) {
        return BATON_OK;
    }
    if ((rc = member_standing(member, &standing, err)) != BATON_OK) {
        return rc;
    }
    member->look = false;
    if (standing.twin) {
        return baton_fail(err, BATON_E_twin,
                          "group %s: a newer process runs as worker %s: give each process its own "
                          "id (--id)",
                          member->group, member->worker);
    }
    switch (member->state) {
    case MEMBER_told:
        if (!standing.member) {
            tell_gone(member, LOG_EVENT_lost, event);
        } else if (standing.generation != member->generation) {
            tell_gone(member, LOG_EVENT_revoked, event);
        }
        return BATON_OK;
    case MEMBER_waiting:
        if (!standing.member) {
            member->state = MEMBER_out; /* removed before it was told anything */
            member_wake(member);
            return BATON_OK;
        }
        tell_assigned(member, &standing, event);
        return look_around(member, err);
    case MEMBER_out:
        break;
    }
    return BATON_OK;
}

baton_code local_member_poll(struct log_member *base, struct log_event *ret_event,
                             struct baton_error *err)
{
    struct local_member *member = (struct local_member *)base;
    struct log_event event = {.kind = LOG_EVENT_none};
    baton_code rc;

    hear(member);
    if ((rc = duties(member, err)) != BATON_OK) {
        return rc;
    }
    if (member->bury && member->state != MEMBER_out && (rc = bury(member, err)) != BATON_OK) {
        return rc;
    }
    if ((rc = step(member, &event, err)) == BATON_OK) {
        *ret_event = event;
    }
    return rc;
}
