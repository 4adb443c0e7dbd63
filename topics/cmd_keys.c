/*
 * `baton keys plan | apply | generate | list | rotate | retire | revoke`. Listed by the program's
 * table of verbs (deploy/baton.c). The acts are common/record/keys.h; it stands in this folder
 * because applying makes topics too, and retiring asks the turn logs.
 */
#include "topics/cmd_keys.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/record/keys.h"
#include "common/record/pass.h"
#include "common/record/proof.h"
#include "topics/provision.h"
#include "topics/turn_log.h"

#include <stdio.h>
#include <string.h>

#define OPTION_LIST(list) .options = (list), .n_options = COUNT_OF(list)

static struct keys_folders folders_of(const struct config *config)
{
    return (struct keys_folders){config->keys, config->trust};
}

/* ---- plan, apply ---- */

static void print_steps(struct command *cmd, const struct keys_plan *plan)
{
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < plan->count; i++) {
        const struct keys_step *step = &plan->steps[i];
        if (cmd->json) {
            struct jsonw w = jsonw_to(&out);
            jsonw_begin_object(&w);
            jsonw_key_text(&w, "action", keys_step_word(step->kind));
            jsonw_key_text(&w, "name", step->name.s);
            jsonw_key_text(&w, "text", step->text);
            jsonw_end(&w);
            buf_add_char(&out, '\n');
        } else {
            buf_printf(&out, "%-8s %s\n", keys_step_word(step->kind), step->text);
        }
        if (!command_print(cmd, &out)) {
            break;
        }
    }
    buf_done(&out);
}

static int run_plan(struct command *cmd)
{
    struct config *config = NULL;
    struct keys_plan plan = {NULL, 0};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        rc = keys_plan_config(config, &plan, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        print_steps(cmd, &plan);
        command_note(cmd, plan.count == 0 ? "nothing to do: every key and right is there"
                                          : "`baton keys apply` does it");
    }
    keys_plan_done(&plan);
    config_free(config);
    return status;
}

static const struct baton_command cmd_plan = {
    .name = "plan",
    .summary = "show which keys and rights are missing",
    .usage = "[--json]",
    .description =
        "Compares what the configuration needs with the trust folder: the fleet's name, a key "
        "for `identity` if it is set, for `coordinator` and for each service, the roles that a "
        "service may "
        "serve, and to whom it may pass them. Shows what `baton keys apply` would make. "
        "Changes nothing.",
    .examples = "# after adding a service to baton.yaml\nbaton keys plan\n",
    .run = run_plan,
};

static int run_apply(struct command *cmd)
{
    struct config *config = NULL;
    struct keys_plan plan = {NULL, 0};
    struct baton_error err = {BATON_OK, ""};
    size_t topics = 0;
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        rc = keys_apply_config(config, &plan, &err);
        print_steps(cmd, &plan);
    }
    /* One command after editing the configuration: on one host the topics are made, too. */
    if (rc == BATON_OK && config->log == LOG_KIND_local) {
        rc = provision_all(config, &topics, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        command_note(cmd, "%zu keys and rights, %zu topics made", plan.count, topics);
        if (plan.count > 0) {
            command_note(cmd, "other hosts need a copy of %s", config->trust);
        }
        if (plan.count > 0 && config->log == LOG_KIND_kafka) {
            command_note(cmd, "`baton topics plan --acl` names the rights that principals need on "
                              "the cluster, `baton topics apply` makes the topics");
        }
    }
    keys_plan_done(&plan);
    config_free(config);
    return status;
}

static const struct baton_command cmd_apply = {
    .name = "apply",
    .summary = "make the keys and rights that the configuration needs",
    .usage = "[--json]",
    .description =
        "Makes what `baton keys plan` shows. Principals that are there keep their keys and "
        "rights; a service gets the rights that it lacks, and its file in the trust folder is "
        "written anew (comments in it are lost). Nothing is taken away.\n\n"
        "On the local log the topics are made, too, as `baton topics apply` does.",
    .examples = "# the one command after editing baton.yaml on one host\nbaton keys apply\n",
    .run = run_apply,
};

