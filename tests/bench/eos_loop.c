/*
 * The floor on Kafka: a bare exactly-once loop of librdkafka that does the same job as a worker
 * whose turns do nothing, without proofs, states, stores or executors. For each record of the input
 * it writes what Baton writes for a turn: the claim, then the end and the outcome, the end in a later
 * transaction than the claim (--transactions 1: all three in one). Settings are those of the driver
 * (common/log/kafka/settings.c); topics are made under a random prefix and deleted at the end.
 *
 * In: tests/bench/compare, people (eos_loop --help)  Out: eos_handles.c
 */
#include "eos_loop.h"

#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define BATCH_MAX 10000
#define STALL_NS 10000000000LL
#define FULL_MS 5     /* how long a full queue is waited for */
#define WARM_TURNS 20 /* published first and not counted */

static const char *const topic_words[TOPICS] = {"handoff", "turns", "outcomes"};

static void sleep_until(int64_t at_ns)
{
    const struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) {
    }
}

/* ---- records ---- */

/* As compressible as a record of Baton: words and a payload that repeat, and the hexadecimal ids,
 * digests and signatures of each record, which do not. */
static void fill(char *value, size_t len, const char *key, const char *filler)
{
    uint64_t state = 1469598103934665603u;
    memcpy(value, filler, len);
    for (int i = 0; i < KEY_LEN; i++) {
        state = (state ^ (unsigned char)key[i]) * 1099511628211u;
    }
    for (size_t i = KEY_LEN; i < len / 3; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value[i] = "0123456789abcdef"[state >> 60];
    }
    memcpy(value, key, KEY_LEN);
}

static void write_record(struct loop *loop, rd_kafka_t *rk, enum topic topic, int32_t partition,
                         const char *key, size_t len)
{
    char value[RECORD_MAX];
    rd_kafka_resp_err_t cause;
    fill(value, len, key, loop->filler);
    while ((cause = rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(loop->names[topic]),
                                      RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key, KEY_LEN),
                                      RD_KAFKA_V_VALUE(value, len),
                                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END)) ==
           RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        rd_kafka_poll(rk, FULL_MS);
    }
    if (cause != RD_KAFKA_RESP_ERR_NO_ERROR) {
        die(loop->names[topic], rd_kafka_err2str(cause));
    }
}

static void publish(struct loop *loop, int number)
{
    char key[KEY_LEN + 1];
    snprintf(key, sizeof(key), "%016llx%016x", (unsigned long long)number * 0x9e3779b97f4a7c15ull,
             (unsigned)number);
    write_record(loop, loop->publisher, HANDOFF, RD_KAFKA_PARTITION_UA, key,
                 loop->options->handoff_bytes);
}

static void flush(struct loop *loop, rd_kafka_t *rk)
{
    if (rd_kafka_flush(rk, ADMIN_MS) != RD_KAFKA_RESP_ERR_NO_ERROR || atomic_load(&loop->failed)) {
        die("writing", rd_kafka_err2str(atomic_load(&loop->failed)));
    }
}

/* ---- the loop ---- */

static void keep(struct loop *loop, rd_kafka_message_t *message)
{
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        die("reading", rd_kafka_message_errstr(message));
    }
    struct taken *taken = &loop->claims[loop->n_claims++];
    memcpy(taken->key, message->key, KEY_LEN);
    taken->partition = message->partition;
    taken->number = (int)strtol((const char *)message->key + KEY_LEN / 2, NULL, 16);
    loop->next[message->partition] = message->offset + 1;
    rd_kafka_message_destroy(message);
}

/* Waits for the first record, then takes what is there. */
static void take(struct loop *loop, int wait_ms)
{
    loop->n_claims = 0;
    rd_kafka_message_t *message = rd_kafka_consumer_poll(loop->consumer, wait_ms);
    if (message != NULL && loop->options->gather_ms > 0) {
        (void)poll(NULL, 0, loop->options->gather_ms);
    }
    while (message != NULL) {
        keep(loop, message);
        message =
            loop->n_claims < loop->options->batch ? rd_kafka_consume_queue(loop->queue, 0) : NULL;
    }
}

