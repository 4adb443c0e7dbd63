/* Clocks and RFC 3339. Called from everywhere that waits, writes or reads a time. */
#include "common/base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_llong test_wall;
static atomic_llong test_mono;

static int64_t read_ns(clockid_t id)
{
    struct timespec at;
    clock_gettime(id, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

struct wall_ms wall_now(void)
{
    int64_t set = atomic_load(&test_wall);
    return (struct wall_ms){set != 0 ? set : read_ns(CLOCK_REALTIME) / 1000000};
}

struct mono_ms mono_now(void)
{
    int64_t set = atomic_load(&test_mono);
    return (struct mono_ms){set != 0 ? set : read_ns(CLOCK_BOOTTIME) / 1000000};
}

int64_t mono_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

void clock_test_set(struct wall_ms wall, struct mono_ms mono)
{
    atomic_store(&test_wall, wall.v);
    atomic_store(&test_mono, mono.v);
}

/* Days since 1970-01-01 of a proleptic Gregorian date. */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = y / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

struct time_text wall_text(struct wall_ms at)
{
    int64_t ms = at.v;
    if (ms < 0) {
        ms = 0;
    }
    if (ms > 253402300799999) { /* 9999-12-31T23:59:59.999Z */
        ms = 253402300799999;
    }
    int64_t days = ms / 86400000;
    int64_t rest = ms % 86400000;
    int64_t z = days + 719468;
    int64_t era = z / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int64_t day = doy - (153 * mp + 2) / 5 + 1;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;
    int64_t year = yoe + era * 400 + (month <= 2);
    struct time_text text = {"YYYY-MM-DDTHH:MM:SS.mmmZ"};
    const struct {
        int at;
        int digits;
        int64_t value;
    } parts[] = {{0, 4, year},
                 {5, 2, month},
                 {8, 2, day},
                 {11, 2, rest / 3600000},
                 {14, 2, rest / 60000 % 60},
                 {17, 2, rest / 1000 % 60},
                 {20, 3, rest % 1000}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int64_t v = parts[i].value;
        for (int k = parts[i].digits - 1; k >= 0; k--, v /= 10) {
            text.s[parts[i].at + k] = (char)('0' + v % 10);
        }
    }
    return text;
}

static bool digits(const char *text, int n, int64_t *ret_value)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        v = v * 10 + (text[i] - '0');
    }
    *ret_value = v;
    return true;
}

bool wall_parse(const char *text, size_t text_len, struct wall_ms *ret_at)
{
    static const int month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t y;
    int64_t mo;
    int64_t d;
    int64_t h;
    int64_t mi;
    int64_t s;
    int64_t ms;
    if (text_len != TIME_TEXT_LEN || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':' || text[19] != '.' || text[23] != 'Z' ||
        !digits(text, 4, &y) || !digits(text + 5, 2, &mo) || !digits(text + 8, 2, &d) ||
        !digits(text + 11, 2, &h) || !digits(text + 14, 2, &mi) || !digits(text + 17, 2, &s) ||
        !digits(text + 20, 3, &ms)) {
        return false;
    }
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > month_days[mo - 1] ||
        (mo == 2 && d == 29 && !leap) || h > 23 || mi > 59 || s > 59) {
        return false;
    }
    ret_at->v = ((days_from_civil(y, mo, d) * 24 + h) * 60 + mi) * 60000 + s * 1000 + ms;
    return true;
}