/* ---- generate, rotate ---- */

static void print_made(struct command *cmd, const struct config *config, const char *name,
                       const struct keys_made *made, const char *action)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "action", action);
        jsonw_key_text(&w, "name", name);
        jsonw_key_text(&w, "key", made->id.s);
        jsonw_key_text(&w, "private", made->private_path);
        jsonw_key_text(&w, "public", made->public_path);
        jsonw_key_bool(&w, "new_rights", made->new_rights);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%s has key %s\n", name, made->id.s);
        buf_printf(&out, "  stays here, secret:       %s\n", made->private_path);
        buf_printf(&out, "  copy to every host:       %s\n", made->public_path);
        if (made->new_rights) {
            buf_printf(&out, "  and what it may do:       %s/%s.yaml\n", config->trust, name);
        }
    }
    command_print(cmd, &out);
    buf_done(&out);
}

static int run_generate(struct command *cmd)
{
    struct config *config = NULL;
    struct keys_made made;
    struct keys_wish wish = {.kind = command_text(cmd, "kind"),
                             .serve = command_text(cmd, "serve"),
                             .coordinate = command_flag(cmd, "coordinate")};
    struct baton_error err = {BATON_OK, ""};
    wish.pass = command_list(cmd, "pass", &wish.n_pass);
    wish.create = command_list(cmd, "create", &wish.n_create);
    wish.operate = command_list(cmd, "operate", &wish.n_operate);
    wish.request = command_list(cmd, "request", &wish.n_request);
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        struct keys_folders folders = folders_of(config);
        rc = keys_generate(&folders, cmd->args[0], &wish, command_flag(cmd, "passphrase"), &made,
                           &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        print_made(cmd, config, cmd->args[0], &made, "generate");
    }
    config_free(config);
    return status;
}

static const struct command_option generate_options[] = {
    {.name = "kind",
     .argument = "KIND",
     .kind = OPTION_text,
     .help = "service, program or person. Without it: a service if --serve or --pass is given, a "
             "program with --coordinate, else a person."},
    {.name = "serve",
     .argument = "ROLES",
     .kind = OPTION_text,
     .help = "The roles that a service executes: owner,reviewer,arbiter, or all."},
    {.name = "pass",
     .argument = "SERVICE=ROLES",
     .kind = OPTION_multi,
     .help = "The roles that a service may pass on to another one."},
    {.name = "create",
     .argument = "SERVICE=ROLES",
     .kind = OPTION_multi,
     .help = "The roles in which turns may be created at a service; '*' is every service."},
    {.name = "operate",
     .argument = "SERVICE",
     .kind = OPTION_multi,
     .help = "A service whose turns may be cancelled and replayed, and which may be paused; '*' is "
             "every one."},
    {.name = "request",
     .argument = "KIND",
     .kind = OPTION_multi,
     .help = "What may be asked of runs: start, handoff, touch, cancel, reopen, answer, or all."},
    {.name = "coordinate", .kind = OPTION_flag, .help = "This program coordinates runs."},
    {.name = "passphrase",
     .kind = OPTION_flag,
     .help = "Protects the private key with a passphrase, asked for on the terminal. Only a person "
             "can use it then, never an agent under the same login."},
};

static const struct baton_command cmd_generate = {
    .name = "generate",
    .summary = "make a key for a principal",
    .usage =
        "NAME [--kind KIND] [--serve ROLES] [--pass SERVICE=ROLES]... [--create SERVICE=ROLES]...\n"
        "NAME [--operate SERVICE]... [--request KIND]... [--coordinate] [--passphrase]",
    .description =
        "Makes a pair of keys: the private one goes to the folder `keys` of this host, the public "
        "one to the folder `trust`. A principal that is not known there is written with the "
        "rights that the options say; one that is known keeps its rights and gets another key.",
    OPTION_LIST(generate_options),
    .examples =
        "# a CI job that may ask for reviews\nbaton keys generate ci --kind program --create "
        "claude-review=reviewer\n"
        "# a person with a passphrase who runs everything\n"
        "baton keys generate alice --create '*=all' --operate '*' --request all --passphrase\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_generate,
};

