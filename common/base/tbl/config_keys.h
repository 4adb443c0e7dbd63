/*
 * Every key of the configuration that holds one value. Parser, `config show`, the documentation and
 * the nearest known key in an error come from here.
 *
 * CONFIG(id, key, type, default, min, max, unit, words, help)
 *   type     WORD (one of words), BOOL, INT, COUNT (INT or auto), REAL, DURATION (min, max in ms),
 *            ID, PREFIX, TEXT, PATH (relative to the file), LISTEN
 *   default  as text; "": not set; NULL: must be given
 *
 * Keys of a service, its executor and a role stand in tables of their own: their place in the file
 * is services.<name>, services.<name>.executor, roles.<role>.
 */
#ifndef BATON_BASE_TBL_CONFIG_KEYS_H
#define BATON_BASE_TBL_CONFIG_KEYS_H

#include "common/base/limits.h"
#include "common/base/tbl/agents.h"

#define CONFIG_DAY_MS 86400000

/* clang-format off */
#define CONFIG_KEYS(CONFIG) \
    CONFIG(version,        "version",        WORD,     "1",           0, 0,   "", "1", "Version of this file's shape.") \
    CONFIG(prefix,         "prefix",         PREFIX,   "baton",       0, 0,   "", "", "First part of every topic and group name.") \
    CONFIG(log,            "log",            WORD,     "local",       0, 0,   "", "local kafka", "Which log: local is one file on one host, kafka a cluster. Nothing else changes with it.") \
    CONFIG(local_path,     "local.path",     PATH,     "data/log.db", 0, 0,   "", "", "The local log's file. Not on a network file system.") \
    CONFIG(local_partitions, "local.partitions", INT,  "4",           1, LIMIT_PARTITIONS, "", "", "Partitions of each topic, fixed when the topics are made.") \
    CONFIG(local_session,  "local.session",  DURATION, "6s",          200, 300000, "", "", "A worker that shows no sign of life for so long is removed.") \
    CONFIG(local_heartbeat, "local.heartbeat", DURATION, "1s",        20, 60000, "", "", "How often a worker shows that it lives, and renews its leases.") \
    CONFIG(kafka_partitions, "kafka.partitions", INT,  "4",           1, LIMIT_PARTITIONS, "", "", "Partitions of each service's topics, fixed when the topics are made.") \
    CONFIG(kafka_replication, "kafka.replication", COUNT, "auto",     1, 9,   "", "", "Copies of each partition; auto: 3, or the number of brokers.") \
    CONFIG(kafka_session,  "kafka.session",  DURATION, "6s",          1000, 300000, "", "", "A worker that the group does not hear for so long is removed.") \
    CONFIG(kafka_heartbeat, "kafka.heartbeat", DURATION, "1s",        100, 60000, "", "", "How often a worker speaks to its group, and renews its leases.") \
    CONFIG(kafka_security, "kafka.security", WORD,     "plaintext",   0, 0,   "", "plaintext ssl sasl_plaintext sasl_ssl", "How the brokers are spoken to.") \
    CONFIG(kafka_sasl_mechanism, "kafka.sasl.mechanism", WORD, "",    0, 0,   "", "PLAIN SCRAM-SHA-256 SCRAM-SHA-512", "How we prove who we are (with sasl_ssl and sasl_plaintext). SCRAM and brokers of Kafka 4: librdkafka 2.6.1 or newer.") \
    CONFIG(kafka_sasl_username, "kafka.sasl.username", TEXT, "",      0, 255, "", "", "SASL user.") \
    CONFIG(kafka_sasl_password, "kafka.sasl.password.file", PATH, "", 0, 0,   "", "", "File that holds the SASL password; ours or root's, and nobody else may read it.") \
    CONFIG(kafka_ca,       "kafka.ca",       PATH,     "",            0, 0,   "", "", "Certificates (PEM) that the brokers' are checked with; not set: the system's.") \
    CONFIG(kafka_certificate, "kafka.certificate", PATH, "",          0, 0,   "", "", "Our own certificate (PEM), for brokers that ask for one.") \
    CONFIG(kafka_key,      "kafka.key",      PATH,     "",            0, 0,   "", "", "The private key (PEM) of kafka.certificate.") \
    CONFIG(lease,          "lease",          DURATION, "6s",          200, 300000, "", "", "How long a moved attempt stays its worker's without being renewed.") \
    CONFIG(lease_grace,    "lease_grace",    DURATION, "2s",          100, 60000, "", "", "How long a new owner waits for the first renewal of a moved attempt.") \
    CONFIG(state_dir,      "state_dir",      PATH,     "data",        0, 0,   "", "", "One store for each worker, below it.") \
    CONFIG(identity,       "identity",       ID,       "",            0, 0,   "", "", "Whose key signs what this command line publishes.") \
    CONFIG(keys,           "keys",           PATH,     "keys",        0, 0,   "", "", "Private keys of this host.") \
    CONFIG(trust,          "trust",          PATH,     "trust",       0, 0,   "", "", "Public keys and rights, the same on every host.") \
    CONFIG(proof,          "proof",          WORD,     "required",    0, 0,   "", "required off", "Whether records must be proven; off only in a closed network.") \
    CONFIG(budget_failures, "budget.failures", INT,    "6",           1, 1000, "", "", "Failed attempts of a turn (the provider said no), over all services.") \
    CONFIG(budget_losses,  "budget.losses",  INT,      "3",           1, 1000, "", "", "Lost attempts of a turn (crash, killed, lost), over all services.") \
    CONFIG(budget_replays, "budget.replays", INT,      "3",           0, 1000, "", "", "Replays of a parked turn.") \
    CONFIG(budget_attempts, "budget.attempts", INT,    "64",          1, 1000, "", "", "Attempts of a turn, whatever they ended with.") \
    CONFIG(budget_max_cost, "budget.max_cost", REAL,   "0",           0, 1000000, "", "", "US dollars that the attempts of a turn may cost together, over all services, as far as their executors tell or their prices say; then it is parked. 0: no bound.") \
    CONFIG(retry_first,    "retry.first",    DURATION, "2s",          0, CONFIG_DAY_MS, "", "", "Delay before the first retry.") \
    CONFIG(retry_factor,   "retry.factor",   REAL,     "2",           1, 100, "", "", "Each further delay is so many times longer.") \
    CONFIG(retry_max,      "retry.max",      DURATION, "5m",          0, CONFIG_DAY_MS, "", "", "No delay is longer, but one that a provider asks for.") \
    CONFIG(retry_jitter,   "retry.jitter",   REAL,     "0.2",         0, 1,   "", "", "Delays differ by up to this fraction, so that turns do not come back at one moment.") \
    CONFIG(retry_each_service, "retry.each_service", INT, "3",        0, 1000, "", "", "Retries of a turn at one service.") \
    CONFIG(retry_max_wait, "retry.max_wait", DURATION, "15m",         0, 7 * CONFIG_DAY_MS, "", "", "A provider that asks for a longer wait counts as not to be had.") \
    CONFIG(retry_rest,     "retry.rest",     DURATION, "15m",         0, CONFIG_DAY_MS, "", "", "How long a credential profile whose quota is spent is not taken by a worker's other turns; a time that the provider names goes before. One that was refused (auth) rests until it is cleared. 0: none rests.") \
    CONFIG(circuit_after,  "circuit.after",  INT,      "5",           1, 1000, "", "", "So many failures in a row that say the provider is down (auth, rate_limited, quota, overloaded, unavailable; followed by retry or park) open a worker's circuit.") \
    CONFIG(circuit_for,    "circuit.for",    DURATION, "30s",         0, CONFIG_DAY_MS, "", "", "How long an open circuit takes no turn.") \
    CONFIG(circuit_probe,  "circuit.probe",  DURATION, "15s",         10, CONFIG_DAY_MS, "", "", "Then one turn in this time, until one succeeds.") \
    CONFIG(http_listen,    "http.listen",    LISTEN,   "",            0, 0,   "", "", "Address and port of metrics and health; not set: no listener. Port 0: one that is free. One process has it; give each of a host its own (--set). Those of `baton dev` get free ones, which it names.") \
    CONFIG(traces_endpoint, "traces.endpoint", TEXT,   "",            0, 1000, "", "", "Where spans of turns go (OTLP/HTTP, protobuf): the whole URL, http://127.0.0.1:4318/v1/traces. Not set: no spans. Turns never wait for it.") \
    CONFIG(traces_headers, "traces.headers.file", PATH, "",           0, 0,   "", "", "File of headers for each export, `Name: value` lines (Authorization); ours or root's, and nobody else may read it. Read again for each export.") \
    CONFIG(traces_ca,      "traces.ca",      PATH,     "",            0, 0,   "", "", "Certificates (PEM) that the collector's is checked with (https); not set: the system's.") \
    CONFIG(traces_timeout, "traces.timeout", DURATION, "10s",         100, 60000, "", "", "How long one export may take.") \
    CONFIG(traces_queue,   "traces.queue",   INT,      "2048",        64, 65536, "", "", "Spans that wait for the collector, of one process; when more come, the oldest are dropped and counted.")

