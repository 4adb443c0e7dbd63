/* The Kafka driver's doors: called by log.c. Everything else of it is inside (internal.h). */
#ifndef BATON_COMMON_LOG_KAFKA_KAFKA_H
#define BATON_COMMON_LOG_KAFKA_KAFKA_H

#include "common/log/log.h"

/* Codes as log_settings_check and log_open; the configuration is not kept. */
baton_code kafka_settings_check(const struct config *config, struct buf *findings,
                                struct baton_error *err);
baton_code kafka_log_open(const struct config *config, struct log **ret_log,
                          struct baton_error *err);
/* Of librdkafka as it runs; *ret_old: older than it was when this was built. */
const char *kafka_log_version(bool *ret_old);

#endif
