/* Frees a configuration, whole or half-made. Called by who loaded it, and by config.c when it
 * fails. */
#include "common/base/check.h"
#include "common/base/config.h"

#include <stdlib.h>

static void env_free(struct config_env *env, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(env[i].name);
        free(env[i].text);
    }
    free(env);
}

static void texts_free(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(texts[i]);
    }
    free(texts);
}

static void service_done(struct config_service *service)
{
    texts_free(service->executor.command, service->executor.n_command);
    texts_free(service->executor.prefix, service->executor.n_prefix);
    env_free(service->executor.env, service->executor.n_env);
    free(service->executor.agent);
    free(service->executor.model);
    free(service->executor.prompts);
    free(service->executor.home);
    for (size_t i = 0; i < service->n_profiles; i++) {
        env_free(service->profiles[i].env, service->profiles[i].n_env);
    }
    free(service->profiles);
    free(service->place);
}

void config_free(struct config *config)
{
    if (config == NULL) {
        return;
    }
    for (size_t i = 0; i < config->n_services; i++) {
        service_done(&config->services[i]);
    }
    free(config->services);
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        free(config->roles[i].chain);
    }
    for (size_t i = 0; i < config->kafka.n_client; i++) {
        free(config->kafka.client[i].key);
        free(config->kafka.client[i].value);
        free(config->kafka.client[i].where);
    }
    free(config->kafka.client);
    for (size_t i = 0; i < config->n_settings; i++) {
        free(config->settings[i].key);
        free(config->settings[i].value);
    }
    free(config->settings);
    texts_free(config->workflows, config->n_workflows);
    char *const texts[] = {
        config->path,
        config->dir,
        config->local_path,
        config->kafka_brokers,
        config->state_dir,
        config->kafka.security,
        config->keys,
        config->trust,
        config->kafka.sasl_mechanism,
        config->http_listen,
        config->traces.endpoint,
        config->traces.headers_file,
        config->traces.ca,
        config->kafka.ca,
        config->kafka.certificate,
        config->kafka.key,
        config->kafka.sasl_username,
        config->kafka.sasl_password_file,
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        free(texts[i]);
    }
    free(config);
}
