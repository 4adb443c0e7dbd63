/* Lines of a file or of standard input. Called by publish_lines.c. */
#include "producer/line_source.h"

#include "common/base/text.h"
#include "common/base/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64 * 1024)

static baton_code cannot(const char *what, struct baton_error *err)
{
    return baton_fail(err, BATON_E_invalid_request, "cannot %s: %s", what, strerror(errno));
}

/* A file without a name: nobody else sees it, and it goes with this process. */
static baton_code spool_make(int *ret_fd, struct baton_error *err)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    if (folder == NULL || folder[0] != '/') {
        folder = "/tmp";
    }
    if (snprintf(path, sizeof(path), "%s/baton-lines-XXXXXX", folder) >= (int)sizeof(path)) {
        return baton_fail(err, BATON_E_invalid_request, "TMPDIR is too long a path");
    }
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return baton_fail(err, BATON_E_invalid_request,
                          "cannot keep the lines in %s (TMPDIR) until all are checked: %s",
                          text_quote_of(folder).s, strerror(errno));
    }
    unlink(path);
    *ret_fd = fd;
    return BATON_OK;
}

baton_code line_source_open(const char *path, bool twice, size_t line_max,
                            struct line_source *ret_source, struct baton_error *err)
{
    struct line_source source = {.fd = -1, .wake_fd = -1, .spool = -1, .start = -1};
    struct sigaction hangup = {.sa_handler = SIG_DFL};
    struct stat st;
    baton_code rc = BATON_OK;
    source.fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (source.fd < 0 || fstat(source.fd, &st) != 0) {
        rc = baton_fail(err, BATON_E_invalid_request, "cannot open %s: %s", text_quote_of(path).s,
                        strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        rc = baton_fail(err, BATON_E_invalid_request,
                        "cannot read lines from %s: it is a folder; name a file, or - for standard "
                        "input",
                        text_quote_of(path).s);
    } else if (S_ISREG(st.st_mode)) {
        source.start = lseek(source.fd, 0, SEEK_CUR);
        source.size =
            source.start >= 0 && st.st_size > source.start ? st.st_size - source.start : 0;
    }
    if (rc == BATON_OK && twice && source.start < 0) {
        rc = spool_make(&source.spool, err);
    }
    (void)sigaction(SIGHUP, NULL, &hangup);
    if (rc == BATON_OK && !wake_open(&source.wake_fd)) {
        rc = baton_fail(err, BATON_E_unexpected, "a pipe cannot be made: %s", strerror(errno));
    }
    if (rc != BATON_OK) {
        line_source_close(&source);
        return rc;
    }
    if (hangup.sa_handler == SIG_IGN) {
        (void)sigaction(SIGHUP, &hangup, NULL); /* nohup: it goes on without its terminal */
    }
    line_reader_init(&source.reader, line_max);
    *ret_source = source;
    return BATON_OK;
}

void line_source_close(struct line_source *source)
{
    if (source->fd >= 0) {
        close(source->fd);
    }
    if (source->spool >= 0 && source->spool != source->fd) {
        close(source->spool);
    }
    line_reader_done(&source->reader);
    /* The pipe of the signals stays: a handler may write to it at any time. */
}

static bool spool_keep(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Reads one piece; *ret_ready false: nothing came in time. */
static baton_code feed(struct line_source *source, int wait_ms, bool *ret_ready, bool *ret_stop,
                       struct baton_error *err)
{
    char piece[PIECE];
    struct pollfd fds[2] = {{.fd = source->wake_fd, .events = POLLIN},
                            {.fd = source->fd, .events = POLLIN}};
    *ret_ready = true;
    if (poll(fds, 2, wait_ms) == 0) {
        *ret_ready = false;
        return BATON_OK;
    }
    if (fds[0].revents != 0) {
        *ret_stop = true;
        return BATON_OK;
    }
    if (fds[1].revents == 0) {
        return BATON_OK; /* a signal; the next look sees it in the pipe */
    }
    const ssize_t n = read(source->fd, piece, sizeof(piece));
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? BATON_OK : cannot("read the lines", err);
    }
    source->ended = n == 0;
    source->taken += n;
    if (n > 0 && source->spool >= 0 && source->spool != source->fd &&
        !spool_keep(source->spool, piece, (size_t)n)) {
        return cannot("keep the lines until all are checked", err);
    }
    if (n > 0 && !line_reader_feed(&source->reader, piece, (size_t)n)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a line");
    }
    return BATON_OK;
}

/* What stands there already; false: more has to be read. */
static bool take(struct line_source *source, enum line_event *ret_event, const char **ret_line,
                 size_t *ret_len)
{
    const enum line_state state = line_reader_next(&source->reader, ret_line, ret_len);
    const bool rest =
        state == LINE_none && source->ended && line_reader_rest(&source->reader, ret_line, ret_len);
    if (state == LINE_none && !rest) {
        *ret_event = LINE_EVENT_end;
        return source->ended;
    }
    source->number++;
    *ret_event = state == LINE_too_long ? LINE_EVENT_long : LINE_EVENT_line;
    return true;
}

baton_code line_source_next(struct line_source *source, int wait_ms, enum line_event *ret_event,
                            const char **ret_line, size_t *ret_len, struct baton_error *err)
{
    struct pollfd wake = {.fd = source->wake_fd, .events = POLLIN};
    bool ready = true;
    bool stop = poll(&wake, 1, 0) == 1;
    baton_code rc = BATON_OK;
    while (rc == BATON_OK && !stop && ready) {
        if (take(source, ret_event, ret_line, ret_len)) {
            return BATON_OK;
        }
        rc = feed(source, wait_ms, &ready, &stop, err);
    }
    *ret_event = stop ? LINE_EVENT_stop : LINE_EVENT_pause;
    return rc;
}

baton_code line_source_again(struct line_source *source, struct baton_error *err)
{
    const size_t max = source->reader.max;
    if (source->spool >= 0) {
        close(source->fd);
        source->fd = source->spool;
    }
    if (lseek(source->fd, source->spool >= 0 ? 0 : source->start, SEEK_SET) < 0) {
        return cannot("read the lines again", err);
    }
    line_reader_done(&source->reader);
    line_reader_init(&source->reader, max);
    source->taken = 0;
    source->number = 0;
    source->ended = false;
    return BATON_OK;
}