static int run_rotate(struct command *cmd)
{
    struct config *config = NULL;
    struct keys_made made;
    struct baton_error err = {BATON_OK, ""};
    bool stage = command_flag(cmd, "stage");
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        struct keys_folders folders = folders_of(config);
        rc = keys_rotate(&folders, cmd->args[0], stage, command_flag(cmd, "passphrase"), &made,
                         &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        print_made(cmd, config, cmd->args[0], &made, stage ? "stage" : "rotate");
        if (stage) {
            command_note(cmd, "copy the trust folder to every host, then `baton keys rotate %s`",
                         cmd->args[0]);
        } else {
            command_note(cmd,
                         "programs that run sign with the new key after their next start; the old "
                         "public key stays until `baton keys retire`");
        }
    }
    config_free(config);
    return status;
}

static const struct command_option rotate_options[] = {
    {.name = "stage",
     .kind = OPTION_flag,
     .help = "Only writes the public key, and keeps the private one as NAME.next.pem until the "
             "command is given without --stage."},
    {.name = "passphrase",
     .kind = OPTION_flag,
     .help = "Protects the new private key with a passphrase."},
};

static const struct baton_command cmd_rotate = {
    .name = "rotate",
    .summary = "replace the key of a principal",
    .usage = "NAME [--stage] [--passphrase]",
    .description =
        "On one host: makes a new pair and switches to it at once. In a fleet: --stage first, then "
        "copy the trust folder to every host, then the same command without --stage, so that "
        "no record is signed by a key that somebody does not know yet.\n\n"
        "The old public key stays in the trust folder: turns that it signed still verify.",
    OPTION_LIST(rotate_options),
    .examples =
        "# a fleet, in two steps\nbaton keys rotate claude --stage\nbaton keys rotate claude\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_rotate,
};

/* ---- retire, revoke ---- */

struct signed_search {
    const char *key_id;
    struct turn_id turn; /* the first open turn that the key signed */
    char service[SERVICE_MAX + 1];
};

static bool signed_by(void *arg, const struct turn_place *place, const struct turn_record *record)
{
    struct signed_search *search = arg;
    struct pass_parts parts;
    bool hit = record->signature != NULL && strlen(record->signature) == PROOF_TEXT_LEN &&
               memcmp(record->signature + 2, search->key_id, 16) == 0;
    for (size_t i = 0; !hit && i < record->n_passes; i++) {
        hit = pass_split(record->passes[i], strlen(record->passes[i]), &parts) && parts.is_signed &&
              strcmp(parts.key_id.s, search->key_id) == 0;
    }
    if (hit) {
        search->turn = record->id;
        snprintf(search->service, sizeof(search->service), "%s", place->service);
    }
    return !hit;
}

/* Asks the turn logs that can be read; one that cannot is said, and does not hold this up. */
static baton_code check_open_turns(struct command *cmd, const struct config *config,
                                   const char *key_id, struct baton_error *err)
{
    struct signed_search search = {.key_id = key_id};
    struct turn_filter filter = {0};
    struct baton_error why = {BATON_OK, ""};
    struct log *log = NULL;
    size_t unreadable = 0;
    for (int s = 0; s < TURN_STATE_COUNT; s++) {
        filter.states |= turn_state_open((enum turn_state)s) ? 1u << s : 0u;
    }
    baton_code rc = log_open(config, &log, &why);
    if (rc == BATON_OK) {
        rc = turn_log_each(log, config, &filter, signed_by, &search, &unreadable, &why);
    }
    log_close(log);
    if (search.turn.s[0] != '\0') {
        return baton_fail(
            err, BATON_E_not_permitted,
            "turn %s at %s is open and was signed by key %s; wait for its end, or cancel it",
            search.turn.s, search.service, key_id);
    }
    if (rc != BATON_OK) {
        command_note(cmd, "the turn logs could not be asked (%s): nothing is known of open turns",
                     why.text);
    } else if (unreadable > 0) {
        command_note(cmd, "%zu records of the turn logs could not be read", unreadable);
    }
    return BATON_OK;
}