static void write_all(struct loop *loop, const struct taken *list, int count, bool claim, bool end)
{
    const struct options *options = loop->options;
    for (int i = 0; i < count; i++) {
        const struct taken *at = &list[i];
        loop->written[at->partition] = true;
        if (claim) {
            write_record(loop, loop->producer, TURNS, at->partition, at->key, options->claim_bytes);
        }
        if (end) {
            write_record(loop, loop->producer, TURNS, at->partition, at->key, options->end_bytes);
            write_record(loop, loop->producer, OUTCOMES, RD_KAFKA_PARTITION_UA, at->key,
                         options->outcome_bytes);
        }
    }
}

/* The time since *at_ns belongs to that step. */
static void spent(struct loop *loop, enum step step, int64_t *at_ns)
{
    const int64_t now = now_ns();
    loop->spent_ns[step] += now - *at_ns;
    *at_ns = now;
}

/* One transaction: claims of what was taken, ends of what was claimed before. */
static void transact(struct loop *loop)
{
    const bool one = loop->options->transactions == 1;
    int64_t at_ns = now_ns();
    memset(loop->written, 0, sizeof(loop->written));
    must(rd_kafka_begin_transaction(loop->producer), "begin_transaction");
    write_all(loop, loop->claims, loop->n_claims, true, one);
    write_all(loop, loop->ends, loop->n_ends, false, true);
    spent(loop, STEP_produce, &at_ns);
    flush(loop, loop->producer);
    spent(loop, STEP_flush, &at_ns);
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(loop->options->partitions);
    for (int32_t p = 0; p < loop->options->partitions; p++) {
        if (loop->written[p]) {
            rd_kafka_topic_partition_list_add(list, loop->names[HANDOFF], p)->offset =
                loop->next[p];
        }
    }
    must(rd_kafka_send_offsets_to_transaction(loop->producer, list, loop->metadata, ADMIN_MS),
         "send_offsets");
    rd_kafka_topic_partition_list_destroy(list);
    spent(loop, STEP_offsets, &at_ns);
    must(rd_kafka_commit_transaction(loop->producer, ADMIN_MS), "commit_transaction");
    spent(loop, STEP_commit, &at_ns);
    loop->transactions++;
}

static void stalled(const struct loop *loop, int done)
{
    for (int32_t p = 0; p < loop->options->partitions; p++) {
        int64_t low = 0;
        int64_t high = 0;
        rd_kafka_get_watermark_offsets(loop->consumer, loop->names[HANDOFF], p, &low, &high);
        fprintf(stderr, "partition %d: read to %lld of %lld\n", p, (long long)loop->next[p],
                (long long)high);
    }
    fprintf(stderr, "%d done\n", done);
    die("reading", "no record came for 10 s");
}

/* Runs until so many turns have ended. */
static void run(struct loop *loop, int turns)
{
    int64_t moved_ns = now_ns();
    for (int done = 0; done < turns;) {
        take(loop, loop->n_ends > 0 ? 0 : 100);
        if (loop->n_claims == 0 && loop->n_ends == 0) {
            if (now_ns() - moved_ns > STALL_NS) {
                stalled(loop, done);
            }
            continue;
        }
        transact(loop);
        const int64_t at_ns = now_ns();
        moved_ns = at_ns;
        for (int i = 0; i < loop->n_claims; i++) {
            loop->claimed_ns[loop->claims[i].number] = at_ns;
        }
        if (loop->options->transactions == 1) {
            done += loop->n_claims;
            continue;
        }
        for (int i = 0; i < loop->n_ends; i++) {
            loop->ended_ns[loop->ends[i].number] = at_ns;
        }
        done += loop->n_ends;
        struct taken *ended = loop->ends;
        loop->ends = loop->claims;
        loop->n_ends = loop->n_claims;
        loop->claims = ended;
    }
    loop->n_ends = 0;
}

/* ---- what is measured ---- */

static void wait_assigned(struct loop *loop)
{
    while (loop->metadata == NULL) {
        take(loop, 1);
        if (loop->n_claims > 0) {
            die("reading", "a record before the assignment");
        }
    }
}

static double drain(struct loop *loop)
{
    for (int i = 0; i < loop->options->turns; i++) {
        publish(loop, i);
    }
    flush(loop, loop->publisher);
    open_loop(loop);
    wait_assigned(loop);
    const int64_t begin_ns = now_ns();
    run(loop, loop->options->turns);
    return (double)loop->options->turns * 1e9 / (double)(now_ns() - begin_ns);
}

