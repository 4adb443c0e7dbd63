/*
 * A program with a worker in it, and a publisher: publishes one turn to the service `example`, has
 * a C function review it, and prints the outcome.
 *
 *   make && ./embed baton.yaml        (a configuration as `baton init` leaves it)
 */
#include <baton/publish.h>
#include <baton/worker.h>

#include <stdio.h>
#include <string.h>

static const char patch[] = "one line of a patch\nTODO: another one\n";

/* Runs on a thread of the worker. The role is part of the signed turn. */
static int review(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    size_t len;
    const char *turn = baton_attempt_turn(attempt, &len);
    (void)arg;
    printf("attempt %d of %s as %s\n", baton_attempt_number(attempt),
           baton_attempt_task_id(attempt), baton_attempt_role(attempt));
    if (strstr(turn, "TODO") != NULL) {
        baton_result_verdict(result, "changes", "a TODO is left");
    } else {
        baton_result_verdict(result, "approve", NULL);
    }
    return 0;
}

static int failed(const char *what, const struct baton_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", what, baton_code_word(err->code), err->text);
    return 1;
}

static int publish(const char *config)
{
    struct baton_error err;
    struct baton_publisher *publisher;
    struct baton_published *published;
    struct baton_turn turn = BATON_TURN_INIT;

    if (baton_publisher_open(config, &publisher, &err) != BATON_E_ok) {
        return failed("publisher", &err);
    }
    turn.service = "example";
    turn.role = "reviewer";
    turn.task_id = "embedded";
    turn.payload = patch;
    turn.payload_len = strlen(patch);
    turn.wait = BATON_WAIT_END;
    turn.timeout_ms = 30000;
    if (baton_publish(publisher, &turn, &published, &err) != BATON_E_ok) {
        baton_publisher_close(publisher);
        return failed("publish", &err);
    }
    const char *outcome = baton_published_outcome(published);
    int status = outcome == NULL;
    printf("%s\n", outcome != NULL ? outcome : "no outcome within 30 s");
    baton_published_free(published);
    baton_publisher_close(publisher);
    return status;
}

int main(int argc, char **argv)
{
    const char *config = argc > 1 ? argv[1] : NULL; /* NULL: where the baton program looks, too */
    struct baton_error err;
    struct baton_worker *worker;
    struct baton_worker_options options = BATON_WORKER_OPTIONS_INIT;

    options.config_path = config;
    options.service = "example";
    options.id = "embedded";
    if (baton_worker_open(&options, review, NULL, &worker, &err) != BATON_E_ok) {
        return failed("worker", &err);
    }
    if (baton_worker_start(worker, &err) != BATON_E_ok) {
        baton_worker_free(worker);
        return failed("worker", &err);
    }
    int status = publish(config);
    baton_worker_free(worker); /* a clean stop */
    return status;
}