static void print_key(struct command *cmd, const char *action, const char *key_id, const char *text)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "action", action);
        jsonw_key_text(&w, "key", key_id);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%s\n", text);
    }
    command_print(cmd, &out);
    buf_done(&out);
}

static int run_retire(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    const char *key_id = cmd->args[0];
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        struct keys_folders folders = folders_of(config);
        rc = keys_retire_check(&folders, key_id, wall_now(), &err);
        if (rc == BATON_OK) {
            rc = check_open_turns(cmd, config, key_id, &err);
        }
        if (rc == BATON_OK) {
            rc = keys_retire(&folders, key_id, wall_now(), &err);
        }
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        print_key(cmd, "retire", key_id,
                  "the public key is removed; remove it on every other host, too");
    }
    config_free(config);
    return status;
}

static const struct baton_command cmd_retire = {
    .name = "retire",
    .summary = "remove a public key that nothing can need any more",
    .usage = "KEY-ID [--json]",
    .description =
        "Removes an old public key from the trust folder. Refused while the key signs on this "
        "host, "
        "before 31 days since its successor was made, and while a turn log that can be read "
        "has an open turn that it signed (which is named).",
    .examples = "baton keys list\nbaton keys retire deb2ded39dc26fce\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_retire,
};

static int run_revoke(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    const char *key_id = cmd->args[0];
    bool known = false;
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        struct keys_folders folders = folders_of(config);
        rc = keys_revoke(&folders, key_id, &known, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        print_key(cmd, "revoke", key_id,
                  "the key is revoked here; copy the trust folder to every other host at once");
        if (!known) {
            command_note(cmd, "no public key with this id is in the trust folder now");
        }
        command_note(cmd, "the next attempts of turns that it signed are parked (unknown_key); "
                          "running ones go on until they are cancelled:");
        command_note(cmd, "  baton turns list --state running");
        command_note(cmd, "  baton turns cancel TURN --reason 'key revoked'");
        command_note(cmd,
                     "if it signs somewhere, `baton keys rotate NAME` makes another key there");
    }
    config_free(config);
    return status;
}

static const struct baton_command cmd_revoke = {
    .name = "revoke",
    .summary = "never trust a key again, at once",
    .usage = "KEY-ID [--json]",
    .description =
        "Writes a mark for the key into the trust folder: whatever it has signed and will sign is "
        "refused. Workers see it with the next unknown key, on SIGHUP, and at their start. Turns "
        "that run go on until they end or are cancelled.",
    .examples = "# a laptop was lost\nbaton keys revoke deb2ded39dc26fce\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_revoke,
};

static const struct baton_command *const subcommands[] = {
    &cmd_plan, &cmd_apply, &cmd_generate, &cmd_keys_list, &cmd_rotate, &cmd_retire, &cmd_revoke};

const struct baton_command cmd_keys = {
    .name = "keys",
    .summary = "make, list, rotate and revoke keys",
    .usage = "plan|apply|generate|list|rotate|retire|revoke",
    .description =
        "Every record is signed by the key of a principal: a service, a program or a person. "
        "Private keys stay in the folder `keys` of one host; public keys and rights are in the "
        "folder `trust`, the same on every host.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples =
        "# what the configuration needs, shown and then made\nbaton keys plan\nbaton keys apply\n",
};
