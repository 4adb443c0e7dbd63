/*
 * Waiting for a log that is away. In: worker/start.c, producer/coordinator/start.c
 */
#include "common/engine/reach.h"

#include <poll.h>

#define RETRY_MS 1000

bool reach_waits(const struct config *config, bool drain, baton_code rc,
                 const struct baton_error *err, const char *event, struct diag_limit *limit)
{
    const bool away = rc == BATON_E_service_unavailable || rc == BATON_E_timed_out;
    if (!away || drain || config->log != LOG_KIND_kafka) {
        return false;
    }
    diag_limited(limit, DIAG_warn, event, D_TEXT("for", "log"), D_CODE("code", rc),
                 D_TEXT("error", err->text),
                 D_TEXT("meaning", "it starts by itself when the log can be reached"));
    return true;
}

struct mono_ms reach_next(void)
{
    return (struct mono_ms){mono_now().v + RETRY_MS};
}

bool reach_woken(int fd, struct mono_ms next)
{
    struct pollfd wake = {.fd = fd, .events = POLLIN};
    for (int64_t left; (left = next.v - mono_now().v) > 0;) {
        if (poll(&wake, 1, (int)left) == 1) {
            return true;
        }
    }
    return false;
}