#define CONFIG_SERVICE_KEYS(CONFIG) \
    CONFIG(parallel, "parallel", INT,      "4",    1, LIMIT_PARALLEL, "", "", "Turns at a time, for each worker.") \
    CONFIG(deadline, "deadline", DURATION, "20m",  10, 30 * (int64_t)CONFIG_DAY_MS, "", "", "Time of an attempt; then its executor is stopped.") \
    CONFIG(heartbeat, "heartbeat", DURATION, "0s", 0, 30 * (int64_t)CONFIG_DAY_MS, "", "", "An attempt whose executor shows no progress for so long is stopped before its deadline (timeout): output of exec and agent, progress of child. 0: only the deadline bounds it.") \
    CONFIG(grace,    "grace",    DURATION, "",     0, 30 * (int64_t)CONFIG_DAY_MS, "", "", "How long a clean stop waits for running attempts; not set: the deadline.") \
    CONFIG(cut_off,  "cut_off",  WORD,     "kill", 0, 0, "", "kill keep", "What a worker does with a running attempt when it is cut off from the log for longer than a lease.") \
    CONFIG(place,    "place",    PATH,     "",     0, 0, "", "", "Working directory of attempts; not set: an empty one for each.")

#define CONFIG_EXECUTOR_KEYS(CONFIG) \
    CONFIG(kind,  "kind",  WORD, NULL, 0, 0, "", "exec child agent callback", "exec: one program for each attempt; child: long-lived, one JSON object a line; agent: an agent program; callback: a function of an embedding program.") \
    CONFIG(agent, "agent", WORD, "",   0, 0, "", AGENT_WORDS, "Which agent program (kind: agent).") \
    CONFIG(model, "model", TEXT, "",   0, 255, "", "", "The model that the agent is asked for; default: the agent's own (kind: agent).") \
    CONFIG(access, "access", WORD, "auto", 0, 0, "", "auto read write full", "What an agent may do to its place: auto: read where the role is read_only, else write; full: whatever it wants, for a place that is sealed off otherwise (kind: agent).") \
    CONFIG(prompts, "prompts", PATH, "", 0, 0, "", "", "Folder of prompts, <role>.txt; not set, and for roles that it lacks: the shipped ones (kind: agent).") \
    CONFIG(home, "home", PATH, "", 0, 0, "", "", "HOME of an agent that has signed in there; not set: an empty one for each attempt (kind: agent).") \
    CONFIG(resume, "resume", BOOL, "false", 0, 0, "", "", "Another attempt of a turn goes on in the agent's session of the one before; one that is gone is begun anew. Needs home, where sessions are kept (kind: agent).")

