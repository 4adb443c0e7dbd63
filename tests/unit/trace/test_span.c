/* Spans: the grammar of traceparent, ids, the bytes of one span, lists that a batch drops or sends, and the bound of
 * what waits. That the bytes are OTLP's is shown by tests/fleet/test_86_traces.py, with the official definitions. */
#include "common/base/id.h"
#include "common/base/metrics.h"
#include "common/trace/tracer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static struct span sample(void)
{
    struct span span = {.trace = TRACE,
                        .id = {"00f067aa0ba902b7"},
                        .parent = PARENT,
                        .name = "attempt",
                        .target = "alpha",
                        .kind = SPAN_KIND_internal,
                        .start = {1000},
                        .end = {1500}};
    return span;
}

static void test_traceparent_grammar(void **state)
{
    static const char *const wrong[] = {
        "",
        "00",
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-011",
        "01-" TRACE "-" PARENT "-01",
        "ff-" TRACE "-" PARENT "-01",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
        "00-" TRACE "-" PARENT "-0G",
    };
    struct traceparent parsed;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        parsed.trace[0] = '?';
        assert_false(traceparent_parse(wrong[i], strlen(wrong[i]), &parsed));
        assert_int_equal(parsed.trace[0], '?');
    }
    assert_false(traceparent_parse(NULL, 0, &parsed));
    for (int flags = 0; flags < 256; flags++) {
        char text[TRACEPARENT_LEN + 1];
        snprintf(text, sizeof(text), "00-" TRACE "-" PARENT "-%02x", (unsigned)flags);
        assert_true(traceparent_parse(text, strlen(text), &parsed));
        assert_string_equal(parsed.trace, TRACE);
        assert_string_equal(parsed.span, PARENT);
        assert_int_equal(parsed.sampled, flags & 1);
        text[53] = '0'; /* the other flags are not handed on */
        text[54] = (flags & 1) != 0 ? '1' : '0';
        assert_string_equal(traceparent_text_of(&parsed).s, text);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void test_ids_are_derived_and_differ(void **state)
{
    char seen[3000][17];
    size_t n = 0;
    (void)state;
    static const char *const what[] = {"attempt", "settle", "receive"};
    for (size_t i = 0; i < 1000; i++) {
        for (size_t k = 0; k < 3; k++) {
            const struct span_id id = span_id_of(what[k], TRACE, (int64_t)i);
            assert_true(hex_valid(id.s, strlen(id.s), 16));
            assert_string_equal(id.s, span_id_of(what[k], TRACE, (int64_t)i).s);
            memcpy(seen[n++], id.s, 17);
        }
    }
    qsort(seen, n, sizeof(seen[0]), by_text);
    for (size_t i = 1; i < n; i++) {
        assert_string_not_equal(seen[i - 1], seen[i]);
    }
    assert_string_not_equal(span_id_of("a", "bc", 1).s, span_id_of("ab", "c", 1).s);
}

static void test_bytes_of_a_span(void **state)
{
    static const char wanted[] =
        "\x0a\x10\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c" /* trace_id */
        "\x12\x08\x00\xf0\x67\xaa\x0b\xa9\x02\xb7"                                 /* span_id */
        "\x22\x08\xb7\xad\x6b\x71\x69\x20\x33\x31"                                 /* parent */
        "\x2a\x0d"
        "attempt alpha"
        "\x30\x01"
        "\x39\x00\xca\x9a\x3b\x00\x00\x00\x00" /* start: 1e9 ns */
        "\x4a\x25\x0a\x18"                     /* the attribute that every span has */
        "messaging.operation.name"
        "\x12\x09\x0a\x07"
        "attempt";
    struct span_list list = {NULL, NULL, 0};
    struct span span = sample();
    (void)state;
    span_add(&list, &span);
    assert_int_equal(list.count, 1);
    assert_false(list.first->open);
    /* then flags: sampled; the end: 1.5e9 ns */
    assert_int_equal(list.first->len, sizeof(wanted) - 1 + 6 + 9);
    assert_memory_equal(list.first->bytes, wanted, sizeof(wanted) - 1);
    assert_memory_equal(list.first->bytes + list.first->len - 15,
                        "\x85\x01\x01\x00\x00\x00\x41\x00\x2f\x68\x59\x00\x00\x00\x00", 15);
    span_list_clear(&list);
    assert_int_equal(list.count, 0);
    assert_null(list.first);
}

static bool has(const struct span_bytes *bytes, const char *text)
{
    return memmem(bytes->bytes, bytes->len, text, strlen(text)) != NULL;
}

static void test_attributes_are_cut_and_left_out(void **state)
{
    char text[SPAN_TEXT_MAX + 100];
    struct span_list list = {NULL, NULL, 0};
    struct span span = sample();
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    span_text(&span, SPAN_task, text);
    span_text(&span, SPAN_run, "");
    span_text(&span, SPAN_to, NULL);
    span_int(&span, SPAN_attempt, 0);
    span_int(&span, SPAN_partition, 7);
    span.error = "lost";
    span_add(&list, &span);
    assert_true(has(list.first, "baton.task.id"));
    text[SPAN_TEXT_MAX] = '\0';
    assert_true(has(list.first, text));
    text[SPAN_TEXT_MAX] = 'x';
    text[SPAN_TEXT_MAX + 1] = '\0';
    assert_false(has(list.first, text));
    assert_false(has(list.first, "baton.run.id"));
    assert_false(has(list.first, "baton.to"));
    assert_true(has(list.first, "baton.attempt"));
    assert_true(has(list.first, "error.type"));
    span_list_clear(&list);
}

static void test_open_spans_end_when_they_are_sent(void **state)
{
    static const char *const resource[] = {"service.name", "alpha", NULL};
    struct span_list list = {NULL, NULL, 0};
    struct span span = sample();
    struct buf out = BUF_INIT;
    (void)state;
    span.end.v = 0;
    span_add(&list, &span);
    span.start.v = 9000; /* begun after the end, by another clock: it ends as it begins */
    span_add(&list, &span);
    span_list_end(&list, (struct wall_ms){1500});
    span_request(&list, resource, &out);
    assert_true(buf_ok(&out));
    assert_non_null(memmem(out.data, out.len, "\x41\x00\x2f\x68\x59\x00\x00\x00\x00", 9));
    assert_non_null(memmem(out.data, out.len, "\x41\x00\x1a\x71\x18\x02\x00\x00\x00", 9));
    assert_int_equal(out.data[0], 0x0a);
    buf_done(&out);
    span_list_clear(&list);
}

/* ---- the queue ---- */

/* An endpoint that takes connections and never answers. */
static int silent(char *endpoint, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 4) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(endpoint, size, "http://127.0.0.1:%d/v1/traces", ntohs(at.sin_port));
    return fd;
}