static void *publish_steadily(void *arg)
{
    struct loop *loop = arg;
    const int turns = loop->options->rate * loop->options->seconds + WARM_TURNS;
    const int64_t begin_ns = now_ns();
    for (int i = 0; i < turns; i++) {
        loop->due_ns[i] = begin_ns + i * (1000000000LL / loop->options->rate);
        sleep_until(loop->due_ns[i]);
        publish(loop, i);
        flush(loop, loop->publisher);
    }
    return NULL;
}

static int by_size(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double quantile(const struct loop *loop, const int64_t *reached_ns, int count, double share)
{
    int64_t *waits = malloc((size_t)count * sizeof(*waits));
    for (int i = 0; i < count; i++) {
        waits[i] = reached_ns[i + WARM_TURNS] - loop->due_ns[i + WARM_TURNS];
    }
    qsort(waits, (size_t)count, sizeof(*waits), by_size);
    const double ms = (double)waits[(int)(share * count)] / 1e6;
    free(waits);
    return ms;
}

static void measure_waits(struct loop *loop)
{
    pthread_t thread;
    open_loop(loop);
    wait_assigned(loop);
    if (pthread_create(&thread, NULL, publish_steadily, loop) != 0) {
        die("waits", "no thread");
    }
    run(loop, loop->options->rate * loop->options->seconds + WARM_TURNS);
    pthread_join(thread, NULL);
}

/* ---- the program ---- */

static void help(void)
{
    printf(
        "usage: eos_loop --brokers LIST [option...]\n\n"
        "  --turns N         a backlog of so many records is drained (20000)\n"
        "  --batch N         records in a transaction at most (500)\n"
        "  --transactions N  2: claim and end in two transactions, as Baton must; 1: in one (2)\n"
        "  --rate N          instead of a backlog: so many records a second, and how long each "
        "waits\n"
        "  --seconds N       for so long (5)\n"
        "  --gather MS       after the first record of a transaction others are waited for (0)\n"
        "  --partitions N    of each topic (4)\n"
        "  --sizes A,B,C,D   bytes of a handoff, claim, end and outcome (1060,1800,730,530)\n"
        "  --json            one line for programs\n\n"
        "example: eos_loop --brokers 127.0.0.1:9092 --batch 100\n");
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"brokers", 1, NULL, 'b'},      {"turns", 1, NULL, 't'},      {"batch", 1, NULL, 'n'},
        {"transactions", 1, NULL, 'x'}, {"rate", 1, NULL, 'r'},       {"seconds", 1, NULL, 's'},
        {"gather", 1, NULL, 'g'},       {"partitions", 1, NULL, 'p'}, {"sizes", 1, NULL, 'z'},
        {"json", 0, NULL, 'j'},         {"help", 0, NULL, 'h'},       {NULL, 0, NULL, 0}};
    int *const numbers[256] = {
        ['t'] = &options->turns,     ['n'] = &options->batch,   ['x'] = &options->transactions,
        ['r'] = &options->rate,      ['s'] = &options->seconds, ['g'] = &options->gather_ms,
        ['p'] = &options->partitions};
    for (int at; (at = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (at == 'h') {
            help();
            exit(0);
        } else if (at == 'b') {
            options->brokers = optarg;
        } else if (at == 'j') {
            options->json = true;
        } else if (at == 'z') {
            if (sscanf(optarg, "%zu,%zu,%zu,%zu", &options->handoff_bytes, &options->claim_bytes,
                       &options->end_bytes, &options->outcome_bytes) != 4) {
                return false;
            }
        } else if (at < 256 && numbers[at] != NULL) {
            *numbers[at] = atoi(optarg);
        } else {
            return false;
        }
    }
    const size_t sizes[] = {options->handoff_bytes, options->claim_bytes, options->end_bytes,
                            options->outcome_bytes};
    bool good = options->brokers != NULL && options->turns > 0 && options->batch > 1 &&
                options->batch <= BATCH_MAX && options->transactions >= 1 &&
                options->transactions <= 2 && options->partitions > 0 &&
                options->partitions <= PARTITIONS_MAX && options->rate >= 0 && options->seconds > 0;
    for (int i = 0; i < 4; i++) {
        good = good && sizes[i] >= KEY_LEN && sizes[i] <= RECORD_MAX;
    }
    return good;
}