/* Millionths of a US dollar for a million tokens: no fractions, so sums are exact. */
#define CONFIG_PRICES_MAX 1000000000000
#define CONFIG_PRICE_KEYS(CONFIG) \
    CONFIG(input,  "input",  INT, NULL, 0, CONFIG_PRICES_MAX, "", "", "What a million input tokens of the executor's model cost, in millionths of a US dollar: 1250000 is $1.25. For agents that tell no costs (codex, gemini).") \
    CONFIG(cached, "cached", INT, "",   0, CONFIG_PRICES_MAX, "", "", "The same of input tokens that come from a cache; not set: as input.") \
    CONFIG(output, "output", INT, NULL, 0, CONFIG_PRICES_MAX, "", "", "The same of output tokens.")

#define CONFIG_ROLE_KEYS(CONFIG) \
    CONFIG(read_only, "read_only", BOOL, "false", 0, 0, "", "", "Attempts of this role must leave their place as it is.")

/* Sections with lists or names of the user's choice: SECTION(key, shape, help). */
#define CONFIG_SECTIONS(SECTION) \
    SECTION("kafka.brokers", "[host:port, ...]", "The brokers that are asked first (log: kafka).") \
    SECTION("kafka.client", "{key: value}", "Further settings of librdkafka; those that Baton sets itself are refused.") \
    SECTION("roles", "{owner|reviewer|arbiter: {chain: [service, ...], read_only}}", "Where a turn of this role may go when its service fails, in order.") \
    SECTION("services", "{name: {roles: [...], parallel, deadline, heartbeat, grace, cut_off, place, executor: {kind, command: [...], prefix: [...], agent, model, access, prompts, home, resume, prices: {input, cached, output}, env}, profiles: [{name, env}]}}", "The services; env is {NAME: {value|file|from: text}}.") \
    SECTION("on_failure", "{class: [retry|rotate|delegate|park, ...]}", "What follows a failed attempt: the first possible action; each list ends with park.") \
    SECTION("workflows", "[file, ...]", "Definitions of workflows.")
/* clang-format on */

#endif
