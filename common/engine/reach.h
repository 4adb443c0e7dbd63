/*
 * A start whose log may be away: it waits until the log can be reached, and what the log refuses is
 * not asked again. Included by worker/start.c and producer/coordinator/start.c, which repeat
 * each step that needs the log for as long as reach_waits() says.
 */
#ifndef BATON_COMMON_ENGINE_REACH_H
#define BATON_COMMON_ENGINE_REACH_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/diag.h"

#include <stdbool.h>

/*
 * Whether a step that came to rc is worth another try: the log cannot be reached, it lies elsewhere
 * (a local one does not come by itself), and it is not a process that is to end when nothing is left
 * (`drain`). Then says so in the process's log, as an event of this name, as often as the limit lets it.
 */
bool reach_waits(const struct config *config, bool drain, baton_code rc,
                 const struct baton_error *err, const char *event, struct diag_limit *limit);

/* When the next try is due. */
struct mono_ms reach_next(void);

/* Waits for that: true if fd, which tells of signals, became readable before. */
bool reach_woken(int fd, struct mono_ms next);

#endif