static void print(const struct loop *loop, double rate, const double waited[4])
{
    const struct options *options = loop->options;
    double ms[STEPS];
    for (int i = 0; i < STEPS; i++) {
        ms[i] = (double)loop->spent_ns[i] / 1e6 / (double)loop->transactions;
    }
    if (options->json) {
        printf("{\"transactions\":%d,\"batch\":%d,\"turns_per_s\":%.0f,\"commits\":%lld,"
               "\"claim_p50_ms\":%.2f,\"claim_p99_ms\":%.2f,\"end_p50_ms\":%.2f,"
               "\"end_p99_ms\":%.2f,\"produce_ms\":%.2f,\"flush_ms\":%.2f,\"offsets_ms\":%.2f,"
               "\"commit_ms\":%.2f}\n",
               options->transactions, options->batch, rate, (long long)loop->transactions,
               waited[0], waited[1], waited[2], waited[3], ms[STEP_produce], ms[STEP_flush],
               ms[STEP_offsets], ms[STEP_commit]);
        return;
    }
    if (options->rate > 0) {
        printf("%d a second, gathered for %d ms: committed claim p50 %.2f p99 %.2f ms, committed "
               "end p50 %.2f p99 %.2f ms\n",
               options->rate, options->gather_ms, waited[0], waited[1], waited[2], waited[3]);
    } else {
        printf("backlog of %d, batches of %d, claim and end in %d: %.0f turns/s\n", options->turns,
               options->batch, options->transactions, rate);
    }
    printf("%lld transactions, mean of each: produce %.2f, flush %.2f, offsets %.2f, commit %.2f "
           "ms\n",
           (long long)loop->transactions, ms[STEP_produce], ms[STEP_flush], ms[STEP_offsets],
           ms[STEP_commit]);
}

int main(int argc, char **argv)
{
    struct options options = {.turns = 20000,
                              .batch = 500,
                              .transactions = 2,
                              .partitions = 4,
                              .seconds = 5,
                              .handoff_bytes = 1060,
                              .claim_bytes = 1800,
                              .end_bytes = 730,
                              .outcome_bytes = 530};
    static struct loop loop;
    uint64_t random = 0;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "eos_loop: wrong usage; see eos_loop --help\n");
        return 2;
    }
    const int waits = options.rate * options.seconds;
    const size_t room = (size_t)(options.rate > 0 ? waits + WARM_TURNS : options.turns);
    loop.options = &options;
    loop.claims = calloc((size_t)options.batch, sizeof(*loop.claims));
    loop.ends = calloc((size_t)options.batch, sizeof(*loop.ends));
    loop.due_ns = calloc(room, sizeof(int64_t));
    loop.claimed_ns = calloc(room, sizeof(int64_t));
    loop.ended_ns = calloc(room, sizeof(int64_t));
    memset(loop.filler, 'x', sizeof(loop.filler));
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        die("getrandom", "no random bytes");
    }
    snprintf(loop.group, sizeof(loop.group), "eosloop-%016llx", (unsigned long long)random);
    for (int i = 0; i < TOPICS; i++) {
        snprintf(loop.names[i], sizeof(loop.names[i]), "%s.%s", loop.group, topic_words[i]);
    }
    open_publisher(&loop);
    create_topics(&loop);
    double rate = 0;
    double waited[4] = {0, 0, 0, 0};
    if (options.rate > 0) {
        measure_waits(&loop);
        const int64_t *last = options.transactions == 1 ? loop.claimed_ns : loop.ended_ns;
        waited[0] = quantile(&loop, loop.claimed_ns, waits, 0.5);
        waited[1] = quantile(&loop, loop.claimed_ns, waits, 0.99);
        waited[2] = quantile(&loop, last, waits, 0.5);
        waited[3] = quantile(&loop, last, waits, 0.99);
    } else {
        rate = drain(&loop);
    }
    close_loop(&loop);
    delete_topics(&loop);
    rd_kafka_destroy(loop.publisher);
    print(&loop, rate, waited);
    free(loop.claims);
    free(loop.ends);
    free(loop.due_ns);
    free(loop.claimed_ns);
    free(loop.ended_ns);
    return 0;
}
