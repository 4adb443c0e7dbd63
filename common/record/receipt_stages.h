/*
 * The stages of judgement that all records share, for receipt.c, receipt_control.c and receipt_run.c
 * only. Each returns ok or the code of the refusal, with its words in err.
 */
#ifndef BATON_RECORD_RECEIPT_STAGES_H
#define BATON_RECORD_RECEIPT_STAGES_H

#include "common/record/headers.h"
#include "common/record/receipt.h"

/* A record under judgement. */
struct judgement {
    const struct receiver *receiver;
    struct receipt *receipt;
    enum proof_class class;
    const void *key;
    size_t key_len;
    const void *value;
    size_t value_len;
    struct proofs proofs;
    const struct trust_key *signer_key;
    const struct trust_key *pass_keys[PASSES_MAX];
    const char *
        born; /* the turn's first service, its role, and where its chain must end: set before the */
    enum role role; /* chain is looked at */
    const char *end;
    struct baton_error err;
};

struct judgement judge_begin(const struct receiver *receiver, enum proof_class class,
                             struct receipt *ret_receipt);
/* Size and headers; from here on there are proofs. */
baton_code judge_headers(struct judgement *j, const struct log_record *record, size_t value_max,
                         bool may_pass, struct headers *ret_headers);
/* Key ids and signatures, those of the passes in j->proofs, too. */
baton_code judge_proof(struct judgement *j);
/* The record is on the partition of its key? */
baton_code judge_partition(struct judgement *j, const struct log_record *record);
/* Not signed more than a day ahead of the log's time? */
baton_code judge_ahead(struct judgement *j, struct wall_ms signed_at, struct wall_ms appended);
/* A refused record keeps its code and who signed it, and nothing that could be acted on. Returns rc. */
baton_code judge_finish(struct judgement *j, baton_code rc);

/* A copy of a header for the receipt; absent: NULL. False: no memory. */
bool judge_keep(struct header_text text, char **ret_text);
baton_code judge_no_memory(struct judgement *j);

#endif
