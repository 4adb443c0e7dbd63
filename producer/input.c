/*
 * What people hand to a command: files, KEY=VALUE, times. Called by cmd_publish.c, publish_line.c and cmd_runs_ask.c.
 */
#include "producer/input.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static baton_code too_large(const char *what, int64_t size, struct baton_error *err)
{
    char bytes[40];
    if (size < 0) {
        snprintf(bytes, sizeof(bytes), "more than %d", LIMIT_VALUE);
    } else {
        snprintf(bytes, sizeof(bytes), "%lld", (long long)size);
    }
    return baton_fail(
        err, BATON_E_record_too_large,
        "%s has %s bytes; a turn has at most %d (256 KiB) with everything in it: put it "
        "elsewhere and publish where it is",
        what, bytes, LIMIT_VALUE);
}

static baton_code read_all(int fd, const char *name, struct buf *out, struct baton_error *err)
{
    while (out->len <= LIMIT_VALUE) {
        char *at = buf_reserve(out, 16384);
        if (at == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for %s", name);
        }
        ssize_t n = read(fd, at, 16384);
        if (n == 0) {
            return BATON_OK;
        }
        if (n < 0 && errno != EINTR) {
            return baton_fail(err, BATON_E_invalid_request, "cannot read %s: %s", name,
                              strerror(errno));
        }
        out->len += n > 0 ? (size_t)n : 0;
    }
    return too_large(name, -1, err);
}

baton_code input_read(const char *path, struct buf *out, struct baton_error *err)
{
    struct stat st;
    struct text_quote name = text_quote_of(path);
    if (strcmp(path, "-") == 0) {
        return read_all(STDIN_FILENO, "standard input", out, err);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        baton_code rc =
            baton_fail(err, BATON_E_invalid_request, "cannot open %s: %s", name.s, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    baton_code rc = S_ISREG(st.st_mode) && st.st_size > LIMIT_VALUE
                        ? too_large(name.s, st.st_size, err)
                        : read_all(fd, name.s, out, err);
    close(fd);
    return rc;
}

baton_code input_data(const char *const *list, size_t count, struct buf *out,
                      struct baton_error *err)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(list[i], '=');
        if (equals == NULL || equals == list[i] || !text_utf8_valid(list[i], strlen(list[i]))) {
            return baton_fail(err, BATON_E_invalid_request,
                              "--data '%s' has not the form KEY=VALUE in UTF-8",
                              text_quote_of(list[i]).s);
        }
        jsonw_key_any(&w, list[i], (size_t)(equals - list[i]));
        jsonw_plain(&w, equals + 1, strlen(equals + 1));
    }
    jsonw_end(&w);
    return BATON_OK;
}

bool input_time_parse(const char *text, struct wall_ms *ret_at)
{
    char full[TIME_TEXT_LEN + 1];
    const size_t len = strlen(text);
    if (len == TIME_TEXT_LEN - 4 && text[len - 1] == 'Z') {
        snprintf(full, sizeof(full), "%.19s.000Z", text);
    } else {
        snprintf(full, sizeof(full), "%s", text);
    }
    return len <= TIME_TEXT_LEN && wall_parse(full, strlen(full), ret_at);
}

baton_code input_time(struct command *cmd, const char *option, struct wall_ms *ret_at,
                      struct baton_error *err)
{
    const char *text = command_text(cmd, option);
    if (text == NULL) {
        return BATON_OK;
    }
    if (!input_time_parse(text, ret_at)) {
        return baton_fail(err, BATON_E_invalid_request,
                          "--%s '%s' is no time in UTC, 2026-11-29T14:20:43Z", option,
                          text_quote_of(text).s);
    }
    return BATON_OK;
}
