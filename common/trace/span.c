/*
 * Spans as OTLP has them: protobuf, field by field. The numbers are those of opentelemetry/proto/trace/v1/trace.proto,
 * against which tests/fleet reads what comes out.
 * In: common/trace/tracer.c, and who makes spans  Out: common/base/buf.h
 */
#include "common/trace/span.h"

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/id.h"
#include "common/base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_OF_MS 1000000
#define END_LEN 9 /* tag and eight bytes */

static const char *const keys[] = {
#define ATTRIBUTE_KEY(id, key) key,
    SPAN_ATTRIBUTES(ATTRIBUTE_KEY)
#undef ATTRIBUTE_KEY
};

/* ---- ids ---- */

/* Spreads the bits of FNV-1a, whose last bytes move few of them (the end of splitmix64). */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

struct span_id span_id_of(const char *what, const char *id, int64_t number)
{
    struct span_id span;
    uint64_t hash = hash_bytes(HASH_START, what, strlen(what) + 1);
    hash = hash_bytes(hash, id, strlen(id) + 1);
    hash = mixed(hash_bytes(hash, &number, sizeof(number)));
    snprintf(span.s, sizeof(span.s), "%016llx", (unsigned long long)(hash != 0 ? hash : 1));
    return span;
}

struct span_id span_id_of_receive(const char *turn_id, int attempt)
{
    return span_id_of("receive", turn_id, attempt);
}

/* ---- protobuf ---- */

enum wire { WIRE_varint = 0, WIRE_fixed64 = 1, WIRE_bytes = 2, WIRE_fixed32 = 5 };

static void put_varint(struct buf *out, uint64_t number)
{
    while (number >= 0x80) {
        buf_add_char(out, (char)(number | 0x80));
        number >>= 7;
    }
    buf_add_char(out, (char)number);
}

static void put_tag(struct buf *out, unsigned field, enum wire wire)
{
    put_varint(out, (uint64_t)field << 3 | wire);
}

static void put_number(struct buf *out, unsigned field, uint64_t number)
{
    put_tag(out, field, WIRE_varint);
    put_varint(out, number);
}

static void put_fixed(struct buf *out, unsigned field, enum wire wire, uint64_t number)
{
    put_tag(out, field, wire);
    for (unsigned i = 0; i < (wire == WIRE_fixed64 ? 8u : 4u); i++) {
        buf_add_char(out, (char)(number >> (8 * i)));
    }
}

static void put_bytes(struct buf *out, unsigned field, const void *bytes, size_t len)
{
    put_tag(out, field, WIRE_bytes);
    put_varint(out, len);
    buf_add(out, bytes, len);
}

static void put_text(struct buf *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strnlen(text, SPAN_TEXT_MAX));
}

static void put_hex(struct buf *out, unsigned field, const char *hex, size_t len)
{
    uint8_t bytes[16];
    BATON_PRE(len <= sizeof(bytes) && hex_decode(hex, 2 * len, bytes, len));
    put_bytes(out, field, bytes, len);
}

/* A message inside of another; what it holds was put into `inner`, which is emptied. */
static void put_message(struct buf *out, unsigned field, struct buf *inner)
{
    if (!buf_ok(inner)) {
        out->broken = true;
    }
    put_bytes(out, field, inner->data, inner->len);
    buf_clear(inner);
}

/* KeyValue {key = 1, value = 2}, AnyValue {string_value = 1, int_value = 3} */
static void put_attribute(struct buf *out, unsigned field, const char *key, const char *text,
                          int64_t number)
{
    struct buf pair = BUF_INIT;
    struct buf value = BUF_INIT;
    if (text != NULL) {
        put_text(&value, 1, text);
    } else {
        put_number(&value, 3, (uint64_t)number);
    }
    put_text(&pair, 1, key);
    put_message(&pair, 2, &value);
    put_message(out, field, &pair);
    buf_done(&pair);
    buf_done(&value);
}

/* ---- a span ---- */

void span_text(struct span *span, enum span_attribute attribute, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        span->attributes[attribute].text = text;
        span->attributes[attribute].set = true;
    }
}

void span_int(struct span *span, enum span_attribute attribute, int64_t number)
{
    span->attributes[attribute].number = number;
    span->attributes[attribute].set = true;
}

static uint64_t ns_of(int64_t ms)
{
    return ms > 0 ? (uint64_t)ms * NS_OF_MS : 0;
}