static void give(struct tracer *tracer, size_t n)
{
    struct span_list list = {NULL, NULL, 0};
    for (size_t i = 0; i < n; i++) {
        struct span span = sample();
        span.id = span_id_of("attempt", TRACE, (int64_t)i);
        span_add(&list, &span);
    }
    tracer_send(tracer, &list);
    assert_int_equal(list.count, 0);
    assert_null(list.first);
}

static void test_what_waits_is_bounded(void **state)
{
    char endpoint[64];
    struct config config = {.traces = {.endpoint = endpoint, .timeout_ms = 60000, .queue = 64}};
    struct tracer *tracer = NULL;
    struct baton_error err;
    (void)state;
    const int fd = silent(endpoint, sizeof(endpoint));
    metrics_test_reset();
    assert_int_equal(tracer_open(&config, "alpha", "w1", &tracer, &err), BATON_OK);
    const int64_t begun = mono_now().v;
    give(tracer, 1000); /* in one moment: what is beyond the queue goes */
    assert_true(mono_now().v - begun < 5000);
    assert_int_equal(metric_get(METRIC_spans_dropped), 1000 - 64);
    tracer_close(tracer, 100); /* never took any: all are counted */
    assert_true(mono_now().v - begun < 30000);
    assert_int_equal(metric_get(METRIC_spans_dropped), 1000);
    assert_int_equal(metric_get(METRIC_spans_exported), 0);
    close(fd);
}

static void test_none_is_configured(void **state)
{
    const struct config config = {.traces = {.endpoint = NULL}};
    struct tracer *tracer = (struct tracer *)&config;
    struct baton_error err;
    (void)state;
    metrics_test_reset();
    assert_int_equal(tracer_open(&config, "alpha", "w1", &tracer, &err), BATON_OK);
    assert_null(tracer);
    give(NULL, 3);
    tracer_close(NULL, 1000);
    assert_int_equal(metric_get(METRIC_spans_dropped), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traceparent_grammar),
        cmocka_unit_test(test_ids_are_derived_and_differ),
        cmocka_unit_test(test_bytes_of_a_span),
        cmocka_unit_test(test_attributes_are_cut_and_left_out),
        cmocka_unit_test(test_open_spans_end_when_they_are_sent),
        cmocka_unit_test(test_what_waits_is_bounded),
        cmocka_unit_test(test_none_is_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
