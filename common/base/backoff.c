/* Delays between tries. Called by worker/failure_table.c and worker/executor/run_child.c.
 */
#include "common/base/backoff.h"

#include "common/base/check.h"
#include "common/base/id.h"

int64_t backoff_delay_drawn_ms(const struct backoff *backoff, int n, int64_t floor_ms, double draw)
{
    BATON_PRE(n >= 1 && backoff->first_ms >= 0 && backoff->factor >= 1 && backoff->jitter >= 0 &&
              backoff->jitter <= 1);
    double delay = (double)backoff->first_ms;
    double max = (double)backoff->max_ms;
    for (int i = 1; i < n && delay < max && delay > 0 && backoff->factor > 1; i++) {
        delay *= backoff->factor;
    }
    delay = delay < max ? delay : max;
    delay *= 1 + backoff->jitter * (2 * draw - 1);
    int64_t delay_ms = (int64_t)(delay + 0.5);
    return delay_ms > floor_ms ? delay_ms : floor_ms;
}

int64_t backoff_delay_ms(const struct backoff *backoff, int n, int64_t floor_ms)
{
    uint32_t draw;
    random_bytes(&draw, sizeof(draw));
    return backoff_delay_drawn_ms(backoff, n, floor_ms, (double)draw / (double)UINT32_MAX);
}
