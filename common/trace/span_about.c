/* What a span is about, as attributes. See span_about.h for who calls it. */
#include "common/trace/span_about.h"

#include <stdio.h>

void span_about_turn(struct span *span, struct span_turn *turn)
{
    snprintf(turn->message, sizeof(turn->message), "%s.%d", turn->id, turn->attempt);
    span_text(span, SPAN_message, turn->message);
    span_text(span, SPAN_turn, turn->id);
    span_text(span, SPAN_role, role_word(turn->role));
    span_text(span, SPAN_service, turn->service);
    span_text(span, SPAN_task, turn->task);
    span_int(span, SPAN_task_rev, turn->task_rev);
}

void span_about_run(struct span *span, const char *run, int64_t epoch)
{
    if (run != NULL && run[0] != '\0') {
        span_text(span, SPAN_run, run);
        span_int(span, SPAN_epoch, epoch);
    }
}

void span_topic(struct span *span, const struct config *config, const char *type, const char *topic)
{
    span_text(span, SPAN_system, config->log == LOG_KIND_kafka ? "kafka" : "baton");
    span_text(span, SPAN_type, type);
    span_text(span, SPAN_topic, topic);
}

void span_place(struct span *span, const struct config *config, int32_t partition, int64_t offset)
{
    span_int(span, SPAN_partition, partition);
    if (config->log == LOG_KIND_kafka) {
        span_int(span, SPAN_offset, offset);
    }
}
