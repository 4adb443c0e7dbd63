/*
 * A span, and its bytes as OTLP has them (opentelemetry.proto.trace.v1.Span).
 *
 * Ids of spans are derived from what they are about, so that whoever needs one as a parent (another attempt, another
 * worker, after a restart) knows it without having kept it, and a decision that is made twice gives one span.
 * Any thread; an object belongs to one at a time.
 */
#ifndef BATON_COMMON_TRACE_SPAN_H
#define BATON_COMMON_TRACE_SPAN_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/traceparent.h"
#include "common/trace/tbl/attributes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATTRIBUTE_ENUM(id, key) SPAN_##id,
enum span_attribute { SPAN_ATTRIBUTES(ATTRIBUTE_ENUM) SPAN_ATTRIBUTE_COUNT };
#undef ATTRIBUTE_ENUM

/* As the protocol numbers them. */
enum span_kind { SPAN_KIND_internal = 1, SPAN_KIND_producer = 4, SPAN_KIND_consumer = 5 };

struct span_id {
    char s[16 + 1];
};
/* Of what happens to a turn or run: `what` is a literal of ours, number an attempt, an epoch or a count. */
struct span_id span_id_of(const char *what, const char *id, int64_t number);
/* Of the span by which a worker takes a handoff in. It begins the trace where who sent the handoff tells no spans. */
struct span_id span_id_of_receive(const char *turn_id, int attempt);

#define SPAN_TEXT_MAX 256 /* bytes of a value; longer ones are cut */

struct span {
    const char *trace;  /* 32 hex digits */
    struct span_id id;  /* 16 */
    const char *parent; /* 16; NULL or "": it begins the trace */
    const char *link;   /* another span of the trace that it follows from; NULL or "": none */
    const char *name;   /* a literal of ours, the operation, and what it is done to: */
    const char *target; /* NULL: nothing */
    enum span_kind kind;
    struct wall_ms start;
    struct wall_ms end; /* 0: open; it ends when its list is sent */
    const char *error;  /* a class or code: it has failed; NULL: it has not */
    struct {
        const char *text; /* NULL: a number */
        int64_t number;
        bool set;
    } attributes[SPAN_ATTRIBUTE_COUNT];
};

/* Borrowed until the span is added; NULL and "" leave it out. */
void span_text(struct span *span, enum span_attribute attribute, const char *text);
void span_int(struct span *span, enum span_attribute attribute, int64_t number);

/* ---- spans of a batch that the log may not take ---- */

struct span_bytes {
    struct span_bytes *next;
    size_t len;
    int64_t start_ms;
    int64_t end_ms; /* of one that is open, once it is known */
    bool open;
    char bytes[];
};

struct span_list {
    struct span_bytes *first;
    struct span_bytes *last;
    size_t count;
};

/* Adds a copy. Without memory it is dropped, and counted. */
void span_add(struct span_list *list, const struct span *span);
/* What was decided is not: no such span. */
void span_list_clear(struct span_list *list);

/* It is, and the log has it: open ones end now. */
void span_list_end(struct span_list *list, struct wall_ms end);

/* One protobuf message ExportTraceServiceRequest of all of them; buf_ok says whether memory sufficed.
 * resource: key, value, key, value …, NULL. */
void span_request(const struct span_list *list, const char *const *resource, struct buf *out);

#endif