static void encode(const struct span *span, struct buf *out)
{
    char partition[24];
    struct buf inner = BUF_INIT;
    put_hex(out, 1, span->trace, 16);
    put_hex(out, 2, span->id.s, 8);
    if (span->parent != NULL && span->parent[0] != '\0') {
        put_hex(out, 4, span->parent, 8);
    }
    buf_printf(&inner, "%s%s%s", span->name, span->target != NULL ? " " : "",
               span->target != NULL ? span->target : "");
    put_message(out, 5, &inner);
    put_number(out, 6, span->kind);
    put_fixed(out, 7, WIRE_fixed64, ns_of(span->start.v));
    put_attribute(out, 9, keys[SPAN_operation], span->name, 0);
    for (size_t i = 0; i < SPAN_ATTRIBUTE_COUNT; i++) {
        if (!span->attributes[i].set) {
            continue;
        }
        const int64_t number = span->attributes[i].number;
        const char *text = span->attributes[i].text;
        if (i == SPAN_partition) { /* a text, as the conventions want it */
            snprintf(partition, sizeof(partition), "%lld", (long long)number);
            text = partition;
        }
        put_attribute(out, 9, keys[i], text, number);
    }
    if (span->error != NULL) {
        put_attribute(out, 9, keys[SPAN_error], span->error, 0);
    }
    if (span->link != NULL && span->link[0] != '\0') { /* Link {trace_id = 1, span_id = 2} */
        put_hex(&inner, 1, span->trace, 16);
        put_hex(&inner, 2, span->link, 8);
        put_message(out, 13, &inner);
    }
    if (span->error != NULL) { /* Status {message = 2, code = 3: 2 is ERROR} */
        put_text(&inner, 2, span->error);
        put_number(&inner, 3, 2);
        put_message(out, 15, &inner);
    }
    put_fixed(out, 16, WIRE_fixed32, 1); /* sampled */
    buf_done(&inner);
}

/* Fields may come in any order, so an open span gets its end when it is known. */
static void put_end(struct buf *out, int64_t start_ms, int64_t end_ms)
{
    put_fixed(out, 8, WIRE_fixed64, ns_of(end_ms > start_ms ? end_ms : start_ms));
}

void span_add(struct span_list *list, const struct span *span)
{
    struct buf out = BUF_INIT;
    encode(span, &out);
    if (span->end.v != 0) {
        put_end(&out, span->start.v, span->end.v);
    }
    struct span_bytes *bytes = buf_ok(&out) ? malloc(sizeof(*bytes) + out.len) : NULL;
    if (bytes == NULL) {
        metric_add(METRIC_spans_dropped, 1);
    } else {
        *bytes = (struct span_bytes){
            .len = out.len, .start_ms = span->start.v, .open = span->end.v == 0};
        memcpy(bytes->bytes, out.data, out.len);
        *(list->last != NULL ? &list->last->next : &list->first) = bytes;
        list->last = bytes;
        list->count++;
    }
    buf_done(&out);
}

void span_list_clear(struct span_list *list)
{
    while (list->first != NULL) {
        struct span_bytes *bytes = list->first;
        list->first = bytes->next;
        free(bytes);
    }
    *list = (struct span_list){NULL, NULL, 0};
}

/* ---- many ---- */

void span_list_end(struct span_list *list, struct wall_ms end)
{
    for (struct span_bytes *at = list->first; at != NULL; at = at->next) {
        at->end_ms = at->open ? end.v : 0;
    }
}

void span_request(const struct span_list *list, const char *const *resource, struct buf *out)
{
    struct buf inner = BUF_INIT;
    struct buf scope = BUF_INIT;
    struct buf spans = BUF_INIT; /* a ResourceSpans {resource = 1, scope_spans = 2} */
    for (size_t i = 0; resource[i] != NULL; i += 2) {
        put_attribute(&inner, 1, resource[i], resource[i + 1], 0);
    }
    put_message(&spans, 1, &inner);
    put_text(&inner, 1, "baton"); /* InstrumentationScope {name = 1, version = 2} */
    put_text(&inner, 2, BATON_VERSION);
    put_message(&scope, 1, &inner); /* ScopeSpans {scope = 1, spans = 2} */
    for (const struct span_bytes *at = list->first; at != NULL; at = at->next) {
        put_tag(&scope, 2, WIRE_bytes);
        put_varint(&scope, at->len + (at->open ? END_LEN : 0));
        buf_add(&scope, at->bytes, at->len);
        if (at->open) {
            put_end(&scope, at->start_ms, at->end_ms);
        }
    }
    put_message(&spans, 2, &scope);
    put_message(out, 1, &spans);
    buf_done(&inner);
    buf_done(&scope);
    buf_done(&spans);
}
